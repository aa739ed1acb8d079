//! What the disk takes to make something durable, as a log does it.

use std::{
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
    time::Instant,
};

use crate::figures::ms;

/// A file of its own on a disk. It is gone afterwards.
pub(super) struct Disk {
    file: File,
    path: PathBuf,
}

impl Disk {
    pub(super) fn new(folder: &Path) -> Self {
        let path = folder.join("flushes");
        Self { file: File::create(&path).unwrap(), path }
    }

    /// Writes a page and makes it durable; returns the milliseconds.
    pub(super) fn flush(&mut self) -> f64 {
        let started = Instant::now();
        self.file.write_all(&[0; 4096]).unwrap();
        self.file.sync_data().unwrap();
        ms(started)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        fs::remove_file(&self.path).ok();
    }
}
