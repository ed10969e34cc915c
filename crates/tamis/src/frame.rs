//! Framing of records in logs: length, synced mark, checksum; shared by the write-ahead log and the manifest.
