//! Filters: hostile bytes get an error or any answer, and a filter that was built never denies one of its keys.

use std::ops::Bound;

use arbitrary::{Arbitrary, Unstructured};
use tamis_filter::{
    AnyFilter, Budget, Digester, Family, Filter, FilterSpec, KeyRange, Probe, RangeProbe, Samples,
};

#[derive(Debug, Arbitrary)]
enum Input {
    /// Bytes of a filter that nobody built.
    Hostile { bytes: Vec<u8>, queries: Vec<Vec<u8>> },
    /// A filter of these keys, with one byte changed where `flip` says so.
    Built {
        family: u8,
        seed: u64,
        bits_per_key: u8,
        keys: Vec<Vec<u8>>,
        flip: Option<(u16, u8)>,
        queries: Vec<Vec<u8>>,
    },
}

/// See the head of this file.
pub fn filter(data: &[u8]) {
    match Input::arbitrary(&mut Unstructured::new(data)) {
        Ok(Input::Hostile { bytes, queries }) => ask(&bytes, 0, &queries),
        Ok(Input::Built { family, seed, bits_per_key, keys, flip, queries }) => {
            let family = Family::ALL[usize::from(family) % Family::ALL.len()];
            built(family, seed, bits_per_key, keys, flip, &queries);
        }
        Err(_) => {}
    }
}

fn built(
    family: Family,
    seed: u64,
    bits_per_key: u8,
    mut keys: Vec<Vec<u8>>,
    flip: Option<(u16, u8)>,
    queries: &[Vec<u8>],
) {
    keys.sort();
    let mut builder = FilterSpec::new(family).builder(seed).expect("the defaults are possible");
    for key in &keys {
        builder.add(key).expect("keys come in order");
    }
    let budget = Budget::bits_per_key(1.0 + f64::from(bits_per_key % 32)).expect("1 to 32 bits");
    let Ok(mut bytes) = builder.finish(budget, Samples::NONE) else { return };
    ask(&bytes, seed, queries);
    if let Some((at, mask)) = flip.filter(|(_, mask)| *mask != 0) {
        let at = usize::from(at) % bytes.len();
        bytes[at] ^= mask;
        return ask(&bytes, seed, queries);
    }
    let opened = AnyFilter::open(bytes).expect("what was built opens");
    opened.verify().expect("what was built is whole");
    let digester = Digester::new(seed);
    for key in &keys {
        assert!(opened.may_contain(&Probe::new(key, &digester)), "a key was lost: {key:?}");
        let range = KeyRange::new(Bound::Included(key), Bound::Included(key));
        assert!(
            opened.may_contain_range(&RangeProbe::new(range, &digester)),
            "a range lost its key: {key:?}"
        );
    }
}

/// Opens and asks; only the absence of panics is looked at.
fn ask(bytes: &[u8], seed: u64, queries: &[Vec<u8>]) {
    let Ok(opened) = AnyFilter::open(bytes) else { return };
    let _ = opened.verify();
    let digester = Digester::new(seed);
    for pair in queries.windows(2) {
        opened.may_contain(&Probe::new(&pair[0], &digester));
        let range = KeyRange::new(Bound::Included(&pair[0]), Bound::Excluded(&pair[1]));
        opened.may_contain_range(&RangeProbe::new(range, &digester));
    }
}
