//! Which files an answer may send: those in the folder in which the agent worked,
//! and in folders that the operator lists. Where a path ends counts, not how it
//! is written. An agent may say what somebody else wrote, so that nothing is sent
//! that is hidden there, nor what the gateway keeps for itself.
//!
//! What is read is what was checked: a file is opened step by step from the folder
//! in which it may lie, and neither that folder nor any step below it may be a link,
//! so that nobody can put something else in its place meanwhile. What is above the
//! folder is trusted: whoever can change that has more than its files.

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

/// Where files may be sent from, and which may not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach<'a> {
    /// The working directory of the turn, if that is known.
    pub(crate) work_dir: Option<&'a Path>,
    pub(crate) listed: &'a [PathBuf],
    /// Files and folders of the gateway's own. Of such a folder something is sent only
    /// if it lies in a folder within it that is listed.
    pub(crate) private: &'a [PathBuf],
}

impl Reach<'_> {
    /// Returns the folder from which a file may be sent, with no link in either.
    fn folder_of(&self, found: &Path) -> Option<PathBuf> {
        let real = |path: &Path| fs::canonicalize(path).ok();
        let private: Vec<PathBuf> = self.private.iter().filter_map(|path| real(path)).collect();
        let is_open = |folder: &PathBuf| {
            let Ok(within) = found.strip_prefix(folder) else { return false };
            let is_kept = |own: &PathBuf| {
                let is_within = folder.starts_with(own) && folder != own;
                found.starts_with(own) && !is_within
            };
            !is_hidden(within) && !private.iter().any(is_kept)
        };
        let folders = self.work_dir.into_iter().chain(self.listed.iter().map(PathBuf::as_path));
        folders.filter_map(real).find(is_open)
    }
}

/// Whether something on a path has a name that is not shown to everybody.
fn is_hidden(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str().as_encoded_bytes().starts_with(b"."))
}

/// Reads a file that a token names. A relative path is seen from the working
/// directory of the turn, if that is known. Blocks.
pub(crate) fn resolve(token: &str, reach: Reach<'_>, caps: Caps) -> Result<Attachment, Refused> {
    let written = Path::new(token);
    let path = match reach.work_dir {
        _ if written.is_absolute() => written.to_owned(),
        Some(folder) => folder.join(written),
        None => return Err(Refused::NotHere),
    };
    let found = fs::canonicalize(path).map_err(|_| Refused::NotHere)?;
    let folder = reach.folder_of(&found).ok_or(Refused::NotHere)?;
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
