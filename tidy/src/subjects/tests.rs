//! Good subjects pass; each bad one names its rule.

use super::violation;

#[test]
fn subjects_with_an_area_and_an_imperative_are_accepted() {
    for subject in [
        "wal: recycle segments",
        "filter, bits: rename Reader, Writer, open and close",
        "crates/tamis: pass the clock to the compaction",
        "ci: process new commits only",
        "vfs, tamis: unlock explicitly, seek to ends, default keyspace options",
    ] {
        assert_eq!(violation(subject), None, "{subject}");
    }
}

#[test]
fn other_subjects_name_their_rule() {
    for (subject, rule) in [
        ("The rest of a word is read once", "no `area: `"),
        ("wal: Recycle segments", "no verb in lower case"),
        ("WAL: recycle segments", "`WAL` is no area"),
        ("wal: recycled segments", "`recycled` is no imperative"),
        ("wal: recycles segments", "`recycles` is no imperative"),
        ("wal: recycling of segments", "`recycling` is no imperative"),
        ("wal: the segments of a log are recycled", "`the` is no imperative"),
        ("wal: recycle segments.", "full stop"),
        ("wip: recycle segments", "`wip`"),
        ("WIP", "`wip`"),
        ("fixup! wal: recycle segments", "`fixup!`"),
        ("wal: recycle segments whose frames are all in the tables of every keyspace", "at most 72"),
    ] {
        let message = violation(subject).unwrap_or_default();
        assert!(message.contains(rule), "{subject}: {message}");
    }
}
