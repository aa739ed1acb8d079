//! A page: a file to which entries are added, each once, whatever happened when
//! it was written before.

use std::{
    fs::{DirBuilder, File, OpenOptions},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::Path,
};

use super::entry::mark;
use crate::id::MessageId;

/// How far before what may have been written it is looked for, in bytes: somebody
/// may have added a note of his own behind it.
const SLACK: usize = 64 * 1024;
/// How the line begins that ends an entry.
const MARK: &[u8] = b"\n<!-- msg_";

/// What belongs on a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) title: String,
    /// In their order.
    pub(super) entries: Vec<(MessageId, String)>,
}

/// Adds entries to a page, and returns when they are on disk. Those that are
/// there already are left out, and one that was cut off half-way is replaced.
pub(super) fn append(path: &Path, page: &Page) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mut file =
        OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    let length = metadata.len();
    let whole: usize = page.entries.iter().map(|(_, entry)| entry.len()).sum();
    let reach = u64::try_from(whole + page.title.len() + SLACK).unwrap_or(u64::MAX);
    file.seek(SeekFrom::Start(length.saturating_sub(reach)))?;
    let mut tail = Vec::new();
    (&file).take(reach).read_to_end(&mut tail)?;
    let end = if reach >= length { End::WholeFile(&tail) } else { End::Tail(&tail) };
    let Change { n_cut, text } = change(end, page);
    if n_cut > 0 {
        file.set_len(length.saturating_sub(u64::try_from(n_cut).unwrap_or(0)))?;
    }
    // Also if there is nothing to add: it may not have been on disk yet.
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    if length == 0 {
        // So that the file, and a folder that may be new, have their names after a power cut.
        for folder in folder.ancestors().take(3) {
            File::open(folder).and_then(|folder| folder.sync_all())?;
        }
    }
    Ok(())
}

/// The end of a file.
#[derive(Clone, Copy)]
enum End<'a> {
    WholeFile(&'a [u8]),
    Tail(&'a [u8]),
}

/// What is to be done to a file.
#[derive(Debug, PartialEq, Eq)]
struct Change {
    /// How many bytes at its end are a part of an entry.
    n_cut: usize,
    /// What is added then.
    text: String,
}

/// Decides what is to be done so that all entries are in a file once.
fn change(end: End<'_>, page: &Page) -> Change {
    let (tail, is_whole) = match end {
        End::WholeFile(tail) => (tail, true),
        End::Tail(tail) => (tail, false),
    };
    let seen = String::from_utf8_lossy(tail);
    let is_there = |id: MessageId| seen.contains(&format!("\n{}", mark(id)));
    let missing = page.entries.iter().filter(|(id, _)| !is_there(*id));
    let missing: String = missing.map(|(_, entry)| entry.as_str()).collect();
    if missing.is_empty() {
        return Change { n_cut: 0, text: missing };
    }
    let titled = || format!("{}{missing}", page.title);
    let is_torn = |rest: &[u8], text: &str| text.as_bytes().starts_with(rest);
    match after_last_mark(tail) {
        Some(rest) if is_torn(rest, &missing) => Change { n_cut: rest.len(), text: missing },
        None if is_whole && is_torn(tail, &titled()) => {
            Change { n_cut: tail.len(), text: titled() }
        }
        // Somebody wrote there. It stays as it is.
        Some(_) | None => {
            let gap = if tail.ends_with(b"\n") { "" } else { "\n" };
            Change { n_cut: 0, text: format!("{gap}{missing}") }
        }
    }
}

/// Returns what stands after the last line that ends an entry, if there is one.
fn after_last_mark(tail: &[u8]) -> Option<&[u8]> {
    let mut from = tail.len();
    loop {
        let at = tail.get(..from)?.windows(MARK.len()).rposition(|window| window == MARK)?;
        let line = tail.get(at + 1..)?;
        if let Some(end) = line.iter().position(|byte| *byte == b'\n')
            && line.get(..end).is_some_and(|line| line.ends_with(b" -->"))
        {
            return line.get(end + 1..);
        }
        // The line itself was cut off; the one before counts.
        from = at + 1;
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    fn entry(id: MessageId, text: &str) -> (MessageId, String) {
        (id, format!("\n## 09:30:00 · ann\n\n> {text}\n\n{}", mark(id)))
    }

    fn page(n_entries: usize) -> Page {
        let entries = (0..n_entries).map(|number| entry(MessageId::new(), &format!("no {number}")));
        Page { title: "# main\n".to_owned(), entries: entries.collect() }
    }

    fn whole(page: &Page) -> String {
        let entries = page.entries.iter().map(|(_, entry)| entry.as_str());
        [page.title.as_str()].into_iter().chain(entries).collect()
    }

    #[test]
    fn a_page_that_was_cut_off_anywhere_becomes_whole_and_has_everything_once() {
        let folder = tempfile::tempdir().unwrap();
        let page = page(3);
        let whole = whole(&page);
        for cut in 0..=whole.len() {
            let path = folder.path().join(format!("a/b/{cut}.md"));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, &whole.as_bytes()[..cut]).unwrap();
            append(&path, &page).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), whole, "cut at {cut}");
        }
    }

    #[test]
    fn what_somebody_wrote_on_a_page_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("page.md");
        let mut page = page(1);
        append(&path, &page).unwrap();
        let noted = format!("{}\nA note of mine", fs::read_to_string(&path).unwrap());
        fs::write(&path, &noted).unwrap();
        page.entries.push(entry(MessageId::new(), "later"));
        append(&path, &page).unwrap();
        append(&path, &page).unwrap();
        let expected = format!("{noted}\n{}", page.entries[1].1);
        assert_eq!(fs::read_to_string(&path).unwrap(), expected);
    }

    #[test]
    fn entries_that_were_cut_are_found_behind_many_others() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("page.md");
        let first = Page {
            title: "# main\n".to_owned(),
            entries: vec![entry(MessageId::new(), &"x".repeat(300_000))],
        };
        append(&path, &first).unwrap();
        let long = Page {
            title: first.title.clone(),
            entries: vec![entry(MessageId::new(), &"é".repeat(100_001))],
        };
        let before = fs::read(&path).unwrap();
        let torn = [before.as_slice(), &long.entries[0].1.as_bytes()[..100_000]].concat();
        fs::write(&path, torn).unwrap();
        append(&path, &long).unwrap();
        append(&path, &long).unwrap();
        let expected = [before.as_slice(), long.entries[0].1.as_bytes()].concat();
        assert!(fs::read(&path).unwrap() == expected);
    }

    #[test]
    fn pages_are_the_owners_alone_and_what_is_no_file_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/page.md");
        append(&path, &page(1)).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        let taken = folder.path().join("b/page.md");
        fs::create_dir_all(&taken).unwrap();
        assert!(append(&taken, &page(1)).is_err());
    }
}
