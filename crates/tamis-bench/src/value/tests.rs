#![expect(clippy::unwrap_used, reason = "tests may panic")]

use super::*;

#[test]
fn values_round_trip_through_json() {
    let point =
        Point::new().with("zeta", 0.1 + 0.2).with("alpha", 7_u64).with("name", "x y").with("ten", 10.0);
    let text = serde_json::to_string(&point).unwrap();
    assert_eq!(text, r#"{"zeta":0.30000000000000004,"alpha":7,"name":"x y","ten":10.0}"#, "in order");
    let read: Point = serde_json::from_str(&text).unwrap();
    assert!(read.is_same(&point));
    assert!(!read.is_same(&point.clone().with("alpha", 8_u64)));
    assert!(!read.is_same(&point.clone().with("more", 8_u64)));

    let row = Row::new().with("nothing", f64::NAN).with("none", None::<u64>).with("flag", true);
    let text = serde_json::to_string(&row.fields).unwrap();
    assert_eq!(text, r#"{"nothing":null,"none":null,"flag":true}"#);
    assert_eq!(serde_json::from_str::<Fields>(&text).unwrap(), row.fields);

    let row = Row::new().with("list", [3_u64, 0, 7].as_slice()).with("object", point.fields().clone());
    let text = serde_json::to_string(&row.fields).unwrap();
    let object = r#"{"zeta":0.30000000000000004,"alpha":7,"name":"x y","ten":10.0}"#;
    assert_eq!(text, format!(r#"{{"list":[3,0,7],"object":{object}}}"#));
    assert_eq!(serde_json::from_str::<Fields>(&text).unwrap(), row.fields);
    let shown = |name: &str| row.fields.get(name).unwrap().to_string();
    assert_eq!([shown("list"), shown("object")], ["3 0 7", "zeta=0.3 alpha=7 name=x y ten=10"]);
}

#[test]
fn unknown_parameters_and_wrong_types_are_errors() {
    let point = Point::new().with("keys", 5_u64).with("set", "uniform");
    let message = point.integer("key").unwrap_err().to_string();
    assert_eq!(message, "no parameter named \"key\"; there are: keys, set");
    assert!(point.integer("set").is_err() && point.text("keys").is_err() && point.number("set").is_err());
    assert_eq!((point.integer("keys").unwrap(), point.number("keys").unwrap()), (5, 5.0));
    assert_eq!(point.text("set").unwrap(), "uniform");
}

#[test]
fn numbers_are_printed_with_four_significant_digits() {
    let shown = |number: f64| Value::from(number).to_string();
    let expected = ["0", "0.0123", "12.35", "10", "1234568", "1.235e-7", "0.00001236", "-2.5", "3.000e12"];
    let given = [0.0, 0.0123, 12.3456, 10.0, 1_234_567.9, 1.2345e-7, 1.2356e-5, -2.5, 3e12];
    assert_eq!(given.map(shown).each_ref().map(String::as_str), expected);
}

#[test]
fn needs_grow_with_keys_and_keep_the_maximum() {
    let keys = Point::new().with("keys", 10_000_000_u64);
    assert_eq!(keys.needs(), Needs { disk_bytes: 0, memory_bytes: 1_280_000_000 });
    let sum = Needs { disk_bytes: 7, memory_bytes: 2_000_000_000 };
    assert_eq!(keys.needing(sum).needs(), sum);
    assert_eq!(Point::new().with("keys", u64::MAX).needs().memory_bytes, u64::MAX);
    let kinds = Point::new().with("keys", "emails").with("count", 1000_u64);
    assert_eq!(kinds.needs().memory_bytes, 128_000, "if `keys` is a text, `count` is the number of keys");
    let long = kinds.with("queries", 10_u64).with("key_bytes", 512_u64);
    assert_eq!(long.needs().memory_bytes, 1000 * (128 + 512) + 10 * (32 + 512));
}
