//! Makes a failing history shorter: leaves out steps as long as the history still fails.
//!
//! A shorter history has another order of threads. So each attempt is played with a few schedules, and the one that fails is kept. The
//! halves of the steps are tried first, then quarters, and so on, down to single steps.

use crate::history::{Outcome, Plan};

/// Schedules that are tried for each shorter history.
const SCHEDULE_COUNT: u64 = 3;

/// A shorter history that fails.
#[derive(Debug)]
pub struct Shrunk {
    /// The positions of the steps in the history of the seed.
    pub kept: Vec<usize>,
    /// The seed of its schedule.
    pub schedule_seed: u64,
    /// How it fails.
    pub failure: String,
}

/// The plan with a part of the steps and another schedule.
pub fn part_of(plan: &Plan, kept: &[usize], schedule_seed: u64) -> Plan {
    let steps = kept.iter().filter_map(|index| plan.steps.get(*index).cloned()).collect();
    Plan { schedule_seed, profile: plan.profile.clone(), steps }
}

/// The kind of a failure: its text up to the first details.
fn kind(failure: &str) -> &str {
    failure.split(|character: char| character.is_ascii_digit() || character == '/').next().unwrap_or_default()
}

/// Shrinks a failing plan by at most `attempts_max` plays.
pub fn shrink(plan: &Plan, outcome: &Outcome, attempts_max: usize, seconds_max: u32) -> Shrunk {
    let mut shrunk = Shrunk {
        kept: (0..plan.steps.len()).collect(),
        schedule_seed: plan.schedule_seed,
        failure: outcome.failure.clone().unwrap_or_default(),
    };
    let mut attempts = 0;
    let mut length = shrunk.kept.len().div_ceil(2);
    while length > 0 && attempts < attempts_max {
        let mut start = 0;
        let mut has_shrunk = false;
        while start < shrunk.kept.len() && attempts < attempts_max {
            let end = (start + length).min(shrunk.kept.len());
            let mut kept = shrunk.kept.clone();
            kept.drain(start..end);
            let mut is_shorter = false;
            for number in 0..SCHEDULE_COUNT {
                attempts += 1;
                let seed = shrunk.schedule_seed.wrapping_add(number);
                if let Some(failure) = part_of(plan, &kept, seed).play(seconds_max).failure
                    && kind(&failure) == kind(&shrunk.failure)
                {
                    shrunk = Shrunk { kept: kept.clone(), schedule_seed: seed, failure };
                    is_shorter = true;
                    break;
                }
            }
            has_shrunk |= is_shorter;
            if !is_shorter {
                start = end;
            }
        }
        if !has_shrunk || length > 1 {
            length /= 2;
        }
    }
    shrunk
}

/// Positions as text: `3,5-9`.
pub fn positions_text(kept: &[usize]) -> String {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for &index in kept {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == index => *last = index,
            _ => parts.push((index, index)),
        }
    }
    let text = |(first, last): &(usize, usize)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    parts.iter().map(text).collect::<Vec<_>>().join(",")
}

/// The positions of a text as [`positions_text`] writes it; `None` if it is none.
pub fn positions_of(text: &str) -> Option<Vec<usize>> {
    let mut kept = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        kept.extend(first.trim().parse::<usize>().ok()?..=last.trim().parse().ok()?);
    }
    Some(kept)
}
