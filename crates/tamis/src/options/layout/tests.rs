use super::*;

#[test]
fn a_layout_is_parsed_from_its_text() {
    for (text, expected) in [
        ("leveled", Layout::Leveled),
        ("tiered", Layout::tiered()),
        ("tiered:runs_per_level=8", Layout::Tiered { runs_per_level: 8, space_amplification_percent: 300 }),
        (
            "tiered: space_amplification_percent=25 , runs_per_level=2",
            Layout::Tiered { runs_per_level: 2, space_amplification_percent: 25 },
        ),
        ("partitioned", Layout::partitioned()),
        ("partitioned:tables_per_partition=4", Layout::Partitioned { tables_per_partition: 4 }),
    ] {
        assert_eq!(text.parse::<Layout>().ok(), Some(expected), "{text}");
        assert_eq!(expected.to_string().parse::<Layout>().ok(), Some(expected), "{expected}");
    }
}

#[test]
fn a_bad_layout_is_refused_with_advice() {
    for (text, advice) in [
        ("", "`tiered`"),
        ("lazy", "use `leveled`"),
        ("leveled:runs_per_level=2", "`leveled`"),
        ("tiered:runs_per_level", "runs_per_level=N"),
        ("tiered:runs_per_level=x", "runs_per_level=N"),
        ("tiered:runs_per_level=1", "2 to 64"),
        ("tiered:space_amplification_percent=24", "25 to 10,000"),
        ("tiered:tables_per_partition=10", "`partitioned`"),
        ("partitioned:tables_per_partition=3", "4 to 48"),
        ("partitioned:tables_after_split=2", "tables_per_partition=N"),
    ] {
        let refused = text.parse::<Layout>().map_err(|error| error.to_string());
        assert!(refused.as_ref().is_err_and(|error| error.contains(advice)), "{text}: {refused:?}");
    }
}
