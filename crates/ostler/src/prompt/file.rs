//! Reads one file of which nothing is known but its path: it may be a folder, a
//! pipe that nobody writes to, no text, without end, or change meanwhile.

use std::{
    fs::{self, File, FileType, Metadata, OpenOptions},
    io::{self, Read as _},
    os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::Path,
};

use rustix::fs::OFlags;

/// How often a file is read that is written at the same time.
const TRIES: usize = 3;

/// What a file says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Text {
    pub(crate) text: String,
    /// Whether there is more of it.
    pub(crate) is_cut: bool,
    /// Whether nobody may write to it.
    pub(crate) is_read_only: bool,
}

/// Reads the beginning of a file, at most so many bytes; the error says why
/// there is nothing to be had.
pub(crate) fn text(path: &Path, limit: usize) -> Result<Text, String> {
    let mut attempt = Attempt::make(path, limit)?;
    for _ in 1..TRIES {
        if !attempt.is_torn {
            break;
        }
        attempt = Attempt::make(path, limit)?;
    }
    let Attempt { mut bytes, is_read_only, .. } = attempt;
    let is_cut = bytes.len() > limit;
    bytes.truncate(limit);
    let end = match str::from_utf8(&bytes) {
        // The cut may go through a character.
        Err(error) if is_cut && error.error_len().is_none() => error.valid_up_to(),
        Err(_) => return Err("it is no UTF-8 text".to_owned()),
        Ok(text) => text.len(),
    };
    bytes.truncate(end);
    let text = String::from_utf8(bytes).map_err(|_| "it is no UTF-8 text".to_owned())?;
    // No text has it, and no argument of a program can.
    if text.contains('\0') {
        return Err("it is no text: there are null characters in it".to_owned());
    }
    Ok(Text { text, is_cut, is_read_only })
}

/// One reading of a file.
struct Attempt {
    bytes: Vec<u8>,
    /// Whether it was written to meanwhile.
    is_torn: bool,
    is_read_only: bool,
}

impl Attempt {
    fn make(path: &Path, limit: usize) -> Result<Self, String> {
        // Opening a device can do things, so it is looked at before.
        check(fs::metadata(path).map_err(unreadable)?.file_type())?;
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        let flags = i32::try_from(flags.bits()).unwrap_or_default();
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path);
        let file = file.map_err(unreadable)?;
        let before = file.metadata().map_err(unreadable)?;
        // It may be another one by now.
        check(before.file_type())?;
        let bytes = beginning(&file, limit).map_err(unreadable)?;
        let after = file.metadata().map_err(unreadable)?;
        let is_read_only = before.permissions().readonly();
        Ok(Self { bytes, is_torn: stamp(&before) != stamp(&after), is_read_only })
    }
}

/// Reads one byte more than the limit, so that it is known whether there is more.
fn beginning(file: &File, limit: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn stamp(meta: &Metadata) -> (u64, i64, i64) {
    (meta.len(), meta.mtime(), meta.mtime_nsec())
}

fn unreadable(error: io::Error) -> String {
    if error.kind() == io::ErrorKind::NotFound {
        "it leads nowhere, or is just gone".to_owned()
    } else {
        format!("it cannot be read: {error}")
    }
}

fn check(kind: FileType) -> Result<(), String> {
    let noun = if kind.is_file() {
        return Ok(());
    } else if kind.is_dir() {
        "a folder"
    } else if kind.is_fifo() {
        "a pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    };
    Err(format!("it is {noun} and no file"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn what_is_no_file_or_no_text_is_refused_without_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("folder")).unwrap();
        mknodat(CWD, at("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        symlink(at("loop"), at("loop")).unwrap();
        symlink(at("nothing"), at("broken")).unwrap();
        symlink("/dev/zero", at("device")).unwrap();
        fs::write(at("latin"), b"caf\xe9").unwrap();
        fs::write(at("null"), b"a\0b").unwrap();
        fs::write(at("half"), &"é".as_bytes()[..1]).unwrap();
        for (name, why) in [
            ("folder", "it is a folder and no file"),
            ("pipe", "it is a pipe and no file"),
            ("loop", "it cannot be read: "),
            ("broken", "it leads nowhere"),
            ("gone", "it leads nowhere"),
            ("device", "it is a device and no file"),
            ("latin", "it is no UTF-8 text"),
            ("null", "null characters"),
            ("half", "it is no UTF-8 text"),
        ] {
            let said = text(&at(name), 100).unwrap_err();
            assert!(said.contains(why), "{name}: {said}");
        }
    }

    #[test]
    fn a_long_file_is_cut_at_a_character() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("long");
        fs::write(&path, "é".repeat(5_000_000)).unwrap();
        let read = text(&path, 1001).unwrap();
        assert_eq!((read.text.len(), read.is_cut), (1000, true));
        fs::write(&path, "é".repeat(500)).unwrap();
        let read = text(&path, 1000).unwrap();
        assert_eq!((read.text.len(), read.is_cut), (1000, false));
    }

    #[test]
    fn a_link_is_followed_and_a_file_that_nobody_may_write_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&path, "x").unwrap();
        symlink(&path, &link).unwrap();
        assert!(!text(&link, 10).unwrap().is_read_only);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
        let read = Text { text: "x".to_owned(), is_cut: false, is_read_only: true };
        assert_eq!(text(&link, 10).unwrap(), read);
    }
}
