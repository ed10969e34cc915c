//! The command line: which seeds it plays, on how many threads, and what it prints.
//!
//! A failing history is made shorter and printed with one command that plays it again.

use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::{Duration, Instant},
};

use clap::Parser;
use parking_lot::Mutex;
use tamis_sim::{
    coverage::{Coverage, unreached},
    history::{HISTORY_VERSION, Outcome, Plan},
    ops::Profile,
    shrink::{part_of, positions_of, positions_text, shrink},
    world::PRINTS_EVENTS,
};

/// How the program is started from the root of the tree.
const PROGRAM: &str = "cargo run --release --manifest-path crates/tamis-sim/Cargo.toml --";
/// A history without a step for so many seconds is given up.
const SECONDS_MAX: u32 = 120;
/// The names of `sim_fault!` in the engine.
const FAULTS: &[&str] = &[
    "skip-log-sync",
    "skip-manifest-sync",
    "skip-folder-sync",
    "drop-tombstone-early",
    "forget-rejected-range-tombstones",
    "release-flush-claim-twice",
    "keep-claim-of-failed-flush",
    "filter-without-a-key",
    "include-excluded-bound",
    "remove-segment-early",
    "view-one-version-behind",
    "forget-snapshot",
    "ignore-block-checksum",
    "ingest-below-recorded-ranges",
    "flush-part-of-a-batch",
    "assign-flushed-number-again",
    "close-without-waiting",
    "note-keys-not-visited",
    "note-range-at-old-number",
    "record-empty-segments",
    "join-tables-by-file-bytes",
    "commit-unchecked",
    "expire-before-a-snapshot",
    "drop-an-operand",
];
/// Plays that a shrink may use.
const ATTEMPTS_MAX: usize = 400;

/// Plays histories of the whole store, each decided by its seed.
#[derive(Debug, Parser)]
#[command(name = "tamis-sim", version, about, max_term_width = 100)]
pub(crate) struct Arguments {
    /// Play one seed: a number, or VERSION:NUMBER as a report names it.
    #[arg(long, value_name = "SEED", conflicts_with_all = ["seeds", "hours", "seconds"])]
    seed: Option<String>,
    /// Play only these steps of the seed, for example 3,5-9.
    #[arg(long, value_name = "STEPS", requires = "seed")]
    keep: Option<String>,
    /// Play the seed with another order of threads.
    #[arg(long, value_name = "NUMBER", requires = "seed")]
    schedule: Option<u64>,
    /// Play so many seeds.
    #[arg(long, value_name = "COUNT")]
    seeds: Option<u64>,
    /// Play seeds for so many hours.
    #[arg(long, value_name = "HOURS", conflicts_with = "seeds")]
    hours: Option<f64>,
    /// Play seeds for so many seconds.
    #[arg(long, value_name = "SECONDS", conflicts_with_all = ["seeds", "hours"])]
    seconds: Option<u64>,
    /// The first of the seeds; a fresh one by default, which is printed.
    #[arg(long, value_name = "SEED")]
    from: Option<u64>,
    /// Histories that are played at a time.
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    jobs: usize,
    /// Play each seed twice, and compare the hashes.
    #[arg(long)]
    twice: bool,
    /// Leveled layout, no faults, no crashes: for figures of speed.
    #[arg(long)]
    calm: bool,
    /// Play histories of at most so many steps.
    #[arg(long, value_name = "COUNT")]
    length: Option<usize>,
    /// Do not make failing histories shorter.
    #[arg(long)]
    no_shrink: bool,
    /// Write failing histories into this folder, too.
    #[arg(long, value_name = "FOLDER")]
    report: Option<PathBuf>,
    /// Put a fault into the store, and play until it is found or for so many steps as --steps says.
    #[arg(long, value_name = "NAME")]
    fault: Option<String>,
    /// Stop after so many steps.
    #[arg(long, value_name = "COUNT")]
    steps: Option<u64>,
    /// Print the steps of the seed before it is played.
    #[arg(long, requires = "seed")]
    print: bool,
    /// Print the events of the store and its file operations.
    #[arg(long, requires = "seed")]
    events: bool,
}

/// The sum of all jobs.
#[derive(Default)]
struct Total {
    history_count: AtomicU64,
    step_count: AtomicU64,
    coverage: Coverage,
    failures: Mutex<Vec<u64>>,
    is_over: AtomicBool,
}

/// Runs the program; returns whether all histories were right.
///
/// # Errors
/// A sentence that says what to do.
pub(crate) fn run(arguments: &Arguments) -> Result<bool, String> {
    if let Some(folder) = &arguments.report {
        check_folder(folder)?;
    }
    if let Some(name) = &arguments.fault {
        if !FAULTS.contains(&name.as_str()) {
            return Err(format!("no fault has the name {name}; use one of {}", FAULTS.join(", ")));
        }
        tamis::simulation::put_in(name);
    }
    match &arguments.seed {
        Some(seed) => play_one(arguments, seed_of(seed)?),
        None => play_many(arguments),
    }
}

/// The number of a seed of this version.
fn seed_of(text: &str) -> Result<u64, String> {
    let (version, number) = match text.split_once(':') {
        Some((version, number)) => (Some(version), number),
        None => (None, text),
    };
    if let Some(version) = version.filter(|version| *version != HISTORY_VERSION.to_string()) {
        return Err(format!(
            "the seed {text} is of history version {version}, but this program plays version {HISTORY_VERSION}; \
             build the program from the commit that reported the seed"
        ));
    }
    number
        .parse()
        .map_err(|_| format!("{text:?} is no seed; use a number, or VERSION:NUMBER as a report names it"))
}

#[expect(clippy::disallowed_methods, reason = "reports are files of this program, not of a store")]
fn check_folder(folder: &Path) -> Result<(), String> {
    let probe = folder.join(".tamis-sim");
    let tried = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&probe, b""));
    let tried = tried.and_then(|()| std::fs::remove_file(&probe));
    tried.map_err(|error| {
        format!(
            "no report can be written into {}: {error}; name a folder that can be written with --report",
            folder.display()
        )
    })
}

fn plan_of(arguments: &Arguments, seed: u64) -> Plan {
    Plan::new(seed, |profile| {
        if arguments.calm {
            Profile::calm(profile);
        }
        profile.step_count = profile.step_count.min(arguments.length.unwrap_or(usize::MAX));
    })
}

fn play_one(arguments: &Arguments, seed: u64) -> Result<bool, String> {
    let mut plan = plan_of(arguments, seed);
    if let Some(text) = &arguments.keep {
        let kept = positions_of(text)
            .ok_or_else(|| format!("{text:?} is no list of steps; use for example 3,5-9"))?;
        plan = part_of(&plan, &kept, plan.schedule_seed);
    }
    plan.schedule_seed = arguments.schedule.unwrap_or(plan.schedule_seed);
    if arguments.print {
        plan.steps.iter().enumerate().for_each(|(index, step)| println!("{index:5} {step}"));
    }
    PRINTS_EVENTS.store(arguments.events, Ordering::Relaxed);
    let outcome = plan.play(SECONDS_MAX);
    PRINTS_EVENTS.store(false, Ordering::Relaxed);
    println!("seed {HISTORY_VERSION}:{seed}: {} steps, hash {:016x}", outcome.step_count, outcome.hash);
    if outcome.failure.is_none() {
        println!("right");
        return Ok(true);
    }
    report(arguments, seed, &plan, &outcome)?;
    Ok(false)
}

/// Prints a failing history, made shorter, and the command that plays it again.
fn report(arguments: &Arguments, seed: u64, plan: &Plan, outcome: &Outcome) -> Result<(), String> {
    let failure = outcome.failure.as_deref().unwrap_or_default();
    let mut text = format!("seed {HISTORY_VERSION}:{seed} has failed: {failure}\n");
    let mut command = format!("{PROGRAM} --seed {HISTORY_VERSION}:{seed}");
    if arguments.calm {
        command.push_str(" --calm");
    }
    if let Some(length) = arguments.length {
        command.push_str(&format!(" --length {length}"));
    }
    if let Some(fault) = &arguments.fault {
        command.push_str(&format!(" --fault {fault}"));
    }
    println!("{text}play it again: {command}");
    if !arguments.no_shrink && arguments.keep.is_none() {
        let shrunk = shrink(plan, outcome, ATTEMPTS_MAX, SECONDS_MAX);
        text.push_str(&format!(
            "{} of {} steps are enough: {}\n",
            shrunk.kept.len(),
            plan.steps.len(),
            shrunk.failure
        ));
        for index in shrunk.kept.iter().take(200) {
            text.push_str(
                &plan.steps.get(*index).map_or(String::new(), |step| format!("{index:5} {step}\n")),
            );
        }
        let kept = positions_text(&shrunk.kept);
        command.push_str(&format!(" --schedule {} --keep {kept}", shrunk.schedule_seed));
    }
    text.push_str(&format!("play it again: {command}\n"));
    println!("{text}");
    let Some(folder) = &arguments.report else { return Ok(()) };
    let path = folder.join(format!("seed-{HISTORY_VERSION}-{seed}.txt"));
    let written = std::fs::write(&path, text);
    written.map_err(|error| {
        format!("the report {} can't be written: {error}; free space or name another folder", path.display())
    })
}

/// Where the seeds begin: fresh ones, unless an argument says so.
#[expect(clippy::disallowed_methods, reason = "fresh seeds come from the time of the machine")]
fn first_seed(arguments: &Arguments) -> u64 {
    let now =
        || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_millis();
    arguments.from.unwrap_or_else(|| now() as u64 * 1_000)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the time of the machine limits the run; the jobs are threads of this program"
)]
fn play_many(arguments: &Arguments) -> Result<bool, String> {
    let first = first_seed(arguments);
    let start = Instant::now();
    let seconds =
        arguments.hours.map(|hours| hours * 3600.0).or(arguments.seconds.map(|seconds| seconds as f64));
    let limit = seconds.map(|seconds| Duration::from_secs_f64(seconds.max(0.0)));
    let count = match (arguments.seeds, limit, arguments.steps) {
        (Some(count), _, _) => count,
        (None, None, None) => 100,
        _ => u64::MAX,
    };
    println!("seeds from {HISTORY_VERSION}:{first} on, {} at a time", arguments.jobs.max(1));
    let (total, next) = (Total::default(), AtomicU64::new(0));
    let is_over = || {
        total.is_over.load(Ordering::Relaxed)
            || limit.is_some_and(|limit| start.elapsed() >= limit)
            || arguments.steps.is_some_and(|steps| total.step_count.load(Ordering::Relaxed) >= steps)
    };
    let job = || -> Result<(), String> {
        while !is_over() {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                break;
            }
            play_next(arguments, first.wrapping_add(number), &total)?;
        }
        Ok(())
    };
    let results: Vec<_> = std::thread::scope(|scope| {
        let jobs: Vec<_> = (0..arguments.jobs.max(1)).map(|_| scope.spawn(job)).collect();
        while jobs.iter().any(|job| !job.is_finished()) {
            std::thread::sleep(Duration::from_millis(200));
            print_progress(&total, start.elapsed(), false);
        }
        jobs.into_iter()
            .map(|job| job.join().unwrap_or_else(|_| Err("a job panicked: report a bug".to_owned())))
            .collect()
    });
    print_progress(&total, start.elapsed(), true);
    results.into_iter().collect::<Result<(), String>>()?;
    print_coverage(&total.coverage);
    let failures = total.failures.lock();
    Ok(failures.is_empty())
}

fn play_next(arguments: &Arguments, seed: u64, total: &Total) -> Result<(), String> {
    let plan = plan_of(arguments, seed);
    let mut outcome = plan.play(SECONDS_MAX);
    if arguments.twice && outcome.failure.is_none() && plan.play(SECONDS_MAX).hash != outcome.hash {
        outcome.failure = Some("two plays of the seed have different hashes".to_owned());
    }
    total.history_count.fetch_add(1, Ordering::Relaxed);
    total.step_count.fetch_add(outcome.step_count as u64, Ordering::Relaxed);
    total.coverage.add(&outcome.coverage);
    if outcome.failure.is_none() || total.is_over.load(Ordering::Relaxed) {
        return Ok(());
    }
    total.failures.lock().push(seed);
    // One failure is enough for a fault that was put in.
    total.is_over.store(arguments.fault.is_some(), Ordering::Relaxed);
    let steps = total.step_count.load(Ordering::Relaxed);
    println!("after {} histories and {steps} steps:", total.history_count.load(Ordering::Relaxed));
    report(arguments, seed, &plan, &outcome)
}

/// Prints the progress at most every ten seconds, and at the end.
fn print_progress(total: &Total, elapsed: Duration, is_end: bool) {
    let second = elapsed.as_millis();
    if !is_end && second % 10_000 >= 200 {
        return;
    }
    let (histories, steps) =
        (total.history_count.load(Ordering::Relaxed), total.step_count.load(Ordering::Relaxed));
    let seconds = elapsed.as_secs_f64().max(0.001);
    println!(
        "{histories} histories, {steps} steps, {:.0} s: {:.1} histories/s, {:.0} steps/s, {} failures",
        elapsed.as_secs_f64(),
        histories as f64 / seconds,
        steps as f64 / seconds,
        total.failures.lock().len()
    );
}

fn print_coverage(coverage: &Coverage) {
    let counts = coverage.counts();
    let mut kinds: Vec<&str> = counts.keys().map(|(kind, _)| *kind).collect();
    kinds.dedup();
    for kind in kinds {
        let of_kind = counts.iter().filter(|((other, _), count)| *other == kind && **count > 0);
        println!("reached: {} {kind}s", of_kind.count());
    }
    let (missing, argued) = unreached(&counts);
    println!("not reached, with a reason in coverage.rs: {}", argued.join(", "));
    match missing.is_empty() {
        true => println!("not reached without a reason: none"),
        false => println!("not reached without a reason: {}", missing.join(", ")),
    }
}
