//! Object stores by address: `memory://`, `file:///folder`, `s3://bucket/path`.
//!
//! `s3://` takes credentials, region and endpoint from the environment, as other S3 programs do: `AWS_ACCESS_KEY_ID`,
//! `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`, `AWS_REGION`, `AWS_ENDPOINT` or `AWS_ENDPOINT_URL` for servers other than Amazon's.

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, RetryConfig};
use tamis_s3_server::Credentials;
use thiserror::Error;
use url::Url;

/// Requests are repeated for so long; a server that does not answer is an error then.
const RETRIES_MAX: usize = 3;
const RETRY_LIMIT: Duration = Duration::from_secs(10);

/// An address that cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AddressError {
    /// Not an address.
    #[error("{address:?}: {reason}. Write memory://, file:///folder or s3://bucket/path")]
    Address {
        /// The address as given.
        address: String,
        /// The reason.
        reason: String,
    },
    /// The store cannot be opened with these settings.
    #[error(
        "{address:?}: {source}. Check the folder, or AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and AWS_ENDPOINT"
    )]
    Store {
        /// The address as given.
        address: String,
        /// The store's error.
        source: object_store::Error,
    },
}

/// An object store and a path in it.
#[derive(Debug, Clone)]
pub struct Address {
    /// The store.
    pub store: Arc<dyn ObjectStore>,
    /// The path of the address.
    pub path: Path,
}

impl Address {
    /// Opens the store of an address. Makes no request.
    ///
    /// # Errors
    /// An address without a known scheme, a folder that does not exist, and settings that S3 cannot use.
    pub fn open(address: &str) -> Result<Self, AddressError> {
        let refuse = |reason: String| AddressError::Address { address: address.to_owned(), reason };
        let fail = |source| AddressError::Store { address: address.to_owned(), source };
        let url = Url::parse(address).map_err(|error| refuse(error.to_string()))?;
        match url.scheme() {
            "memory" => Ok(Self { store: Arc::new(InMemory::new()), path: Path::default() }),
            "file" => {
                let folder = url.to_file_path().map_err(|()| refuse("not an absolute path".to_owned()))?;
                let store = LocalFileSystem::new_with_prefix(folder).map_err(fail)?;
                Ok(Self { store: Arc::new(store), path: Path::default() })
            }
            "s3" => {
                let bucket = url.host_str().filter(|bucket| !bucket.is_empty());
                let bucket = bucket.ok_or_else(|| refuse("no bucket".to_owned()))?;
                let path = Path::parse(url.path().trim_start_matches('/'))
                    .map_err(|error| refuse(error.to_string()))?;
                Ok(Self { store: build_s3(s3_of_environment(), bucket).map_err(fail)?, path })
            }
            scheme => Err(refuse(format!("unknown scheme {scheme:?}"))),
        }
    }

    /// A bucket of another server, regardless of the environment variables. Makes no request.
    ///
    /// # Errors
    /// Settings that S3 cannot use.
    pub fn with_endpoint(
        bucket: &str,
        endpoint: &str,
        credentials: &Credentials,
    ) -> Result<Self, AddressError> {
        let builder = AmazonS3Builder::new()
            .with_endpoint(endpoint)
            .with_allow_http(endpoint.starts_with("http://"))
            .with_region("us-east-1")
            .with_access_key_id(&credentials.access_key)
            .with_secret_access_key(&credentials.secret_key);
        let store = build_s3(builder, bucket).map_err(|source| AddressError::Store {
            address: format!("s3://{bucket} at {endpoint}"),
            source,
        })?;
        Ok(Self { store, path: Path::default() })
    }
}

/// The settings of the environment.
fn s3_of_environment() -> AmazonS3Builder {
    let builder = AmazonS3Builder::from_env();
    match std::env::var("AWS_ENDPOINT").or_else(|_| std::env::var("AWS_ENDPOINT_URL")) {
        Ok(endpoint) => builder.with_allow_http(endpoint.starts_with("http://")),
        Err(_) => builder,
    }
}

fn build_s3(builder: AmazonS3Builder, bucket: &str) -> object_store::Result<Arc<dyn ObjectStore>> {
    // The client, `reqwest`, uses the provider of the process; a second installation changes nothing.
    drop(rustls::crypto::ring::default_provider().install_default());
    let mut retries = RetryConfig { retry_timeout: RETRY_LIMIT, ..RetryConfig::default() };
    retries.max_retries = RETRIES_MAX;
    Ok(Arc::new(builder.with_bucket_name(bucket).with_retry(retries).build()?))
}
