//! Building a filter, asking it, and taking the times of both.

use std::{hint::black_box, time::Duration};

use tamis::{Clock as _, SystemClock};
use tamis_filter::{
    AlignedBytes, AnyFilter, Budget, BuildError, Digester, Filter as _, FilterSpec, KeyRange, KeySet, Probe,
    RangeProbe, Samples,
};

use super::{Figures, FilterInput, Outcome, Ranges};
use crate::{BenchError, OperationDigest, machine::Memory};

/// How often a time is taken; the median counts.
const ROUND_COUNT: usize = 3;
/// A build that takes longer is timed once.
const LONG_BUILD: Duration = Duration::from_secs(2);
/// Keys that are asked for at once.
const BATCH_KEYS: usize = 64;
/// Queries that are asked again before a pass is timed: the unit has driven the filter out of the caches.
const WARM_COUNT: usize = 50_000;

/// The middle one of some times; 0 where there are none.
pub(crate) fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(0.0)
}

/// Nanoseconds of a call, for each of `count`.
fn nanoseconds_each(clock: &SystemClock, count: usize, call: impl FnOnce()) -> f64 {
    let start = clock.now();
    call();
    (clock.now() - start).as_nanos() as f64 / count.max(1) as f64
}

/// A filter, and what building it cost.
#[derive(Debug)]
struct Built {
    /// The filter.
    filter: AnyFilter<AlignedBytes>,
    /// The time of a key, the choice of a design apart.
    build: Calibrated,
    /// Milliseconds in which the family chose its design: the median.
    model_ms: f64,
    /// The peak of memory of the first build, where the system tells it.
    build_peak_bytes: Option<u64>,
}

/// What a filter is built from.
#[derive(Debug)]
pub struct Plan<'a> {
    /// The family and its parameters.
    pub spec: &'a FilterSpec,
    /// The seed of the digests.
    pub seed: u64,
    /// How large it may become.
    pub budget: Budget,
    /// Keys and queries.
    pub input: &'a FilterInput,
}

/// Whether an error is an answer of the family about these keys, not a mistake in what was asked.
fn is_refusal(error: &BuildError) -> bool {
    matches!(
        error,
        BuildError::BudgetTooSmall { .. } | BuildError::TooLarge { .. } | BuildError::Refused { .. }
    )
}

impl Plan<'_> {
    /// Builds the filter and asks it everything.
    ///
    /// # Errors
    /// Wrong parameters. What a family refuses for these keys is an [`Outcome`].
    pub fn measure(&self, clock: &SystemClock) -> Result<Outcome, BenchError> {
        self.measure_beside(clock, &Calibration::new(self.input.keys.len()))
    }

    /// [`Plan::measure`] with a calibration unit of another number of keys.
    ///
    /// # Errors
    /// As there.
    pub fn measure_beside(
        &self,
        clock: &SystemClock,
        calibration: &Calibration,
    ) -> Result<Outcome, BenchError> {
        match self.build(clock, calibration) {
            Ok(built) => Ok(Outcome::Figures(Box::new(self.figures(clock, calibration, &built)?))),
            Err(error) if is_refusal(&error) => Ok(Outcome::Refused(error.to_string())),
            Err(error) => Err(error.into()),
        }
    }

    fn figures(
        &self,
        clock: &SystemClock,
        calibration: &Calibration,
        built: &Built,
    ) -> Result<Figures, BenchError> {
        let digester = Digester::new(self.seed);
        let filter = &built.filter;
        let FilterInput { keys, queries, present, .. } = self.input;
        let mut design = String::new();
        filter.design(&mut design).map_err(|_| BenchError::other("the filter does not tell its design"))?;
        let of_present = answers(filter, &digester, keys, present);
        Ok(Figures {
            design,
            key_count: keys.len() as u64,
            encoded_bytes: filter.encoded_bytes(),
            answers: answers(filter, &digester, keys, queries),
            present: (of_present.present, of_present.false_negatives),
            predicted_fpr: filter.predicted_fpr(),
            build: built.build,
            model_ms: built.model_ms,
            build_peak_bytes: built.build_peak_bytes,
            query: query_time(clock, calibration, filter, &digester, queries),
            batch_query: batch_query_time(clock, calibration, filter, &digester, queries),
        })
    }

    /// Builds up to three times. The peak of memory is that of the first.
    fn build(&self, clock: &SystemClock, calibration: &Calibration) -> Result<Built, BuildError> {
        let queries = self.input.samples.key_ranges();
        let (mut times, mut model_times) = (Vec::new(), Vec::new());
        let mut first = None;
        for _ in 0..ROUND_COUNT {
            let unit = calibration.unit_ns(clock);
            let memory = first.is_none().then(Memory::start);
            let start = clock.now();
            let mut builder = self.spec.builder(self.seed)?;
            builder.add_all(&self.input.keys)?;
            let model_start = clock.now();
            builder.design(self.budget, Samples { queries: &queries })?;
            let model_time = clock.now() - model_start;
            let bytes = builder.finish(self.budget, Samples { queries: &queries })?;
            let time = clock.now() - start - model_time;
            model_times.push(model_time.as_secs_f64() * 1e3);
            times.push((time.as_nanos() as f64 / self.input.keys.len().max(1) as f64, unit));
            if let Some(memory) = memory {
                first = Some((bytes, memory.peak()));
            }
            if time > LONG_BUILD {
                break;
            }
        }
        let (bytes, build_peak_bytes) = first.unwrap_or_default();
        // What was just built is whole: the error cannot come.
        let filter = AnyFilter::open(AlignedBytes::from(bytes.as_slice())).map_err(|_| {
            BuildError::Refused { family: self.spec.family().name(), reason: "it does not open" }
        })?;
        let (build, model_ms) = (Calibrated::of(&times), median(&mut model_times));
        Ok(Built { filter, build, model_ms, build_peak_bytes })
    }
}

/// What a filter answered.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Answers {
    /// Queries.
    pub query_count: u64,
    /// Queries that hold a key.
    pub present: u64,
    /// Those of them that were denied: there must be none.
    pub false_negatives: u64,
    /// Queries without a key that were not denied.
    pub false_positives: u64,
    /// Steps of the filter for all queries.
    pub probe_count: u64,
    /// Digest of queries and answers.
    pub digest: u64,
}

impl Answers {
    /// False positives among the queries that hold no key.
    pub fn fpr(&self) -> f64 {
        self.false_positives as f64 / ((self.query_count - self.present) as f64).max(1.0)
    }
}

/// Asks every query once, and looks into the keys for the truth.
pub fn answers(
    filter: &AnyFilter<AlignedBytes>,
    digester: &Digester,
    keys: &KeySet,
    queries: &Ranges,
) -> Answers {
    let mut answers = Answers { query_count: queries.len() as u64, ..Answers::default() };
    let mut digest = OperationDigest::default();
    for (lower, upper) in queries.iter() {
        let range = KeyRange::closed(lower, upper);
        let (answer, probe_count) = if lower == upper {
            let probe = Probe::new(lower, digester);
            (filter.may_contain(&probe), probe.probe_count())
        } else {
            let probe = RangeProbe::new(range, digester);
            (filter.may_contain_range(&probe), probe.probe_count())
        };
        answers.probe_count += u64::from(probe_count);
        digest.add_bytes(lower);
        digest.add_bytes(upper);
        digest.add(u64::from(answer));
        match (keys.has_key_in(&range), answer) {
            (true, answer) => {
                answers.present += 1;
                answers.false_negatives += u64::from(!answer);
            }
            (false, true) => answers.false_positives += 1,
            (false, false) => {}
        }
    }
    answers.digest = digest.finish();
    answers
}

/// A question as it is put to the filter; which kind it is does not belong to the time.
enum Question<'a> {
    Point(&'a [u8]),
    Range(KeyRange<'a>),
}

/// The time of a query: all of them in the order of the file, digests included, the first pass left out. Their bytes lie one behind the
/// other: references to them, and bounds that are not asked for, would cost more to read than the filter.
fn query_time(
    clock: &SystemClock,
    calibration: &Calibration,
    filter: &AnyFilter<AlignedBytes>,
    digester: &Digester,
    queries: &Ranges,
) -> Calibrated {
    if let Some(points) = queries.points() {
        let pass = |count| {
            let keys = points.bytes.chunks_exact(points.key_bytes).take(count);
            black_box(keys.filter(|key| filter.may_contain_key(digester, key)).count());
        };
        return calibration.beside(clock, queries.len(), pass);
    }
    let has = |lower, upper| filter.may_contain_key_in(digester, KeyRange::closed(lower, upper));
    if queries.iter().all(|(lower, upper)| lower != upper) {
        return calibration.beside(clock, queries.len(), |count| {
            black_box(queries.iter().take(count).filter(|(lower, upper)| has(lower, upper)).count());
        });
    }
    let of = |(lower, upper)| {
        if lower == upper { Question::Point(lower) } else { Question::Range(KeyRange::closed(lower, upper)) }
    };
    let questions: Vec<Question<'_>> = queries.iter().map(of).collect();
    calibration.beside(clock, queries.len(), |count| {
        let answers = questions.iter().take(count).map(|question| match question {
            Question::Point(key) => filter.may_contain_key(digester, key),
            Question::Range(range) => filter.may_contain_key_in(digester, *range),
        });
        black_box(answers.filter(|answer| *answer).count());
    })
}

/// The median of some passes, in nanoseconds for each of `count`, after one that is left out.
pub(crate) fn median_of_passes(clock: &SystemClock, count: usize, pass: impl Fn()) -> f64 {
    pass();
    median(&mut [0.0; ROUND_COUNT].map(|_| nanoseconds_each(clock, count, &pass)))
}

/// As [`query_time`], asked in batches: keys where all queries are points, else ranges, of which a point is one of a single key.
fn batch_query_time(
    clock: &SystemClock,
    calibration: &Calibration,
    filter: &AnyFilter<AlignedBytes>,
    digester: &Digester,
    queries: &Ranges,
) -> Calibrated {
    let clocks = (clock, calibration);
    if !queries.are_points() {
        let ranges: Vec<KeyRange<'_>> =
            queries.iter().map(|(lower, upper)| KeyRange::closed(lower, upper)).collect();
        return time_of_batches(clocks, &ranges, |batch, answers| {
            filter.may_contain_ranges(digester, batch, answers);
        });
    }
    let points = queries.points();
    let keys: Vec<&[u8]> = match &points {
        Some(points) => points.bytes.chunks_exact(points.key_bytes).collect(),
        None => queries.iter().map(|(key, _)| key).collect(),
    };
    time_of_batches(clocks, &keys, |batch, answers| filter.may_contain_keys(digester, batch, answers))
}

fn time_of_batches<T>(
    (clock, calibration): (&SystemClock, &Calibration),
    questions: &[T],
    ask: impl Fn(&[T], &mut [bool]),
) -> Calibrated {
    calibration.beside(clock, questions.len(), |count| {
        let mut positive_count = 0;
        for batch in questions.get(..count).unwrap_or(questions).chunks(BATCH_KEYS) {
            let mut answers = [true; BATCH_KEYS];
            let answers = answers.get_mut(..batch.len()).unwrap_or_default();
            ask(batch, answers);
            positive_count += answers.iter().filter(|answer| **answer).count();
        }
        black_box(positive_count);
    })
}

/// The calibration unit beside which times are taken. Times divided by it can be compared between machines.
#[derive(Debug)]
pub struct Calibration {
    searches: tamis_workload::Calibration,
}

impl Calibration {
    /// The unit for so many keys.
    pub fn new(key_count: usize) -> Self {
        Self { searches: tamis_workload::Calibration::new(key_count) }
    }

    /// What the unit is at this moment, in nanoseconds: the second of two passes, as what was done before has driven the integers out
    /// of the caches.
    pub fn unit_ns(&self, clock: &SystemClock) -> f64 {
        self.searches.search();
        nanoseconds_each(clock, self.searches.wanted_count() as usize, || self.searches.search())
    }

    /// The time of each of `count` in some passes, after one that is left out; a pass asks the first of so many. The unit is taken anew before
    /// each pass: a processor that others share is faster at one time than at another.
    fn beside(&self, clock: &SystemClock, count: usize, pass: impl Fn(usize)) -> Calibrated {
        pass(count);
        Calibrated::of(&[(); ROUND_COUNT].map(|()| {
            let unit = self.unit_ns(clock);
            pass(WARM_COUNT.min(count));
            (nanoseconds_each(clock, count, || pass(count)), unit)
        }))
    }
}

/// A time, and the calibration unit beside it: medians of some passes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibrated {
    /// Nanoseconds.
    pub ns: f64,
    /// Calibration units: the median of the quotients of passes.
    pub units: f64,
    /// Nanoseconds of a unit.
    pub unit_ns: f64,
}

impl Calibrated {
    /// Of the nanoseconds of passes, each with the unit before it.
    fn of(passes: &[(f64, f64)]) -> Self {
        let median = |of: &dyn Fn(&(f64, f64)) -> f64| median(&mut passes.iter().map(of).collect::<Vec<_>>());
        Self {
            ns: median(&|(ns, _)| *ns),
            units: median(&|(ns, unit)| ns / unit.max(1e-9)),
            unit_ns: median(&|(_, unit)| *unit),
        }
    }
}
