//! Objects in a bucket of S3, by the crate `object_store`.
//!
//! Requests are repeated, with growing delays, when the server fails or does not answer. Credentials, region and endpoint are those of the
//! environment. `object_store` is asynchronous: a runtime on the calling thread serves each call.

use std::{
    fmt,
    io::{self, ErrorKind},
};

use futures_util::TryStreamExt as _;
use object_store::{
    ObjectStore, ObjectStoreExt as _,
    aws::{AmazonS3, AmazonS3Builder},
    path::Path,
};
use tokio::runtime::{Builder, Runtime};

use crate::{
    error::{Error, Result},
    objects::{Object, Objects},
};

/// Variables of which one says where credentials come from.
const CREDENTIALS: &[&str] = &[
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_METADATA_ENDPOINT",
];

/// Objects whose names begin with a path in a bucket.
pub(crate) struct S3Objects {
    store: AmazonS3,
    path: Path,
    runtime: Runtime,
}

impl fmt::Debug for S3Objects {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "S3Objects({}, {})", self.store, self.path)
    }
}

impl S3Objects {
    /// Opens `s3://bucket/path`. Makes no request.
    pub(crate) fn open(address: &str) -> Result<Self> {
        let refuse = |reason: String| Error::Address { address: address.to_owned(), reason };
        let rest = address.strip_prefix("s3://").unwrap_or_default();
        let (bucket, path) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() {
            return Err(refuse("no bucket".to_owned()));
        }
        if CREDENTIALS.iter().all(|name| std::env::var_os(name).is_none()) {
            return Err(Error::NoCredentials { address: address.to_owned() });
        }
        let path = Path::parse(path.trim_end_matches('/')).map_err(|error| refuse(error.to_string()))?;
        // `reqwest` uses the provider of the process; a second installation changes nothing.
        drop(rustls::crypto::ring::default_provider().install_default());
        let endpoint = std::env::var("AWS_ENDPOINT").or_else(|_| std::env::var("AWS_ENDPOINT_URL"));
        let builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
        let builder = builder.with_allow_http(endpoint.is_ok_and(|endpoint| endpoint.starts_with("http://")));
        let store = builder.build().map_err(|error| refuse(error.to_string()))?;
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| refuse(error.to_string()))?;
        Ok(Self { store, path, runtime })
    }

    fn location(&self, name: &str) -> Path {
        name.split('/').fold(self.path.clone(), |path, part| path.join(part))
    }

    /// The name of an object below the path.
    fn name_of(&self, location: &Path) -> Option<String> {
        let parts: Vec<_> = location.prefix_match(&self.path)?.map(|part| part.as_ref().to_owned()).collect();
        Some(parts.join("/"))
    }

    fn run<T>(&self, request: impl Future<Output = object_store::Result<T>>) -> io::Result<T> {
        self.runtime.block_on(request).map_err(|error| {
            let kind = match &error {
                object_store::Error::NotFound { .. } => ErrorKind::NotFound,
                object_store::Error::PermissionDenied { .. }
                | object_store::Error::Unauthenticated { .. } => ErrorKind::PermissionDenied,
                // Its code is in the body of the response only.
                error if error.to_string().contains("NoSuchBucket") => ErrorKind::NotFound,
                _ => ErrorKind::Other,
            };
            io::Error::new(kind, without_body(&error))
        })
    }
}

/// The error without the body of the server's response.
fn without_body(error: &object_store::Error) -> String {
    let text = error.to_string();
    let line = text.split(": <?xml").next().and_then(|text| text.lines().next()).unwrap_or_default();
    line.trim_end_matches([':', ' ', '.']).to_owned()
}

impl Objects for S3Objects {
    fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.run(self.store.put(&self.location(name), bytes.to_vec().into())).map(|_| ())
    }

    fn get(&self, name: &str) -> io::Result<Vec<u8>> {
        let location = self.location(name);
        self.run(async { self.store.get(&location).await?.bytes().await }).map(Into::into)
    }

    fn length(&self, name: &str) -> io::Result<Option<u64>> {
        let head = crate::objects::none_if_missing(self.run(self.store.head(&self.location(name))))?;
        Ok(head.map(|object| object.size))
    }

    fn list(&self, folder: &str) -> io::Result<Vec<Object>> {
        let listed: Vec<_> = self.run(self.store.list(Some(&self.location(folder))).try_collect())?;
        let objects = listed
            .into_iter()
            .filter_map(|object| Some(Object { name: self.name_of(&object.location)?, bytes: object.size }));
        Ok(objects.collect())
    }

    fn first_parts(&self) -> io::Result<Vec<String>> {
        let listed = self.run(self.store.list_with_delimiter(Some(&self.path)))?;
        let objects = listed.objects.iter().map(|object| &object.location);
        let names = objects.chain(&listed.common_prefixes).filter_map(|location| self.name_of(location));
        Ok(names.collect())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        crate::objects::none_if_missing(self.run(self.store.delete(&self.location(name)))).map(|_| ())
    }
}
