//! Which files an answer may send: those in the folder in which the agent worked,
//! and in folders that the operator lists. Where a path ends counts, not how it
//! is written.
//!
//! What is read is what was checked: a file is opened step by step from the folder
//! in which it may lie, and no step follows a link, so that nobody can put
//! something else in its place meanwhile.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    os::fd::OwnedFd,
    path::{Component, Path, PathBuf},
};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, open, openat, statat};
use thiserror::Error;

use super::{
    caps::Caps,
    kind::{self, Sort},
    megabytes, name,
};
use crate::channel::chat::{Attachment, Content};

/// Why a file is not sent, in words that may be shown to anybody.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum Refused {
    // Whether something lies elsewhere on the machine is not told.
    #[error("it is not there, or not in a folder from which files may be sent")]
    NotHere,
    #[error("it is no file")]
    NotAFile,
    #[error("it is empty")]
    Empty,
    #[error("it is larger than {} MB", megabytes(*.0))]
    TooLarge(u64),
    #[error("it cannot be read")]
    Closed,
}

/// Reads a file that a token names. A relative path is seen from the working
/// directory of the turn, if that is known. Blocks.
pub(crate) fn resolve(
    token: &str,
    work_dir: Option<&Path>,
    allowed: &[PathBuf],
    caps: Caps,
) -> Result<Attachment, Refused> {
    let written = Path::new(token);
    let path = match work_dir {
        _ if written.is_absolute() => written.to_owned(),
        Some(folder) => folder.join(written),
        None => return Err(Refused::NotHere),
    };
    let found = fs::canonicalize(path).map_err(|_| Refused::NotHere)?;
    let folders = work_dir.into_iter().chain(allowed.iter().map(PathBuf::as_path));
    let mut folders = folders.filter_map(|folder| fs::canonicalize(folder).ok());
    let folder = folders.find(|folder| found.starts_with(folder)).ok_or(Refused::NotHere)?;
    let within = found.strip_prefix(&folder).map_err(|_| Refused::NotHere)?;
    attach(&found, open_within(&folder, within)?, caps)
}

/// Reads a file that the operator wants sent, wherever it lies. Blocks.
pub(crate) fn wanted(path: &Path, caps: Caps) -> Result<Attachment, Refused> {
    let found = fs::canonicalize(path).map_err(|_| Refused::NotHere)?;
    let folder = found.parent().ok_or(Refused::NotAFile)?;
    let within = found.strip_prefix(folder).map_err(|_| Refused::NotHere)?;
    attach(&found, open_within(folder, within)?, caps)
}

fn attach(path: &Path, file: File, caps: Caps) -> Result<Attachment, Refused> {
    let content = Content::Bytes(read(file, caps)?.into());
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Ok(Attachment { name: name::harmless(&name), content })
}

/// Opens a regular file below a folder. Neither may have a link in it any more.
fn open_within(folder: &Path, within: &Path) -> Result<File, Refused> {
    let mut steps: Vec<_> = within.components().collect();
    let Some(Component::Normal(last)) = steps.pop() else { return Err(Refused::NotAFile) };
    let of_folder = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let closed = |error: rustix::io::Errno| refused(&error.into());
    let mut at: OwnedFd = open(folder, of_folder, Mode::empty()).map_err(closed)?;
    for step in steps {
        at = openat(&at, step.as_os_str(), of_folder, Mode::empty()).map_err(closed)?;
    }
    // Opening a device can do things, so it is looked at before.
    let stat = statat(&at, last, AtFlags::SYMLINK_NOFOLLOW).map_err(closed)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Refused::NotAFile);
    }
    // It may be a pipe by now, which nobody writes to.
    let of_file = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let of_file = of_file | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(&at, last, of_file, Mode::empty()).map_err(closed)?.into())
}

/// Reads an open file whole, if it is one and not too large for what it is.
fn read(file: File, caps: Caps) -> Result<Vec<u8>, Refused> {
    let within = |length: u64, most: u64| {
        if length > most { Err(Refused::TooLarge(most)) } else { Ok(()) }
    };
    let metadata = file.metadata().map_err(|error| refused(&error))?;
    if !metadata.is_file() {
        return Err(Refused::NotAFile);
    }
    within(metadata.len(), caps.most())?;
    let mut bytes = Vec::new();
    // It may grow meanwhile.
    let more = caps.most().saturating_add(1);
    file.take(more).read_to_end(&mut bytes).map_err(|error| refused(&error))?;
    if bytes.is_empty() {
        return Err(Refused::Empty);
    }
    let start = bytes.get(..kind::HEAD).unwrap_or(&bytes);
    let most = caps.of(Sort::of(kind::of(start)));
    within(u64::try_from(bytes.len()).unwrap_or(u64::MAX), most)?;
    Ok(bytes)
}

fn refused(error: &io::Error) -> Refused {
    if error.kind() == io::ErrorKind::NotFound { Refused::NotHere } else { Refused::Closed }
}

#[cfg(test)]
mod tests;
