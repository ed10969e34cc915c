use std::collections::BTreeSet;

use tamis_workload::{Workload, operations::YCSB};

use super::*;

fn workload(name: &str) -> Workload {
    name.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn keys(script: &Script) -> Vec<Vec<u8>> {
    script.parts().iter().flat_map(|part| part.iter().map(|ready| ready.key.to_vec())).collect()
}

#[test]
fn operations_do_not_depend_on_the_number_of_threads() {
    for workload in YCSB {
        let of = |threads| Script::deal(workload.operations(500, 300, 7), KeyForm::Hex, threads);
        let (one, three) = (of(1), of(3));
        assert_eq!((one.operation_count(), three.operation_count(), three.parts().len()), (300, 300, 3));
        let (mut all, mut parts) = (keys(&one), keys(&three));
        all.sort_unstable();
        parts.sort_unstable();
        assert_eq!(all, parts, "{workload}");
        assert_eq!(of(3).digest(), three.digest());
        assert_ne!(one.digest(), three.digest());
        let other = Script::deal(workload.operations(500, 300, 8), KeyForm::Hex, 1);
        assert_ne!(one.digest(), other.digest());
    }
}

#[test]
fn sorted_operations_are_distributed_in_chunks() {
    let script = Script::deal_chunks(
        &workload("fillseq").operations(0, 1001, 7).sorted(KeyForm::Hex),
        KeyForm::Hex,
        2,
    );
    let keys = keys(&script);
    assert!(keys.is_sorted() && keys.iter().collect::<BTreeSet<_>>().len() == 1001);
    let script = script.with_background(workload("overwrite").operations(10, 5, 7), KeyForm::Integer);
    assert_eq!(script.parts().iter().map(Part::len).collect::<Vec<_>>(), [501, 500, 5]);
}

#[test]
fn ranges_have_both_bounds() {
    let script = Script::deal(workload("empty-near").operations(100, 50, 7), KeyForm::Hex, 1);
    for ready in script.parts().iter().flat_map(Part::iter) {
        assert!(ready.key < ready.upper && ready.upper.len() == 16);
    }
}

#[test]
fn values_differ_and_half_of_each_is_compressible() {
    let values = Values::new(100, 7);
    let distinct: BTreeSet<&[u8]> = (0..4000).map(|number| values.get(number)).collect();
    assert_eq!(distinct.len(), 4000);
    for value in distinct {
        let dots = value.iter().filter(|byte| **byte == b'.').count();
        assert!(value.len() == 100 && (40..=60).contains(&dots), "{dots}");
    }
    assert_eq!(Values::new(0, 7).get(5), b"");
    assert_eq!(Values::new(1, 7).get(5).len(), 1);
}
