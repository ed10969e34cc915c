//! The pictures of large and of unusual keyspaces.

use super::*;

fn table(level: usize, run: usize, (smallest, largest): (u64, u64)) -> TableStatistics {
    let mut table = TableStatistics::default();
    (table.level, table.run) = (level, run);
    (table.smallest_key, table.largest_key) = (smallest.to_be_bytes().into(), largest.to_be_bytes().into());
    (table.bytes, table.entry_count) = (1 << 20, 10_000);
    table
}

#[test]
fn the_map_of_ten_thousand_tables_is_small_and_counts_all_of_them() {
    for runs in [1, 3, 200] {
        let of_run =
            |run| (0..10_000 / runs as u64).map(move |place| table(0, run, (2 * place, 2 * place + 1)));
        let tables: Vec<_> = (0..runs).flat_map(of_run).collect();
        let keys = KeySpace::new(&tables);
        let picture = map(&tables, &keys);
        let rows = runs.min(RUNS_MAX);
        let box_count = picture.matches("<rect").count();
        assert!(box_count <= rows * 400 && box_count <= BOXES_MAX + rows, "{runs} runs: {box_count} boxes");
        assert!(picture.len() < 1_200_000, "{runs} runs: {} bytes", picture.len());
        let counts = picture.split("<title>").skip(1).filter_map(|tip| tip.split(' ').next());
        let counts = counts.filter_map(|count| count.replace(',', "").parse::<usize>().ok());
        assert_eq!(counts.sum::<usize>(), tables.len());
        let (_, highest, mean) = depths(&keys);
        assert_eq!((highest, mean.round() as usize), (runs, runs));
    }
}

#[test]
fn tables_of_deletes_have_another_colour() {
    let keys = |table: &TableStatistics| KeySpace::new(std::slice::from_ref(table));
    let colour_of = |tombstones, range_tombstones| {
        let mut table = table(1, 0, (1, 9));
        (table.tombstone_count, table.range_tombstone_count) = (tombstones, range_tombstones);
        let boxes = boxes(&[&table], &keys(&table), 0.01);
        boxes.first().map(TableBox::colour)
    };
    assert_eq!(colour_of(1, 0), Some(Colour::Blue));
    assert_eq!(colour_of(2_000, 0), Some(Colour::Orange));
    assert_eq!(colour_of(0, 1), Some(Colour::Orange));
    assert_eq!(colour_of(6_000, 1), Some(Colour::Red));
}

#[test]
fn many_partitions_have_no_bounds() {
    let partitioned = |count: u64| -> Vec<TableStatistics> {
        let of_partition = |number: u64| {
            let mut table = table(0, 0, (2 * number, 2 * number + 1));
            table.partition = (2 * number).to_be_bytes().into();
            table
        };
        (0..count).map(of_partition).collect()
    };
    let bounds = |count| {
        let tables = partitioned(count);
        map(&tables, &KeySpace::new(&tables)).matches("<line").count()
    };
    assert_eq!((bounds(5), bounds(1_000)), (4, 0));
}
