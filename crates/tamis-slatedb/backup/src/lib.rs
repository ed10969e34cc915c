//! Tests of `tamis-backup` on an S3 server: `tests/s3.rs`. They are here because of the S3 server, which is not in the default build.
