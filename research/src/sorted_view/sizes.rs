//! Sizes of views for the key and value sizes that Table 1 of the REMIX paper takes from published workloads.

use tamis::bench_internals::TableSetWriter;
use tamis_workload::SplitMix64;

use tamis_bench::{BenchError, Context, Definition, Needs, Plot, Point, Published, Row, Size, published};

/// Name, and bytes of key and value.
const WORKLOADS: [(&str, usize, usize); 8] = [
    ("UDB", 27, 127),
    ("Zippy", 48, 43),
    ("UP2X", 10, 47),
    ("USR", 19, 2),
    ("APP", 38, 245),
    ("ETC", 41, 358),
    ("VAR", 35, 115),
    ("SYS", 28, 396),
];
const TABLE_COUNT: usize = 8;
const BITS_PER_KEY: f32 = 10.0;
/// Bytes of a key that differ between keys.
const DISTINCT_BYTES: usize = 8;

const fn bytes(of: &'static str, value: f64) -> Published {
    published(of, "view_bytes_per_entry", value)
}

/// The experiment.
pub(super) const TABLE_1: Definition = Definition {
    name: "remix-table-1",
    title: "REMIX: sizes of views",
    source: "REMIX, Table 1",
    about: "Bytes per entry of views of 8 tables, of the block indexes and of the filters, for the mean key and value sizes of published workloads. The paper's sizes have no differences, infixes and tags.",
    points,
    measure,
    plots: &[Plot {
        name: "sizes",
        title: "Bytes of the view per entry",
        x: "workload",
        y: "view_bytes_per_entry",
        series: "segment",
        ..Plot::NEW
    }],
    paper: &[
        bytes("workload=UDB; segment=16", 4.1),
        bytes("workload=UDB; segment=32", 2.2),
        bytes("workload=UDB; segment=64", 1.3),
        bytes("workload=Zippy; segment=16", 5.4),
        bytes("workload=Zippy; segment=32", 2.9),
        bytes("workload=Zippy; segment=64", 1.6),
        bytes("workload=UP2X; segment=16", 3.0),
        bytes("workload=UP2X; segment=32", 1.7),
        bytes("workload=UP2X; segment=64", 1.0),
        bytes("workload=USR; segment=16", 3.6),
        bytes("workload=USR; segment=32", 2.0),
        bytes("workload=USR; segment=64", 1.2),
        bytes("workload=APP; segment=16", 4.8),
        bytes("workload=APP; segment=32", 2.6),
        bytes("workload=APP; segment=64", 1.5),
        bytes("workload=ETC; segment=16", 4.9),
        bytes("workload=ETC; segment=32", 2.7),
        bytes("workload=ETC; segment=64", 1.5),
        bytes("workload=VAR; segment=16", 4.6),
        bytes("workload=VAR; segment=32", 2.5),
        bytes("workload=VAR; segment=64", 1.4),
        bytes("workload=SYS; segment=16", 4.1),
        bytes("workload=SYS; segment=32", 2.3),
        bytes("workload=SYS; segment=64", 1.3),
    ],
};

fn points(size: Size) -> Vec<Point> {
    let entries: u64 = size.pick(10_000, 200_000, 2_000_000);
    let mut points = Vec::new();
    for (workload, key, value) in WORKLOADS {
        for segment in [16_u64, 32, 64] {
            let bytes = (key + value + 30) as u64;
            let needs = Needs { disk_bytes: entries * bytes, memory_bytes: entries * 60 + (64 << 20) };
            let point = Point::new().with("workload", workload).with("segment", segment);
            points.push(point.with("entries", entries).needing(needs));
        }
    }
    points
}

/// A key of this length: text that keys share, then a number.
fn key(number: u64, length: usize) -> Vec<u8> {
    let mut key = vec![b'k'; length.saturating_sub(DISTINCT_BYTES)];
    key.extend_from_slice(&number.to_be_bytes());
    key.truncate(length);
    key
}

fn measure(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let (name, segment) = (point.text("workload")?, point.integer("segment")?);
    let entries = point.integer("entries")?;
    let found = WORKLOADS.iter().find(|(own, ..)| *own == name);
    let &(_, key_bytes, value_bytes) =
        found.ok_or_else(|| BenchError::other(format!("unknown workload: {name}")))?;
    let folder = context.scratch()?;
    let mut random = SplitMix64::new(context.seed());
    let mut numbers: Vec<u64> = (0..entries).map(|_| random.next_u64()).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let mut writer = TableSetWriter::create(folder.path(), TABLE_COUNT, BITS_PER_KEY)?;
    for (place, number) in numbers.iter().enumerate() {
        let table = if place < TABLE_COUNT { place } else { random.below(TABLE_COUNT as u64) as usize };
        writer.add(table, &key(*number, key_bytes), &vec![1; value_bytes])?;
        if place % 10_000 == 0 {
            context.progress(place as f64 / numbers.len() as f64)?;
        }
    }
    let set = writer.finish(1 << 20)?;
    let view = set.view(segment as usize)?;
    let per_entry = |bytes: u64| bytes as f64 / set.entry_count().max(1) as f64;
    let (index_bytes, filter_bytes) = set.index_and_filter_bytes();
    Ok(Row::new()
        .with("view_bytes_per_entry", per_entry(view.file_bytes()))
        .with("index_bytes_per_entry", per_entry(index_bytes))
        .with("filter_bytes_per_entry", per_entry(filter_bytes))
        .with("share_of_data", view.file_bytes() as f64 / set.file_bytes().max(1) as f64))
}
