use super::cases;

#[test]
fn every_case_runs_and_repeats_its_result() {
    for case in cases() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let first =
            case.run(&folder.path().join("a")).unwrap_or_else(|error| panic!("{}: {error}", case.name));
        let second =
            case.run(&folder.path().join("b")).unwrap_or_else(|error| panic!("{}: {error}", case.name));
        assert_eq!(first, second, "{}", case.name);
        let may_be_zero = case.name.contains("absent") || case.name.contains("range");
        assert!(first > 0 || may_be_zero, "{} did nothing", case.name);
    }
}
