//! Names and parameters, and the texts of errors.

use crate::{Budget, BuildError, FilterSpec, Samples};

fn builder_error(text: &str) -> String {
    let spec: Result<FilterSpec, BuildError> = text.parse();
    match spec.and_then(|spec| spec.builder(1)) {
        Ok(_) => "no error".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn errors_of_unknown_names_list_the_known_ones() {
    let error = builder_error("blom");
    assert!(error.contains("\"blom\"") && error.contains("blocked-bloom"), "{error}");
    let error = builder_error("blocked-bloom:prob=3");
    assert!(error.contains("\"prob\"") && error.contains("probes"), "{error}");
}

#[test]
fn impossible_values_are_refused() {
    for value in ["0", "17", "x", "", "-1"] {
        let error = builder_error(&format!("blocked-bloom:probes={value}"));
        assert!(error.contains("1 to 16"), "{error}");
    }
    assert_eq!(builder_error("blocked-bloom:probes=16"), "no error");
    assert_eq!(builder_error("blocked-bloom:"), "no error");
}

#[test]
fn impossible_budgets_are_refused() {
    for bits in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300] {
        assert!(matches!(Budget::bits_per_key(bits), Err(BuildError::Budget { .. })), "{bits}");
    }
    let builder =
        "blocked-bloom".parse::<FilterSpec>().and_then(|spec| spec.builder(1)).expect("a known family");
    let refusal = builder.finish(Budget::BY_PARAMETERS, Samples::NONE);
    assert!(matches!(refusal, Err(BuildError::BudgetMissing { .. })));
}
