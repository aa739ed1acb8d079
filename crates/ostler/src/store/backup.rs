//! A copy of a store as it is at one moment, while it is being used.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

use thiserror::Error;

use super::{Location, Store, StoreError, db::values};

/// Why there is no backup.
#[derive(Debug, Error)]
pub(crate) enum BackupError {
    /// It has tools of its own for this.
    #[error(
        "a PostgreSQL store is backed up with pg_dump: pg_dump --format=custom --file FILE URL"
    )]
    Postgres,
    /// Nothing is overwritten.
    #[error("{} is there already; give another name", path.display())]
    Exists {
        /// Which file.
        path: PathBuf,
    },
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Store {
    /// Writes a copy to a new file. It is there in whole or not at all.
    pub(crate) async fn backup(&self, path: &Path) -> Result<(), BackupError> {
        if let Location::Postgres(_) = self.location() {
            return Err(BackupError::Postgres);
        }
        if path.exists() {
            return Err(BackupError::Exists { path: path.to_owned() });
        }
        let mut partial = path.as_os_str().to_owned();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        if partial.exists() {
            // What an earlier one left that was cut off.
            fs::remove_file(&partial).map_err(StoreError::file("remove", &partial))?;
        }
        let text = partial.display().to_string();
        let copied: Result<_, StoreError> = self
            .read_patiently(text, |conn, partial| {
                Box::pin(async move { conn.execute("VACUUM INTO $1", values![partial]).await })
            })
            .await;
        if let Err(error) = copied {
            fs::remove_file(&partial).ok();
            return Err(error.into());
        }
        let kept = File::open(&partial)
            .and_then(|file| file.sync_all())
            .and_then(|()| fs::rename(&partial, path))
            .and_then(|()| {
                let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
                File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
            });
        kept.map_err(StoreError::file("write", path))?;
        Ok(())
    }
}
