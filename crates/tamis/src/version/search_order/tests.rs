#![expect(clippy::unwrap_used, reason = "tests may panic")]

use super::*;
use crate::version::test_support::table;

/// Levels with one run for each list of tables, the first in L0.
fn levels(runs: &[&[(&str, &str)]]) -> Vec<Level> {
    let mut number = 0;
    let mut level_of = |tables: &&[(&str, &str)]| {
        let mut level = Level::default();
        for ends in *tables {
            number += 1;
            level.run_or_new(1).insert(table(number, *ends, 100, (1, 9)));
        }
        level
    };
    runs.iter().map(&mut level_of).collect()
}

fn numbers(order: &SearchOrder, key: &str) -> Vec<u64> {
    order.tables_of(key.as_bytes()).map(|(_, _, table)| table.number()).collect()
}

#[test]
fn each_run_names_the_same_table_as_without_the_order() {
    let long = |text: &str| format!("a common beginning of ids/{text}");
    let ends = [("b", "d"), ("f", "f"), ("m", "p"), ("c", "n"), ("aaaaaaaaa1", "zzzzzzzzzz"), ("", "d")];
    let ends = ends.map(|(first, last)| (long(first), long(last)));
    let ends: Vec<(&str, &str)> = ends.iter().map(|(first, last)| (first.as_str(), last.as_str())).collect();
    let part = |range: std::ops::Range<usize>| ends.get(range).unwrap();
    let levels = levels(&[part(0..3), part(3..4), part(4..5), part(5..6)]);
    let order = SearchOrder::new(&levels);
    assert_eq!(&*order.shared, long("").as_bytes());
    let mut keys: Vec<String> =
        ["", "a", "b", "c", "d", "d0", "e", "f", "f0", "m", "n", "n0", "p", "q", "zzzzzzzzzz"]
            .into_iter()
            .chain(["aaaaaaaa", "aaaaaaaaa0", "aaaaaaaaa1", "zzzzzzzzz", "zzzzzzzzzz0"])
            .map(long)
            .collect();
    keys.extend(["", "a common", "b", "a common beginning of ids."].map(str::to_owned));
    for key in keys {
        let expected: Vec<u64> = levels
            .iter()
            .flat_map(|level| level.runs())
            .filter_map(|run| run.table_of(key.as_bytes()).map(|table| table.number()))
            .collect();
        assert_eq!(numbers(&order, &key), expected, "{key}");
    }
}

#[test]
fn runs_are_in_the_order_of_levels() {
    let levels = levels(&[&[("b", "d")], &[], &[("a", "c"), ("d", "e")]]);
    let order = SearchOrder::new(&levels);
    assert_eq!(order.runs().map(|(level, _)| level).collect::<Vec<_>>(), [0, 2]);
    assert_eq!(numbers(&order, "d"), [1, 3]);
    assert!(SearchOrder::new(&[]).runs().next().is_none());
}
