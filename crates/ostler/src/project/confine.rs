//! Where projects may lie: below the folders that are configured for it, whichever
//! way a path is written, and wherever links lead.
//!
//! What lies outside is told to be outside, whether it is there or not: nobody
//! learns here what else is on the machine.

use std::{
    fs, io,
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{Access, access},
    io::Errno,
};
use thiserror::Error;

/// The longest path that the system takes, in bytes.
const LONGEST: usize = 4095;

/// Why a folder cannot be that of a project.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum Misplaced {
    #[error("projects need a folder to lie in: set api.roots in the configuration")]
    NoRoots,
    #[error("none of the folders of api.roots is there")]
    RootsGone,
    #[error("the directory must not be empty")]
    Empty,
    #[error("the directory must not have a NUL in it")]
    Nul,
    #[error("the directory has too long a name")]
    TooLong,
    #[error("the directory must not have `..` in it")]
    Upwards,
    #[error("the directory must be absolute, for there are several api.roots")]
    Relative,
    #[error("the directory must lie in one of api.roots")]
    Outside,
    #[error("the directory does not exist")]
    Missing,
    #[error("the directory is none, but something else")]
    NotAFolder,
    #[error("the directory cannot be entered and read by the gateway")]
    Closed,
    #[error("the directory has a name that is not UTF-8")]
    NotText,
    #[error("the directory is not the one that it was: something else is in its place")]
    Replaced,
    #[error("the directory cannot be used: {0}")]
    Other(String),
}

/// Returns the absolute path that somebody means. Pure.
pub(crate) fn meant(roots: &[PathBuf], directory: &str) -> Result<PathBuf, Misplaced> {
    if directory.is_empty() {
        return Err(Misplaced::Empty);
    }
    if directory.contains('\0') {
        return Err(Misplaced::Nul);
    }
    if directory.len() > LONGEST {
        return Err(Misplaced::TooLong);
    }
    let written = Path::new(directory);
    if written.components().any(|part| part == Component::ParentDir) {
        return Err(Misplaced::Upwards);
    }
    match roots {
        [] => Err(Misplaced::NoRoots),
        _ if written.is_absolute() => Ok(written.to_owned()),
        [root] => Ok(root.join(written)),
        _ => Err(Misplaced::Relative),
    }
}

/// Returns the folder that a path leads to, with no link in it, if a project may
/// lie there. Reads the file system.
pub(crate) fn confined(roots: &[PathBuf], directory: &Path) -> Result<PathBuf, Misplaced> {
    if roots.is_empty() {
        return Err(Misplaced::NoRoots);
    }
    let real: Vec<_> = roots.iter().filter_map(|root| fs::canonicalize(root).ok()).collect();
    if real.is_empty() {
        return Err(Misplaced::RootsGone);
    }
    if directory.components().any(|part| part == Component::ParentDir) {
        return Err(Misplaced::Upwards);
    }
    let found = match fs::canonicalize(directory) {
        Ok(found) => found,
        Err(_) if !lies_in(roots, directory) && !lies_in(&real, directory) => {
            return Err(Misplaced::Outside);
        }
        Err(error) => return Err(absence(&error)),
    };
    if !lies_in(&real, &found) {
        return Err(Misplaced::Outside);
    }
    if !found.is_dir() {
        return Err(Misplaced::NotAFolder);
    }
    if access(&found, Access::READ_OK | Access::EXEC_OK).is_err() {
        return Err(Misplaced::Closed);
    }
    match found.to_str() {
        Some(text) if text.len() <= LONGEST => Ok(found),
        Some(_) => Err(Misplaced::TooLong),
        None => Err(Misplaced::NotText),
    }
}

/// Returns a project's folder if it still is what it was: neither a link nor below
/// one, for that could lead to what belongs to another project.
pub(crate) fn unchanged(roots: &[PathBuf], directory: &str) -> Result<PathBuf, Misplaced> {
    let found = confined(roots, Path::new(directory))?;
    if found == Path::new(directory) { Ok(found) } else { Err(Misplaced::Replaced) }
}

/// Returns the folder as [`confined`] does, and makes it if only it is missing.
pub(crate) fn found_or_made(roots: &[PathBuf], directory: &Path) -> Result<PathBuf, Misplaced> {
    match confined(roots, directory) {
        Err(Misplaced::Missing) => {}
        other => return other,
    }
    let (Some(above), Some(name)) = (directory.parent(), directory.file_name()) else {
        return Err(Misplaced::Missing);
    };
    // Where it is made there is no link any more that could lead elsewhere.
    let folder = confined(roots, above)?.join(name);
    match fs::create_dir(&folder) {
        Ok(()) => {}
        // Somebody else made it just now, or it is a link to nothing.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(absence(&error)),
    }
    match confined(roots, &folder) {
        Err(Misplaced::Missing) => Err(Misplaced::NotAFolder),
        other => other,
    }
}

/// Whether a path lies in one of some folders, as it is written. Pure.
fn lies_in(roots: &[PathBuf], path: &Path) -> bool {
    roots.iter().any(|root| path.starts_with(root))
}

/// Says why there is no folder at a path that would be a good one.
fn absence(error: &io::Error) -> Misplaced {
    match Errno::from_io_error(error) {
        Some(Errno::NAMETOOLONG) => Misplaced::TooLong,
        Some(Errno::NOENT) => Misplaced::Missing,
        Some(Errno::NOTDIR) => Misplaced::NotAFolder,
        Some(Errno::ACCESS | Errno::PERM) => Misplaced::Closed,
        _ => Misplaced::Other(error.to_string()),
    }
}

#[cfg(test)]
mod tests;
