//! The files to begin with. Everything in them is a comment, so that they
//! change nothing until somebody writes something below it. Nothing that is
//! there is ever overwritten.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

/// The files by their paths in the folder.
pub(crate) const TEMPLATES: &[(&str, &str)] = &[
    ("IDENTITY.md", include_str!("../../prompt/IDENTITY.md")),
    ("SOUL.md", include_str!("../../prompt/SOUL.md")),
    ("USER.md", include_str!("../../prompt/USER.md")),
    ("TOOLS.md", include_str!("../../prompt/TOOLS.md")),
    ("AGENTS.md", include_str!("../../prompt/AGENTS.md")),
    ("MEMORY.md", include_str!("../../prompt/MEMORY.md")),
    ("BOOT.md", include_str!("../../prompt/BOOT.md")),
    ("HEARTBEAT.md", include_str!("../../prompt/HEARTBEAT.md")),
    ("skills/example/SKILL.md", include_str!("../../prompt/skills/example/SKILL.md")),
];

/// What was written, and what was there already.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) written: Vec<&'static str>,
    pub(crate) kept: Vec<&'static str>,
}

/// Writes the templates that are not there; the error says what could not be done.
pub(crate) fn write(folder: &Path) -> Result<Written, String> {
    let mut done = Written::default();
    for (name, text) in TEMPLATES {
        let is_written = place(folder, name, text)?;
        if is_written { &mut done.written } else { &mut done.kept }.push(name);
    }
    Ok(done)
}

/// Writes a file, unless one of its name is there; says whether it was written.
fn place(folder: &Path, name: &str, text: &str) -> Result<bool, String> {
    let mut path = folder.to_owned();
    let mut names = name.split('/').peekable();
    while let Some(name) = names.next() {
        make_folder(&path)?;
        let there = like(&path, name).map_err(|error| failed("read", &path, &error))?;
        let is_file = names.peek().is_none();
        if is_file && there.is_some() {
            return Ok(false);
        }
        path = there.unwrap_or_else(|| path.join(name));
    }
    let file = OpenOptions::new().write(true).create_new(true).open(&path);
    let mut file = match file {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
        Err(error) => return Err(failed("write", &path, &error)),
    };
    if let Err(error) = file.write_all(text.as_bytes()).and_then(|()| file.sync_all()) {
        // Half a template is no comment but text.
        fs::remove_file(&path).ok();
        return Err(failed("write", &path, &error));
    }
    Ok(true)
}

/// Makes a folder with its parents, for this user only: what is remembered is private.
fn make_folder(path: &Path) -> Result<(), String> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|error| failed("make the folder", path, &error))
}

/// Returns what a folder has under a name, in capitals or not.
fn like(folder: &Path, name: &str) -> io::Result<Option<PathBuf>> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().eq_ignore_ascii_case(name) {
            return Ok(Some(entry.path()));
        }
    }
    Ok(None)
}

fn failed(what: &str, path: &Path, error: &io::Error) -> String {
    format!("could not {what} {}: {error}", path.display())
}
