//! Builds a filter, probes it with all queries, and takes the times of both.

use std::{hint::black_box, time::Duration};

use tamis::{Clock as _, SystemClock};
use tamis_filter::{
    AlignedBytes, AnyFilter, Budget, BuildError, Digester, Filter as _, FilterSpec, KeyRange, Probe,
    RangeProbe, Samples,
};

use super::{
    Calibrated, Calibration, Figures, FilterInput, Outcome, Ranges,
    answers::answers,
    calibration::{ROUND_COUNT, median},
};
use crate::{BenchError, machine::Memory};

/// A build that takes longer is timed once.
const LONG_BUILD: Duration = Duration::from_secs(2);

/// A filter and the cost of building it.
#[derive(Debug)]
struct Built {
    /// The filter.
    filter: AnyFilter<AlignedBytes>,
    /// The time per key without the choice of a design.
    build: Calibrated,
    /// Milliseconds in which the family chose its design; the median.
    model_ms: f64,
    /// The peak of memory of the first build, if the system reports it.
    build_peak_bytes: Option<u64>,
}

/// The input of a filter and of its measurement.
#[derive(Debug)]
pub struct Plan<'a> {
    /// The family and its parameters.
    pub spec: &'a FilterSpec,
    /// The seed of the digests.
    pub seed: u64,
    /// Its maximal size.
    pub budget: Budget,
    /// Keys and queries.
    pub input: &'a FilterInput,
}

/// Whether an error says that the family cannot build a filter for these keys and this budget, not that the plan is wrong.
fn is_refusal(error: &BuildError) -> bool {
    matches!(
        error,
        BuildError::BudgetTooSmall { .. } | BuildError::TooLarge { .. } | BuildError::Refused { .. }
    )
}

impl Plan<'_> {
    /// Builds the filter, probes it with all queries, and takes times.
    ///
    /// # Errors
    /// Wrong parameters. A family that refuses these keys or this budget is an [`Outcome`].
    pub fn measure(&self, clock: &SystemClock) -> Result<Outcome, BenchError> {
        self.measure_with(clock, &Calibration::new(self.input.keys.len()))
    }

    /// [`Plan::measure`] with a calibration unit for another number of keys.
    ///
    /// # Errors
    /// As there.
    pub fn measure_with(
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
        filter.design(&mut design).map_err(|_| BenchError::other("the filter does not report its design"))?;
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
        })
    }

    /// Builds up to three times. The peak of memory is that of the first build.
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
        // Cannot fail: the filter was just built.
        let filter = AnyFilter::open(AlignedBytes::from(bytes.as_slice())).map_err(|_| {
            BuildError::Refused { family: self.spec.family().name(), reason: "it does not open" }
        })?;
        let (build, model_ms) = (Calibrated::of(&times), median(&mut model_times));
        Ok(Built { filter, build, model_ms, build_peak_bytes })
    }
}

/// A query. Its kind is determined before time is taken.
enum Query<'a> {
    Point(&'a [u8]),
    Range(KeyRange<'a>),
}

/// The time of a query, digests included; all queries in the order of the file. The bytes of the queries are contiguous: reading
/// references, or bounds that are not used, would take longer than the filter.
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
            black_box(keys.filter(|key| filter.may_contain(&Probe::new(key, digester))).count());
        };
        return calibration.time(clock, queries.len(), pass);
    }
    let has =
        |lower, upper| filter.may_contain_range(&RangeProbe::new(KeyRange::closed(lower, upper), digester));
    if queries.iter().all(|(lower, upper)| lower != upper) {
        return calibration.time(clock, queries.len(), |count| {
            black_box(queries.iter().take(count).filter(|(lower, upper)| has(lower, upper)).count());
        });
    }
    let of = |(lower, upper)| {
        if lower == upper { Query::Point(lower) } else { Query::Range(KeyRange::closed(lower, upper)) }
    };
    let all: Vec<Query<'_>> = queries.iter().map(of).collect();
    calibration.time(clock, queries.len(), |count| {
        let answers = all.iter().take(count).map(|query| match query {
            Query::Point(key) => filter.may_contain(&Probe::new(key, digester)),
            Query::Range(range) => filter.may_contain_range(&RangeProbe::new(*range, digester)),
        });
        black_box(answers.filter(|answer| *answer).count());
    })
}
