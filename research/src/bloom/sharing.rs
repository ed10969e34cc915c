//! The time saved by sharing one digest between the filters of all levels: Figures 1 and 5 to 9 of the paper.

use super::levels::{Shape, measure};
use tamis_bench::{Axis, Definition, Plot, Point, Size, published};

/// The key sizes of the paper.
const KEY_BYTES: [usize; 8] = [8, 16, 32, 64, 128, 256, 512, 1024];

/// A plot with one line per hash and one panel per device.
const fn plot(name: &'static str, title: &'static str, x: &'static str, y: &'static str) -> Plot {
    Plot { name, title, x, y, series: "hash", panel: "device", ..Plot::NEW }
}

/// Figure 1: the share of hashing in a lookup.
pub(super) const FIGURE_1: Definition = Definition {
    name: "bloom-figure-1",
    title: "Share of hashing in a lookup, by levels and device",
    source: "Hash sharing, Figure 1",
    about: "Without sharing, the key is hashed again for every level. `hash_share_percent` is the number of probed filters times the time of a hash, divided by the time of a lookup; half of the keys are present. `model_hash_share_percent` is the same in the cost model of the paper (Equation 4), from the time of a digest, the time of a read (`read_ns`) and the false positive rate. The paper gives one number: hashing takes about 80 % of a lookup in 2 GB (four levels) if a read takes 10 us.",
    points: points_1,
    measure,
    plots: &[
        plot("share", "Share of hashing in a lookup", "levels", "hash_share_percent"),
        plot("model-share", "Share of hashing by the cost model", "levels", "model_hash_share_percent"),
    ],
    paper: &[],
};

fn points_1(size: Size) -> Vec<Point> {
    let mut points = Vec::new();
    for level_count in size.pick(vec![2, 4], vec![1, 3, 5], vec![1, 2, 3, 4, 5, 6, 7]) {
        for (device, hash) in [("memory", "own"), ("memory", "murmur"), ("direct", "murmur")] {
            let paper = Shape::of_paper(size);
            points.push(
                Shape { level_count, device, hash, present_percent: 50, size_ratio: 4, ..paper }.point(),
            );
        }
    }
    points
}

/// Figure 5a: by key size.
pub(super) const FIGURE_5A: Definition = Definition {
    name: "bloom-figure-5a",
    title: "Lookups with and without sharing, by key size",
    source: "Hash sharing, Figure 5a",
    about: "Absent keys, five levels, entries of 2 KiB. Sharing saves more time for longer keys. A lookup without sharing computes a digest per filter before the lookup. `saved_by_model` is the saved time divided by the time of the same digests in a loop without lookups.",
    points: points_5a,
    measure,
    plots: &[
        Plot { x_axis: Axis::Log, ..plot("shared", "Lookup with sharing, ns", "key_bytes", "shared_ns") },
        Plot {
            x_axis: Axis::Log,
            ..plot("unshared", "Lookup without sharing, ns", "key_bytes", "unshared_ns")
        },
        Plot {
            x_axis: Axis::Log,
            ..plot("gain", "Time saved by sharing, percent", "key_bytes", "gain_percent")
        },
    ],
    paper: &[
        published("key_bytes=8; device=direct; hash=murmur", "gain_percent", 10.0),
        published("key_bytes=1024; device=direct; hash=murmur", "gain_percent", 33.0),
    ],
};

fn points_5a(size: Size) -> Vec<Point> {
    let mut points = Vec::new();
    for key_bytes in size.pick(vec![8, 512], KEY_BYTES.to_vec(), KEY_BYTES.to_vec()) {
        for (device, hash) in [("memory", "own"), ("memory", "murmur"), ("direct", "murmur")] {
            let paper = Shape::of_paper(size);
            let entry_count = paper.entry_count / 2;
            points.push(Shape { key_bytes, device, hash, entry_bytes: 2048, entry_count, ..paper }.point());
        }
    }
    points
}

/// Figure 5b: by levels.
pub(super) const FIGURE_5B: Definition = Definition {
    name: "bloom-figure-5b",
    title: "Lookups with and without sharing, by levels",
    source: "Hash sharing, Figure 5b",
    about: "Absent keys of 512 bytes, size ratio 2. Each level adds a digest and a filter probe without sharing, and only a filter probe with sharing. The paper gives no numbers for this figure.",
    points: points_5b,
    measure,
    plots: &[
        plot("shared", "Lookup with sharing, ns", "levels", "shared_ns"),
        plot("unshared", "Lookup without sharing, ns", "levels", "unshared_ns"),
        plot("gain", "Time saved by sharing, percent", "levels", "gain_percent"),
    ],
    paper: &[],
};

fn points_5b(size: Size) -> Vec<Point> {
    let mut points = Vec::new();
    for level_count in size.pick(vec![5], vec![5, 8, 11, 14], (5..=14).collect()) {
        for (device, hash) in [("memory", "own"), ("memory", "murmur"), ("direct", "murmur")] {
            let paper = Shape::of_paper(size);
            points.push(Shape { level_count, device, hash, size_ratio: 2, ..paper }.point());
        }
    }
    points
}

/// Figure 6: by device.
pub(super) const FIGURE_6: Definition = Definition {
    name: "bloom-figure-6",
    title: "Time saved by sharing, by device",
    source: "Hash sharing, Figure 6",
    about: "Absent keys of 512 bytes, five levels: direct reads from the disk of this machine, and tables in memory. The devices of the paper are an SSD, a PCIe SSD and a RAM disk; Table 1 has the time of a read on this machine.",
    points: points_6,
    measure,
    plots: &[Plot { panel: "", ..plot("gain", "Time saved by sharing, percent", "device", "gain_percent") }],
    paper: &[
        published("device=direct; hash=murmur", "gain_percent", 20.0),
        published("device=memory; hash=murmur", "gain_percent", 65.0),
    ],
};

fn points_6(size: Size) -> Vec<Point> {
    let ways = [("memory", "own"), ("memory", "murmur"), ("direct", "own"), ("direct", "murmur")];
    let point = |(device, hash)| Shape { device, hash, ..Shape::of_paper(size) }.point();
    ways.into_iter().map(point).collect()
}

/// Figure 7: by bits per key.
pub(super) const FIGURE_7: Definition = Definition {
    name: "bloom-figure-7",
    title: "Time saved by sharing, by bits per key",
    source: "Hash sharing, Figure 7",
    about: "Absent keys of 512 bytes, five levels. With fewer false-positive reads, hashing is a larger share of a lookup.",
    points: points_7,
    measure,
    plots: &[plot("gain", "Time saved by sharing, percent", "bits", "gain_percent")],
    paper: &[
        published("bits=10; device=direct; hash=murmur", "gain_percent", 20.0),
        published("bits=10; device=memory; hash=murmur", "gain_percent", 65.0),
    ],
};

fn points_7(size: Size) -> Vec<Point> {
    let mut points = Vec::new();
    for bits_per_key in
        size.pick(vec![10.0], vec![8.0, 10.0, 12.0, 14.0], vec![8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0])
    {
        for (device, hash) in [("memory", "own"), ("memory", "murmur"), ("direct", "murmur")] {
            points.push(Shape { bits_per_key, device, hash, ..Shape::of_paper(size) }.point());
        }
    }
    points
}

/// Figures 8 and 9: by the share of present keys.
pub(super) const FIGURES_8_9: Definition = Definition {
    name: "bloom-figures-8-9",
    title: "Time saved by sharing, by the share of present keys",
    source: "Hash sharing, Figures 8 and 9",
    about: "Keys of 512 bytes, five levels; with direct reads from disk (Figure 8) and in memory (Figure 9). A present key costs a read with and without sharing.",
    points: points_8_9,
    measure,
    plots: &[
        plot("shared", "Lookup with sharing, ns", "present_percent", "shared_ns"),
        plot("unshared", "Lookup without sharing, ns", "present_percent", "unshared_ns"),
        plot("gain", "Time saved by sharing, percent", "present_percent", "gain_percent"),
    ],
    paper: &[
        published("present_percent=0; device=memory; hash=murmur", "gain_percent", 75.0),
        published("present_percent=100; device=memory; hash=murmur", "gain_percent", 15.0),
    ],
};

fn points_8_9(size: Size) -> Vec<Point> {
    let mut points = Vec::new();
    for present_percent in size.pick(vec![50], vec![0, 50, 100], vec![0, 20, 40, 60, 80, 100]) {
        for (device, hash) in [("memory", "own"), ("memory", "murmur"), ("direct", "murmur")] {
            points.push(Shape { present_percent, device, hash, ..Shape::of_paper(size) }.point());
        }
    }
    points
}
