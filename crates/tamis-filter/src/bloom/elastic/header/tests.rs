//! Any number of units has its predicted rate; damaged units are refused.
#![expect(clippy::indexing_slicing, reason = "tests may panic")]

use super::ElasticHeader;
use crate::bloom::elastic::ElasticBuilder;
use crate::{AnyFilter, Budget, DecodeError, Digester, Filter, FilterBuilder, Probe, Samples};

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
    let filter = AnyFilter::open(build(20_000)).expect("whole");
    let AnyFilter::Elastic(filter) = &filter else { panic!("another family was opened") };
    assert_eq!(filter.header().unit_count(), 4);
    let digester = Digester::new(SEED);
    let query_count = 400_000_u64;
    for loaded_count in 0..=3 {
        let predicted = filter.header().fpr(loaded_count);
        let may_contain =
            |key: u64| filter.may_contain_loaded(&Probe::new(&key.to_be_bytes(), &digester), loaded_count);
        let positives = (0..query_count).filter(|query| may_contain(query * 3 + 1)).count();
        let measured = positives as f64 / query_count as f64;
        assert!((measured / predicted - 1.0).abs() < 0.06, "{loaded_count}: {measured} {predicted}");
        assert!((0..20_000).all(|key| may_contain(key * 3)));
    }
}

#[test]
fn a_lookup_over_all_units_computes_one_digest() {
    let bytes = build(1000);
    let filter = AnyFilter::open(bytes).expect("whole");
    let digester = Digester::new(SEED);
    let key = 3_u64.to_be_bytes();
    let probe = Probe::new(&key, &digester);
    assert!(filter.may_contain(&probe));
    assert_eq!((probe.digest_count(), probe.probe_count()), (1, 4));
}

#[test]
fn without_units_no_digest_is_computed() {
    let digester = Digester::new(SEED);
    let probe = Probe::new(b"absent", &digester);
    assert!(header(&build(1000)).ask(&probe, std::iter::empty::<(u64, &[u8])>()));
    assert_eq!(probe.digest_count(), 0);
}

#[test]
fn damaged_and_foreign_units_are_refused() {
    let bytes = build(1000);
    let header = header(&bytes);
    for number in 0..header.unit_count() {
        header.check_unit(number, unit(&bytes, &header, number)).expect("whole");
    }
    let mut damaged = unit(&bytes, &header, 0).to_vec();
    damaged[5] ^= 1;
    assert!(matches!(header.check_unit(0, &damaged), Err(DecodeError::Checksum { part: "unit", .. })));
    assert!(header.check_unit(0, unit(&bytes, &header, 1)).is_err(), "the unit of another number");
    assert!(matches!(header.check_unit(0, &[]), Err(DecodeError::Length { .. })));
    let whole = unit(&bytes, &header, 0);
    assert!(header.check_unit(header.unit_count(), whole).is_err(), "there are no more");
}
