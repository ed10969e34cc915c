//! Runs the cluster with one set of filters after another.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use slatedb::object_store::ObjectStore;
use slatedb::object_store::path::Path;
use tamis_slatedb::{Contents, Design, check_store};
use tamis_slatedb_support::{Address, Credentials};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::Result;
use crate::arguments::Arguments;
use crate::data::Set;
use crate::messages::{Command, Kind, Measurement, Message, Place, Role, Task, Variant};
use crate::report::{self, Outcome};
use crate::worker::{self, Worker};

const BUCKET: &str = "cluster";
/// SlateDB's default.
const DEFAULT_BITS: u32 = 10;
/// A server that does not answer within this time cannot be reached.
const CHECK_LIMIT: Duration = Duration::from_secs(30);

/// The store of the cluster, and the server if it has one.
struct Site {
    place: Place,
    /// The folder in the store.
    path: String,
    /// For tasks of this process.
    store: Arc<dyn ObjectStore>,
    runtime: Runtime,
    /// Dropped last: the server reads the folder.
    _server: Option<(Worker, TempDir)>,
}

impl Site {
    fn open(arguments: &Arguments) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let (place, path, server) = match arguments.url.as_deref() {
            None => {
                let (place, server) = start_server()?;
                (place, String::new(), Some(server))
            }
            Some("memory://") => (Place::Memory, String::new(), None),
            Some(url) => (Place::Address(url.to_owned()), Address::open(url)?.path.to_string(), None),
        };
        let store = worker::open(&place)?;
        // Runs never share a folder, so that their caches, samples and tables do not mix.
        let moment = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis();
        let path = format!("{path}/cluster-{moment}").trim_start_matches('/').to_owned();
        let contents = runtime.block_on(check_store(&store, &Path::from(path.as_str()), CHECK_LIMIT))?;
        if contents != Contents::Empty {
            return Err(format!("{path}: has a database already").into());
        }
        Ok(Self { place, path, store, runtime, _server: server })
    }

    fn start(&self, task: &Task) -> Result<Worker> {
        match self.place {
            Place::Memory => Ok(Worker::task(&self.runtime, task.clone(), Arc::clone(&self.store))),
            _ => Worker::process(task),
        }
    }
}

fn start_server() -> Result<(Place, (Worker, TempDir))> {
    let folder = tempfile::tempdir()?;
    std::fs::create_dir(folder.path().join(BUCKET))?;
    let credentials =
        Credentials { access_key: "cluster".to_owned(), secret_key: "of-this-example".to_owned() };
    let task = Task {
        role: Role::Server { folder: folder.path().display().to_string() },
        place: Place::server(String::new(), BUCKET, &credentials),
        path: String::new(),
        variant: Variant::NoFilters,
        events: 0,
        paths: 0,
        value_bytes: 0,
        queries: 0,
        latency_ms: 0,
    };
    let mut server = Worker::process(&task)?;
    let Message::Listening { endpoint } = server.receive()? else {
        return Err("the S3 server did not start".into());
    };
    println!("S3 server at {endpoint}, bucket {BUCKET}");
    Ok((Place::server(endpoint, BUCKET, &credentials), (server, folder)))
}

/// Whether all figures are reached.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    let arguments = arguments.sized();
    let design: Design = arguments.design.parse()?;
    let site = Site::open(&arguments)?;
    println!(
        "{} events and {} paths, values of {} bytes, {} readers, {} ms of latency added to each request, cache of a tenth of the data",
        arguments.events, arguments.paths, arguments.value_bytes, arguments.readers, arguments.latency_ms
    );
    let equal_bits = design.expected_bits().round() as u32;
    let variants = [
        Variant::NoFilters,
        Variant::Bloom { bits: DEFAULT_BITS },
        Variant::PrefixBloom { bits: DEFAULT_BITS },
        Variant::Bloom { bits: equal_bits },
        Variant::Tamis { design: arguments.design.clone() },
    ];
    let mut outcomes = Vec::new();
    for (index, variant) in variants.into_iter().enumerate() {
        outcomes.push(run_variant(&site, &arguments, index, variant)?);
    }
    report::print(&outcomes, &arguments)
}

fn run_variant(site: &Site, arguments: &Arguments, index: usize, variant: Variant) -> Result<Outcome> {
    let task = |role| Task {
        role,
        place: site.place.clone(),
        path: format!("{}/{index}", site.path),
        variant: variant.clone(),
        events: arguments.events,
        paths: arguments.paths,
        value_bytes: arguments.value_bytes,
        queries: arguments.queries,
        latency_ms: arguments.latency_ms,
    };
    let name = variant.name();
    let total = arguments.events + arguments.paths;
    let mut writer = site.start(&task(Role::Writer))?;
    // The writer creates the databases that the compactor opens.
    let mut compactor = None;
    let mut outcome = Outcome::new(name.clone());
    loop {
        match writer.receive()? {
            Message::Progress { entries, seconds } => {
                if compactor.is_none() {
                    let mut started = site.start(&task(Role::Compactor))?;
                    started.receive()?;
                    compactor = Some(started);
                }
                show(&format!("{name}: {entries} of {total} entries loaded in {seconds:.1} s"));
            }
            Message::FirstTables => {
                if matches!(variant, Variant::Tamis { .. }) {
                    sample(site, &task(Role::Sampler), &mut compactor)?;
                }
                writer.command(Command::ReadSample)?;
            }
            Message::Loaded { seconds, writes, filters } => {
                outcome.load_seconds = seconds;
                outcome.load_entries = total;
                outcome.load_writes = writes;
                outcome.filters = filters;
                show(&format!("{name}: {total} entries loaded in {seconds:.1} s, waiting for the compactor"));
            }
            Message::Settled { tables, overlapping } => {
                outcome.tables = tables;
                outcome.overlapping = overlapping as f64 / Set::ALL.len() as f64;
                break;
            }
            other => return Err(format!("unexpected message of the writer: {other:?}").into()),
        }
    }
    if let Some(mut compactor) = compactor {
        compactor.command(Command::Stop)?;
        if let Message::Done { filters } = compactor.receive()? {
            outcome.filters = format!("writer: {}\n  compactor: {filters}", outcome.filters);
        }
    }
    show(&format!("{name}: reading"));
    outcome.measurements = read(site, arguments, &task)?;
    show("");
    println!("\r{name}: loaded in {:.1} s, {} tables", outcome.load_seconds, outcome.tables);
    Ok(outcome)
}

/// A reader runs queries like those that follow; writer and compactor choose filters by them.
fn sample(site: &Site, task: &Task, compactor: &mut Option<Worker>) -> Result<()> {
    let mut sampler = site.start(task)?;
    let Message::Sampled { queries } = sampler.receive()? else {
        return Err("the reader took no sample".into());
    };
    show(&format!("{}: {queries} queries sampled by a reader", task.variant.name()));
    compactor.as_mut().map_or(Ok(()), |compactor| compactor.command(Command::ReadSample))
}

/// All readers at the same time; the sum of their measurements by kind.
fn read(site: &Site, arguments: &Arguments, task: &impl Fn(Role) -> Task) -> Result<Vec<Measurement>> {
    let readers = (0..arguments.readers.max(1)).map(|index| site.start(&task(Role::Reader { index })));
    let mut readers = readers.collect::<Result<Vec<_>>>()?;
    let mut measured = Vec::new();
    for reader in &mut readers {
        loop {
            match reader.receive()? {
                Message::Measured(measurement) => measured.push(measurement),
                Message::Done { .. } => break,
                other => return Err(format!("unexpected message of a reader: {other:?}").into()),
            }
        }
    }
    let sums = Kind::ALL.into_iter().filter_map(|kind| {
        let parts: Vec<Measurement> = measured.iter().filter(|part| part.kind == kind).copied().collect();
        Measurement::sum(&parts, readers.len())
    });
    Ok(sums.collect())
}

/// One line of progress, which the next one replaces.
fn show(line: &str) {
    eprint!("\r{line:<110}");
    drop(std::io::stderr().flush());
}
