//! Prints the factors by which the probe times of this machine differ from the shipped ones, and how long measuring them takes.
//!
//! `cargo run --release -p tamis-filter --example measure_probe_times`. On the reference machine all factors are about 1.

#![expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]

use std::time::Instant;

use tamis_filter::{Family, auto::ProbeTimes};

fn main() {
    for round in 0..3 {
        let start = Instant::now();
        let times = ProbeTimes::measure(&|| start.elapsed(), &|| println!("  {:?}", start.elapsed()));
        println!("round {round}: {:?}", start.elapsed());
        for family in Family::ALL {
            let (measured, shipped) = (times.get(family), ProbeTimes::default().get(family));
            let (point, range) = (measured.point_ns / shipped.point_ns, measured.range_ns / shipped.range_ns);
            println!("{:<14} points {point:.2}, ranges {range:.2}", family.name());
        }
    }
}
