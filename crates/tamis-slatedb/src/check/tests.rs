//! The kind of an error decides, not the digits of a time or an address in its text.

use super::*;

fn kind_of(text: &str) -> StoreError {
    classify(&Path::from("db"), object_store::Error::Generic { store: "S3", source: text.into() })
}

#[test]
fn times_and_addresses_with_the_digits_of_a_status_are_no_status() {
    for text in [
        "in 401.77ms, after 3 retries - connection refused",
        "GET http://127.0.0.1:40403/ - timed out",
        "in 404ms",
    ] {
        assert!(matches!(kind_of(text), StoreError::Unreachable { .. }), "{text}");
    }
    let status = |code: &str| kind_of(&format!("Server returned non-2xx status code: {code}: <Error/>"));
    assert!(matches!(status("403 Forbidden"), StoreError::AccessDenied { .. }));
    assert!(matches!(status("401"), StoreError::AccessDenied { .. }));
    assert!(matches!(status("404"), StoreError::NoBucket { .. }));
}
