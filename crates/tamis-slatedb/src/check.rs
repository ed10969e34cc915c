//! Checks a store before SlateDB opens it.
//!
//! SlateDB repeats failed requests without end by default, so that a wrong address appears as a program that hangs, and it
//! creates a database next to objects of another program. This check makes one request, with a time limit, and returns
//! a typed error that says what to do.

use std::sync::Arc;
use std::time::Duration;

use slatedb::object_store::{self, ListResult, ObjectStore, path::Path};
use slatedb_common::DefaultSystemClock;

use crate::StoreError;

/// The folder of SlateDB's manifests.
const MANIFEST_FOLDER: &str = "manifest";

/// Contents of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contents {
    /// No object: SlateDB creates a database.
    Empty,
    /// A database of SlateDB.
    Database,
}

/// Lists the path of a database once, and returns its contents.
///
/// The limit is for the whole check: clients repeat requests too. 30 s suit most; runs on tokio.
///
/// # Errors
/// Wrong or missing credentials, a missing bucket, a server that does not answer, and a path with other objects.
pub async fn check_store(
    store: &Arc<dyn ObjectStore>,
    path: &Path,
    limit: Duration,
) -> Result<Contents, StoreError> {
    let clock = Arc::new(DefaultSystemClock::new());
    let list = async { store.list_with_delimiter(Some(path)).await.map_err(Some) };
    match slatedb_common::timeout(clock, limit, || None, list).await {
        Ok(list) => contents(path, &list),
        Err(Some(error)) => Err(classify(path, error)),
        Err(None) => {
            let source = format!("no answer within {} s", limit.as_secs_f64());
            Err(StoreError::Unreachable { path: path.to_string(), source: source.into() })
        }
    }
}

fn contents(path: &Path, list: &ListResult) -> Result<Contents, StoreError> {
    let is_database = list.common_prefixes.iter().any(|folder| folder.filename() == Some(MANIFEST_FOLDER));
    if is_database {
        return Ok(Contents::Database);
    }
    let folders = list.common_prefixes.iter();
    match list.objects.iter().map(|object| &object.location).chain(folders).next() {
        None => Ok(Contents::Empty),
        Some(example) => {
            Err(StoreError::OtherContents { path: path.to_string(), example: example.to_string() })
        }
    }
}

fn classify(path: &Path, source: object_store::Error) -> StoreError {
    let path = path.to_string();
    match &source {
        object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. } => {
            StoreError::AccessDenied { path, source }
        }
        object_store::Error::NotFound { .. } => StoreError::NoBucket { path, source },
        object_store::Error::Generic { source: inner, .. } => {
            let text = chain_text(inner.as_ref());
            if ["NoSuchBucket", "NoSuchKey", "status code: 404"].iter().any(|word| text.contains(word)) {
                StoreError::NoBucket { path, source }
            } else if [
                "credential",
                "Forbidden",
                "AccessDenied",
                "status code: 403",
                "status code: 401",
                "InvalidAccessKeyId",
                "NotSignedUp",
                "SignatureDoesNotMatch",
            ]
            .iter()
            .any(|word| text.contains(word))
            {
                StoreError::AccessDenied { path, source }
            } else {
                StoreError::Unreachable { path, source: Box::new(source) }
            }
        }
        _ => StoreError::Other { path, source },
    }
}

/// The texts of an error and of its causes.
fn chain_text(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests;
