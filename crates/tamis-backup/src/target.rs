//! A target of backups: its objects, and the store that it belongs to.

use std::{fmt, io, path::Path, sync::Arc, time::Duration};

use tamis::OsVfs;

use crate::{
    error::{Error, Result},
    format::{self, Backup, FileList, Part, TARGET_OBJECT, TargetHeader, VERSION},
    objects::{FolderObjects, Object, Objects, none_if_missing},
};

/// The times of leases. All operations on a target need the same ones.
#[derive(Debug, Clone, Copy)]
pub struct LeaseTimes {
    /// A lease is written again after this time.
    pub beat: Duration,
    /// A lease that did not change for this time is of a killed process.
    pub expiry: Duration,
    /// A prune waits this long for running backups and restores.
    pub patience: Duration,
}

impl Default for LeaseTimes {
    fn default() -> Self {
        Self {
            beat: Duration::from_secs(10),
            expiry: Duration::from_secs(60),
            patience: Duration::from_secs(180),
        }
    }
}

/// A folder or a part of a bucket with the backups of one store. Clones are the same target.
#[derive(Clone)]
pub struct Target {
    objects: Arc<dyn Objects>,
    name: String,
    times: LeaseTimes,
}

impl fmt::Debug for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Target({})", self.name)
    }
}

impl Target {
    /// Opens a folder, or `s3://bucket/path` with the credentials, region and endpoint of the environment (`AWS_ACCESS_KEY_ID`,
    /// `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, `AWS_ENDPOINT_URL`, ...). Makes no request.
    ///
    /// # Errors
    /// [`Error::Address`]; for S3 [`Error::S3Unavailable`] without the feature `s3`, and [`Error::NoCredentials`].
    pub fn open(address: &str) -> Result<Self> {
        let refuse = |reason: &str| Error::Address { address: address.to_owned(), reason: reason.to_owned() };
        match address.split_once("://") {
            #[cfg(feature = "s3")]
            Some(("s3", _)) => Ok(Self::of_objects(Arc::new(crate::s3::S3Objects::open(address)?), address)),
            #[cfg(not(feature = "s3"))]
            Some(("s3", _)) => Err(Error::S3Unavailable { address: address.to_owned() }),
            Some((scheme, _)) => Err(refuse(&format!("unknown scheme {scheme:?}"))),
            None if address.is_empty() => Err(refuse("an empty address")),
            None => Ok(Self::folder(address)),
        }
    }

    /// A folder, which may be missing.
    pub fn folder(path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        Self::of_objects(Arc::new(FolderObjects::new(Arc::new(OsVfs), path)), &path.display().to_string())
    }

    /// Objects elsewhere; messages name them `name`.
    pub fn of_objects(objects: Arc<dyn Objects>, name: &str) -> Self {
        Self { objects, name: name.to_owned(), times: LeaseTimes::default() }
    }

    /// Other times of leases.
    #[must_use]
    pub fn with_lease_times(mut self, times: LeaseTimes) -> Self {
        self.times = times;
        self
    }

    /// The address, for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn objects(&self) -> &Arc<dyn Objects> {
        &self.objects
    }

    pub(crate) fn times(&self) -> &LeaseTimes {
        &self.times
    }

    pub(crate) fn fail(&self, operation: &'static str, object: &str, error: io::Error) -> Error {
        let (target, object) = (self.name.clone(), object.to_owned());
        Error::Target { operation, target, object, source: Arc::new(error) }
    }

    pub(crate) fn damaged(&self, object: &str, what: impl Into<String>) -> Error {
        Error::Damaged { target: self.name.clone(), object: object.to_owned(), what: what.into() }
    }

    /// The objects in a folder.
    pub(crate) fn list(&self, folder: &str) -> Result<Vec<Object>> {
        self.objects.list(folder).map_err(|error| self.fail("list", folder, error))
    }

    /// The bytes of an object; `None` if it is missing.
    pub(crate) fn get(&self, object: &str) -> Result<Option<Vec<u8>>> {
        none_if_missing(self.objects.get(object)).map_err(|error| self.fail("read", object, error))
    }

    pub(crate) fn put(&self, object: &str, bytes: &[u8]) -> Result<()> {
        self.objects.put(object, bytes).map_err(|error| self.fail("write", object, error))
    }

    pub(crate) fn remove(&self, object: &str) -> Result<()> {
        self.objects.remove(object).map_err(|error| self.fail("remove", object, error))
    }

    /// The bytes of a part, verified.
    pub(crate) fn get_part(&self, part: &Part) -> Result<Vec<u8>> {
        let object = part.object();
        let bytes = self.get(&object)?.ok_or_else(|| self.damaged(&object, "the object is missing"))?;
        let found = Part::of(&bytes);
        if found == *part {
            return Ok(bytes);
        }
        let what = match found.bytes == part.bytes {
            true => format!("its bytes have the digest {}", found.sha256),
            false => format!("it has {} bytes instead of {}", found.bytes, part.bytes),
        };
        Err(self.damaged(&object, what))
    }

    /// The immutable files of a backup.
    pub(crate) fn file_list(&self, backup: &Backup) -> Result<FileList> {
        let bytes = self.get_part(&backup.tables)?;
        FileList::decode(&bytes).map_err(|what| self.damaged(&backup.tables.object(), what))
    }

    /// The header; `None` in a target without objects.
    ///
    /// # Errors
    /// [`Error::Foreign`], [`Error::UnknownFormat`].
    fn header(&self) -> Result<Option<TargetHeader>> {
        if let Some(bytes) = self.get(TARGET_OBJECT)? {
            let header: TargetHeader = serde_json::from_slice(&bytes)
                .map_err(|_| Error::Foreign { target: self.name.clone(), found: TARGET_OBJECT.to_owned() })?;
            if header.format != VERSION {
                let (target, object) = (self.name.clone(), TARGET_OBJECT.to_owned());
                return Err(Error::UnknownFormat { target, object, found: header.format });
            }
            return Ok(Some(header));
        }
        let parts = self.objects.first_parts().map_err(|error| self.fail("list", "", error))?;
        match parts.into_iter().next() {
            None => Ok(None),
            Some(found) => Err(Error::Foreign { target: self.name.clone(), found }),
        }
    }

    /// Makes the target that of a store, or checks that it is.
    ///
    /// # Errors
    /// [`Error::Foreign`], [`Error::OtherStore`], [`Error::UnknownFormat`].
    pub(crate) fn claim(&self, store: &str) -> Result<()> {
        if self.header()?.is_none() {
            let header = TargetHeader { format: VERSION, store: store.to_owned() };
            self.put(TARGET_OBJECT, &format::encode(&header))?;
        }
        // Two first backups may have written it: the last one counts.
        match self.header()? {
            Some(header) if header.store != store => Err(Error::OtherStore {
                target: self.name.clone(),
                holds: header.store,
                store: store.to_owned(),
            }),
            _ => Ok(()),
        }
    }

    /// Checks that the target has backups, or had some.
    ///
    /// # Errors
    /// [`Error::NotATarget`], [`Error::UnknownFormat`].
    pub(crate) fn require(&self) -> Result<()> {
        let found = match self.header() {
            Ok(Some(_)) => return Ok(()),
            Ok(None) => "is empty or missing".to_owned(),
            Err(Error::Foreign { found, .. }) => format!("has no backups, but {found:?}"),
            Err(error) => return Err(error),
        };
        Err(Error::NotATarget { target: self.name.clone(), found })
    }
}
