//! The configuration file: where it lies, and what is in it.
//!
//! Strict: a key that is not known and a value of another type are errors that
//! name the key and the place, and nothing of the file is used then. The first
//! file that is there counts, and no other is read.

use std::{
    ffi::OsStr,
    fmt, fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use ostler_core::environment::Variables;
use serde::Deserialize;
use thiserror::Error;

use super::agents::OwnAgents;

/// The name of the file in the working directory and in the user's folder.
const NAME: &str = "ostler.json5";
/// Longer than anybody would write by hand.
const MAX_BYTES: u64 = 1024 * 1024;
/// Deeper than anything in a file is.
const MAX_DEPTH: usize = 64;

/// Everything that a file can say.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct File {
    /// Agents of the operator's own.
    pub(crate) agents: OwnAgents,
}

/// Why a file cannot be used.
#[derive(Debug, Error)]
pub(crate) enum FileError {
    #[error("{}: could not be read: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{}: {why}", path.display())]
    NotAFile { path: PathBuf, why: &'static str },
    #[error("{}{place}: {}{why}", path.display(), Key(key))]
    Content { path: PathBuf, place: Place, key: String, why: String },
}

/// A place in a file, as editors and compilers write it; counted from 1.
#[derive(Debug)]
pub(crate) struct Place(Option<json5::Position>);

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(at) => write!(f, ":{}:{}", at.line + 1, at.column + 1),
            None => Ok(()),
        }
    }
}

/// The key that an error is about, before what is wrong with it.
struct Key<'a>(&'a str);

impl fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The whole of the file has no name.
        if matches!(self.0, "" | ".") { Ok(()) } else { write!(f, "{}: ", self.0) }
    }
}

/// A file that counts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    /// It counts only because it lies in the working directory, which may be a
    /// stranger's.
    pub(crate) is_local: bool,
}

/// Finds the file that counts. One that was named must be there.
pub(crate) fn find(flag: Option<&Path>, environment: &Variables) -> Option<Found> {
    let variable = |name: &str| environment.get(OsStr::new(name)).filter(|value| !value.is_empty());
    let named = flag.map(Path::to_owned).or_else(|| variable("OSTLER_CONFIG").map(PathBuf::from));
    if let Some(path) = named {
        return Some(Found { path, is_local: false });
    }
    let folder = variable("XDG_CONFIG_HOME").map(PathBuf::from);
    let folder = folder.or_else(|| Some(Path::new(variable("HOME")?).join(".config")));
    let users = folder.map(|folder| folder.join("ostler").join(NAME));
    let local = Found { path: PathBuf::from(NAME), is_local: true };
    let users = users.map(|path| Found { path, is_local: false });
    [Some(local), users].into_iter().flatten().find(|found| is_there(&found.path))
}

/// Whether there is something of that name, even if it is no file.
fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// Reads a file.
pub(crate) fn read(path: &Path) -> Result<File, FileError> {
    let io_error = |source| FileError::Io { path: path.to_owned(), source };
    let not_a_file = |why| FileError::NotAFile { path: path.to_owned(), why };
    let meta = fs::metadata(path).map_err(io_error)?;
    if meta.is_dir() {
        return Err(not_a_file("is a directory, not a configuration file"));
    }
    // Anything else could keep us waiting.
    if !meta.is_file() {
        return Err(not_a_file("is not a regular file"));
    }
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(io_error)?;
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(io_error)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(not_a_file("is larger than 1 MiB, so it is no configuration file"));
    }
    let text = String::from_utf8(bytes).map_err(|_| not_a_file("is not valid UTF-8"))?;
    if is_deep(&text) {
        return Err(not_a_file("is nested too deeply to be a configuration file"));
    }
    let mut file = parse(path, &text)?;
    let real = std::path::absolute(path).map_err(io_error)?;
    file.agents.settle_in(real.parent().unwrap_or(Path::new("/")));
    Ok(file)
}

/// Whether reading the text could take more stack than there is. Brackets in
/// texts count as well, which does no harm.
fn is_deep(text: &str) -> bool {
    let mut depth = 0_usize;
    text.bytes().any(|byte| {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth > MAX_DEPTH
    })
}

fn parse(path: &Path, text: &str) -> Result<File, FileError> {
    let content = |key: String, error: &json5::Error| FileError::Content {
        path: path.to_owned(),
        place: Place(error.position()),
        key,
        why: without_place(error),
    };
    // What comes after the value is looked at here, for only this looks at it.
    if let Err(error) = json5::from_str::<serde::de::IgnoredAny>(text) {
        return Err(content(String::new(), &error));
    }
    let mut reader = json5::Deserializer::from_str(text);
    serde_path_to_error::deserialize(&mut reader)
        .map_err(|error| content(error.path().to_string(), error.inner()))
}

/// Returns the words of an error; the place is told before them.
fn without_place(error: &json5::Error) -> String {
    let text = error.to_string();
    let place = error.position().map(|at| format!(" at {at}")).unwrap_or_default();
    text.strip_suffix(place.as_str()).unwrap_or(&text).to_owned()
}
