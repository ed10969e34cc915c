//! Bad input: a store that cannot be used is an error that says what to do.

use std::sync::Arc;
use std::time::Duration;

use slatedb::Db;
use slatedb::object_store::memory::InMemory;
use slatedb::object_store::path::Path;
use slatedb::object_store::{ObjectStore, ObjectStoreExt};
use tamis_slatedb::{Contents, QuerySample, SampleError, StoreError, check_store};
use tamis_slatedb_support::{Address, Credentials};

use crate::support::{open_bucket, s3_server, s3_store};

async fn check(store: &Arc<dyn ObjectStore>) -> Result<Contents, StoreError> {
    check_store(store, &Path::from("db"), Duration::from_secs(15)).await
}

#[tokio::test]
async fn a_bucket_that_does_not_exist() {
    let store = open_bucket("missing-bucket", &s3_server().endpoint);
    let error = check(&store).await.expect_err("there is no such bucket");
    assert!(matches!(error, StoreError::NoBucket { .. }), "{error:?}");
    assert!(error.to_string().contains("Check its name and region, or create it"), "{error}");
}

#[tokio::test]
async fn wrong_credentials() {
    s3_store("private-bucket");
    let wrong = Credentials { access_key: "test-account".to_owned(), secret_key: "guess".to_owned() };
    let unknown = Credentials { access_key: "stranger".to_owned(), secret_key: "guess".to_owned() };
    for credentials in [wrong, unknown] {
        let store = Address::with_endpoint("private-bucket", &s3_server().endpoint, &credentials);
        let error =
            check(&store.expect("the settings are complete").store).await.expect_err("access is denied");
        assert!(matches!(error, StoreError::AccessDenied { .. }), "{error:?}");
        assert!(error.to_string().contains("AWS_ACCESS_KEY_ID"), "{error}");
    }
}

#[tokio::test]
async fn a_server_that_does_not_answer() {
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let endpoint = format!("http://{}", port.expect("loopback has a free port"));
    let error = check(&open_bucket("bucket", &endpoint)).await.expect_err("no server is there");
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error:?}");
    assert!(error.to_string().contains("AWS_ENDPOINT"), "{error}");
    // A server that accepts connections and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let endpoint = format!("http://{}", silent.local_addr().expect("it is bound"));
    let limit = Duration::from_millis(300);
    let error = check_store(&open_bucket("bucket", &endpoint), &Path::from("db"), limit).await;
    let error = error.expect_err("the server is silent");
    assert!(error.to_string().contains("no answer within 0.3 s"), "{error}");
}

#[tokio::test]
async fn a_path_with_other_objects() {
    for store in [Arc::new(InMemory::new()) as Arc<dyn ObjectStore>, s3_store("photos")] {
        assert_eq!(check(&store).await.expect("it is empty"), Contents::Empty);
        store.put(&Path::from("db/holiday/beach.jpg"), "pixels".into()).await.expect("it can be written");
        let error = check(&store).await.expect_err("it has photos");
        assert!(
            matches!(&error, StoreError::OtherContents { example, .. } if example == "db/holiday"),
            "{error:?}"
        );
        let elsewhere = check_store(&store, &Path::from("other"), Duration::from_secs(15)).await;
        assert_eq!(elsewhere.expect("another path is empty"), Contents::Empty);
    }
}

#[tokio::test]
async fn a_database_is_recognized() {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let db = Db::open("db", Arc::clone(&store)).await.expect("it can be created");
    db.close().await.expect("it can be closed");
    assert_eq!(check(&store).await.expect("it can be listed"), Contents::Database);
}

#[test]
fn invalid_addresses_are_refused_with_advice() {
    let cases = [
        ("bucket", "relative URL without a base"),
        ("gopher://bucket", "unknown scheme \"gopher\""),
        ("s3://", "no bucket"),
        ("file:///no/such/folder", "Check the folder"),
    ];
    for (address, expected) in cases {
        let error = Address::open(address).expect_err(address).to_string();
        assert!(error.contains(expected), "{address}: {error}");
    }
}

#[tokio::test]
async fn a_sample_is_exchanged_through_the_store() {
    for store in [Arc::new(InMemory::new()) as Arc<dyn ObjectStore>, s3_store("samples")] {
        let location = Path::from("samples/reader-1");
        let (written, read) = (QuerySample::new(), QuerySample::new());
        assert_eq!(read.read(&store, &location).await.expect("a missing object is no error"), 0);
        written.write(&store, &location).await.expect("it can be written");
        assert_eq!(read.read(&store, &location).await.expect("it can be read"), 0);
        store.put(&location, "a text".into()).await.expect("it can be written");
        let error = read.read(&store, &location).await.expect_err("it is no sample");
        assert!(
            matches!(&error, SampleError::Damaged { location, .. } if location == "samples/reader-1"),
            "{error:?}"
        );
    }
}
