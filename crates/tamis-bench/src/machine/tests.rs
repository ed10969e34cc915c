use super::*;

#[test]
fn dates_follow_the_calendar() {
    assert_eq!(date_of(0), "1970-01-01T00:00:00Z");
    assert_eq!(date_of(951_827_696), "2000-02-29T12:34:56Z");
    assert_eq!(date_of(1_767_225_599), "2025-12-31T23:59:59Z");
    assert_eq!(date_of(1_772_323_200), "2026-03-01T00:00:00Z");
}

#[test]
fn memory_is_the_growth_since_the_start() {
    const BALLAST: usize = 256 << 20;
    const MINE: usize = 128 << 20;
    // Other tests of the process use memory too, but less than this.
    let ballast = vec![1_u8; BALLAST];
    let mut memory = Memory::start();
    let Some(before) = memory.now() else { return };
    let mine = vec![1_u8; MINE];
    let with_mine = memory.now();
    assert!(
        before < BALLAST as u64 / 2 && with_mine.is_some_and(|with| with > before),
        "{before} {with_mine:?}"
    );
    assert!(memory.peak().is_none_or(|peak| peak < BALLAST as u64), "{memory:?}");
    memory.reset_peak();
    assert_eq!(std::hint::black_box((&ballast, &mine)).0.len(), BALLAST);
}

#[test]
fn machine_and_configuration_are_reported() {
    let machine = Machine::current();
    assert!(machine.core_count > 0);
    if cfg!(target_os = "linux") {
        assert!(machine.memory_bytes > 1 << 20 && !machine.kernel.is_empty());
        assert!(free_memory_bytes().is_some() && resident_bytes().is_some());
    }
    assert!(free_disk_bytes(Path::new("here/and/not/there")).is_none_or(|bytes| bytes > 0));
    let configuration = Configuration::current();
    assert!(!configuration.commit.is_empty() && configuration.profile.len() > 4);
    // The suffix distinguishes programs with different uncommitted changes.
    let (commit, mark) =
        configuration.commit.split_once('+').unwrap_or((configuration.commit.as_str(), "changes-00000000"));
    assert!(commit != "unknown" || configuration.commit.contains('+'), "{configuration:?}");
    assert!(mark.strip_prefix("changes-").is_some_and(|digest| digest.len() == 8), "{configuration:?}");
}
