//! Seeds whose histories are played with the tests: equal on two plays, and right.

use tamis_sim::{history::Plan, schedule::keep_panics};

#[test]
fn two_plays_of_a_seed_are_equal_to_the_last_byte() {
    keep_panics();
    for seed in 1..=8 {
        let mut plan = Plan::new(seed, |profile| profile.step_count = profile.step_count.min(300));
        plan.steps.truncate(300);
        let (first, second) = (plan.play(600), plan.play(600));
        assert_eq!(first.hash, second.hash, "seed {seed}");
        assert_eq!(first.failure, None, "seed {seed}");
    }
}

/// Among them 11: a removed log segment was taken for lost; 12: small tables were joined forever; 157 and 174: backward scans hid keys.
#[test]
fn seeds_that_have_failed_are_right() {
    keep_panics();
    for seed in [11, 12, 20, 77, 101, 129, 157, 172, 174, 192, 345] {
        assert_eq!(Plan::new(seed, |_| ()).play(600).failure, None, "seed {seed}");
    }
}
