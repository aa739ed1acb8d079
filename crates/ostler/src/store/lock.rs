//! One gateway per SQLite store: a locked file beside it, which the system
//! releases however its holder ends.

use std::{
    fs::{File, OpenOptions},
    io::{Read as _, Seek as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use rustix::fs::FlockOperation;

use super::StoreError;

/// The lock, held until it is dropped.
#[derive(Debug)]
pub(super) struct StoreLock {
    _file: File,
}

impl StoreLock {
    /// Takes the lock of a store, or says who has it.
    pub(super) fn take(store: &Path) -> Result<Self, StoreError> {
        let path = path(store);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(StoreError::file("open the lock file", &path))?;
        if let Err(error) = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            if error != rustix::io::Errno::WOULDBLOCK {
                return Err(StoreError::file("lock", &path)(error.into()));
            }
            let mut pid = String::new();
            // Who has it only makes the message better.
            let holder = file.read_to_string(&mut pid).ok().and_then(|_| pid.trim().parse().ok());
            return Err(StoreError::InUse { path: store.to_owned(), holder });
        }
        let noted = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{}", std::process::id()));
        noted.map_err(StoreError::file("write to the lock file", &path))?;
        Ok(Self { _file: file })
    }
}

/// Returns the lock file of a store. It stays: removing it would let two
/// gateways lock two files of the same name.
fn path(store: &Path) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_told_who_the_first_is_and_has_it_once_that_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("ostler.db");
        let first = StoreLock::take(&store).unwrap();
        let error = StoreLock::take(&store).unwrap_err();
        let StoreError::InUse { holder, .. } = &error else { panic!("{error}") };
        assert_eq!(*holder, Some(std::process::id()));
        assert!(error.to_string().contains(&std::process::id().to_string()), "{error}");
        drop(first);
        StoreLock::take(&store).unwrap();
    }
}
