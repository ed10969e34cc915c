use super::*;
use crate::error::Error;

#[test]
fn parallel_work_returns_results_in_order_and_the_first_error() {
    let items: Vec<u64> = (0..100).collect();
    assert_eq!(
        in_parallel(&items, |item| Ok(item * 2)).expect("no error"),
        (0..100).map(|item| item * 2).collect::<Vec<_>>()
    );
    let failed = in_parallel(&items, |item| if *item == 50 { Err(Error::Cancelled) } else { Ok(()) });
    assert!(matches!(failed, Err(Error::Cancelled)));
    assert!(in_parallel(&[] as &[u64], |_| Ok(())).expect("no error").is_empty());
}
