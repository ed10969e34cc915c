//! gen: the files it writes can be loaded, and are not overwritten.

use crate::Folder;

#[test]
fn files_carry_the_published_names_and_are_loaded_again() {
    let folder = Folder::new();
    let words =
        ["gen", "out", "--keys", "gaps", "--count", "1000", "--query-count", "50", "--queries", "all"];
    let names = folder.ok(&words);
    assert!(names.starts_with("out/gaps_n1000_s42.keys\nout/gaps_n1000_s42.uniform_r0_s43.q\n"), "{names}");
    assert!(
        names.contains("out/gaps_n1000_s42.split_s44.s\n")
            && names.ends_with("out/gaps_n1000_s42.fn_s45.q\n")
    );
    assert_eq!(std::fs::metadata(folder.path("out/gaps_n1000_s42.split_s43.q")).unwrap().len(), 8 + 50 * 16);
    folder.ok(&["load", "store", "out/gaps_n1000_s42.keys"]);
    let keys = folder.ok(&["scan", "store", "--key-format", "u64", "--keys-only", "--limit", "2"]);
    assert_eq!(keys, "1000000000000\n1000000001686\n");
}

#[test]
fn files_that_are_there_stay() {
    let folder = Folder::new();
    folder.ok(&["gen", ".", "--count", "10"]);
    folder.write("uniform_n10_s42.keys", "mine");
    let message = folder.fails(4, &["gen", ".", "--count", "10"]);
    assert!(message.contains("--force"), "{message}");
    assert_eq!(std::fs::read(folder.path("uniform_n10_s42.keys")).unwrap(), b"mine");
    folder.ok(&["gen", ".", "--count", "10", "--force", "--json"]);
    assert_eq!(std::fs::metadata(folder.path("uniform_n10_s42.keys")).unwrap().len(), 88);
}

#[test]
fn ranges_that_can_not_be_are_refused() {
    let folder = Folder::new();
    let words = ["gen", ".", "--keys", "gaps", "--count", "10000", "--queries", "uniform_r1m"];
    let message = folder.fails(2, &words);
    assert!(message.contains("take shorter ones"), "{message}");
    assert!(folder.is_empty());
}
