//! One user of a session at a time, across processes.
//!
//! The agents do not guard their sessions: two turns at once fork or lose the
//! history. A lock on a file beside the memo does, and the kernel releases it
//! however its holder dies.

use std::{
    fs::{File, TryLockError},
    io,
    path::Path,
};

use crate::host::create_private_dir;

/// The right to use a session; given back on drop.
#[derive(Debug)]
pub(crate) struct SessionLock {
    _file: File,
}

impl SessionLock {
    /// Takes the lock if nobody has it.
    pub(crate) fn try_take(path: &Path) -> io::Result<Option<Self>> {
        if let Some(folder) = path.parent() {
            create_private_dir(folder)?;
        }
        let file = File::options().create(true).truncate(false).write(true).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_gets_the_lock_until_the_first_is_done() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sessions/claude/x.lock");
        let first = SessionLock::try_take(&path).unwrap().unwrap();
        assert!(SessionLock::try_take(&path).unwrap().is_none());
        drop(first);
        assert!(SessionLock::try_take(&path).unwrap().is_some());
    }
}
