//! Units come and go; what is there answers, damage is refused.
#![expect(clippy::indexing_slicing, reason = "tests may panic")]

use super::{ElasticHeader, ElasticUnits};
use crate::bloom::elastic::ElasticBuilder;
use crate::{Budget, DecodeError, Digester, Filter, FilterBuilder, Probe, Samples};

const SEED: u64 = 12;

fn build(key_count: u64) -> Vec<u8> {
    let mut builder = ElasticBuilder::new(SEED);
    for key in 0..key_count {
        builder.add(&(key * 3).to_be_bytes()).expect("sorted");
    }
    builder.finish(Budget::bits_per_key(12.0).expect("possible"), Samples::NONE).expect("fits")
}

fn header(bytes: &[u8]) -> ElasticHeader {
    ElasticHeader::parse(&bytes[..ElasticHeader::BYTES], bytes.len() as u64).expect("whole")
}

fn unit<'a>(bytes: &'a [u8], header: &ElasticHeader, number: u32) -> &'a [u8] {
    let range = header.unit_range(number).expect("there");
    &bytes[range.start as usize..range.end as usize]
}

#[test]
fn each_unit_multiplies_the_rate() {
    let bytes = build(20_000);
    let header = header(&bytes);
    assert_eq!(header.unit_count(), 4);
    let mut units = ElasticUnits::new(header.clone());
    let digester = Digester::new(SEED);
    let query_count = 400_000_u64;
    for loaded_count in 0..=3 {
        assert_eq!(units.loaded_count(), loaded_count);
        let predicted = units.predicted_fpr().expect("known");
        let positives = (0..query_count)
            .filter(|query| units.may_contain(&Probe::new(&(query * 3 + 1).to_be_bytes(), &digester)))
            .count();
        let measured = positives as f64 / query_count as f64;
        assert!((measured / predicted - 1.0).abs() < 0.06, "{loaded_count}: {measured} {predicted}");
        for key in 0..20_000_u64 {
            assert!(units.may_contain(&Probe::new(&(key * 3).to_be_bytes(), &digester)));
        }
        units.load(unit(&bytes, &header, loaded_count)).expect("whole");
    }
    units.verify().expect("whole");
    assert!(units.load(unit(&bytes, &header, 0)).is_err(), "there are no more");
    assert_eq!(units.unload(), Some(unit(&bytes, &header, 3)));
}

#[test]
fn a_lookup_over_all_units_computes_one_digest() {
    let bytes = build(1000);
    let filter = crate::AnyFilter::open(bytes).expect("whole");
    let digester = Digester::new(SEED);
    let key = 3_u64.to_be_bytes();
    let probe = Probe::new(&key, &digester);
    assert!(filter.may_contain(&probe));
    assert_eq!((probe.digest_count(), probe.probe_count()), (1, 4));
}

#[test]
fn without_units_nothing_is_hashed() {
    let units = ElasticUnits::<Vec<u8>>::new(header(&build(1000)));
    let digester = Digester::new(SEED);
    let probe = Probe::new(b"absent", &digester);
    assert!(units.may_contain(&probe));
    assert_eq!(probe.digest_count(), 0);
}

#[test]
fn damaged_and_foreign_units_are_refused() {
    let bytes = build(1000);
    let header = header(&bytes);
    let mut units = ElasticUnits::new(header.clone());
    let mut damaged = unit(&bytes, &header, 0).to_vec();
    damaged[5] ^= 1;
    assert!(matches!(units.load(damaged), Err(DecodeError::Checksum { part: "unit", .. })));
    assert!(units.load(unit(&bytes, &header, 1).to_vec()).is_err(), "the unit of another number");
    assert!(matches!(units.load(Vec::new()), Err(DecodeError::Length { .. })));
    assert_eq!(units.loaded_count(), 0);
}
