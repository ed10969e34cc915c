use super::*;
use crate::version::test_support::summary;

#[test]
fn an_obsolete_file_is_queued_when_its_last_owner_drops_it() {
    let obsolete_files = Arc::new(ObsoleteFiles::default());
    let table = Table::new(summary(5, ("a", "b"), 100, (1, 2)), Some(6), &obsolete_files);
    let reader = Arc::clone(&table);
    table.file().mark_obsolete();
    drop(table);
    assert!(obsolete_files.is_empty(), "a reader still has the table");
    drop(reader);
    assert_eq!(
        obsolete_files.take(),
        [FileName::Table(5)],
        "the filter file was not taken out of the version"
    );
    drop(Table::new(summary(7, ("a", "b"), 100, (1, 2)), None, &obsolete_files));
    assert!(obsolete_files.is_empty(), "the current version names the table");
}

#[test]
fn readers_of_an_older_version_keep_its_filter() {
    let obsolete_files = Arc::new(ObsoleteFiles::default());
    let old = Table::new(summary(5, ("a", "b"), 100, (1, 2)), Some(6), &obsolete_files);
    let new = old.with_filter(Some(9));
    old.filter().into_iter().for_each(|filter| filter.mark_obsolete());
    assert_eq!((old.filter_file(), new.filter_file()), (Some(6), Some(9)));
    assert!(obsolete_files.is_empty());
    drop(old);
    assert_eq!(obsolete_files.take(), [FileName::Filter(6)], "the table's own file stays");
    drop(new);
    assert!(obsolete_files.is_empty());
}
