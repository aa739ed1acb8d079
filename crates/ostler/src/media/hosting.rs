//! Files on offer to services that fetch what they are to send: each under a link
//! that nobody can guess, that works once, and for two minutes.
//!
//! All of it is a folder. A file is called by when its link ends, by the hash of the
//! link's word, and by its own name; so links outlive a restart, and whoever reads
//! the folder learns none. A link is used by removing its file, which one alone can
//! do; it is read from what had been opened before. What it was can be asked until the
//! link is over: the start of it stays, in a file that is as long and has nothing else.

use std::{
    fmt,
    fs::File,
    io::{self, Write as _},
    os::unix::fs::FileExt as _,
    path::PathBuf,
    time::Duration,
};

use rustix::{
    fs::{AtFlags, Dir, FlockOperation, flock, statat, unlinkat},
    io::Errno,
};
use sha2::{Digest as _, Sha256};
use thiserror::Error;

use super::{
    MEGABYTE,
    folder::Folder,
    kind::{self, HEAD},
    name,
};
use crate::{
    channel::chat::{Attachment, Content},
    clock::Millis,
    key::{self, NoRandomness},
};

/// For how long a link works.
pub(crate) const VALID: Duration = Duration::from_secs(2 * 60);
/// How far the clock may be set back while links work: it is set right now and then.
const SLACK: Duration = Duration::from_secs(60);
/// How many files are on offer at once, and how large they may be together.
const MOST: usize = 100;
const TOGETHER: u64 = 512 * MEGABYTE;
/// What a file begins with that says of a used link what there was.
const USED: &str = "=";
/// The folder, below that of all media.
const FOLDER: &str = "offered";
/// How many letters and digits the word of a link has: more than 256 bits.
const WORD: usize = 43;

/// The files on offer. Cheap to make: everything is in the folder.
#[derive(Clone, Debug)]
pub(crate) struct Hosting {
    /// The folder of all media.
    root: PathBuf,
}

/// A link. Whoever has it has the file, so that it is shown to one alone.
#[derive(Clone)]
pub(crate) struct Link(String);

impl Link {
    /// Returns its path below the public URL of the gateway.
    pub(crate) fn path(&self) -> String {
        format!("/media/{}", self.0)
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Link(…)")
    }
}

/// Why a file is not offered.
#[derive(Debug, Error)]
pub(crate) enum OfferError {
    #[error("too many files are on offer; some of them will be fetched or forgotten soon")]
    Full,
    #[error(transparent)]
    Random(#[from] NoRandomness),
    #[error("the file could not be put on offer: {0}")]
    Io(#[from] io::Error),
}

/// A file that a link leads to.
#[derive(Debug)]
pub(crate) struct Offered {
    pub(crate) file: File,
    pub(crate) length: u64,
    /// By what is in it.
    pub(crate) kind: &'static str,
    pub(crate) name: String,
}

/// What the name of a file in the folder says.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    until: Millis,
    hash: String,
    name: String,
}

impl Entry {
    /// Reads a name, also of a file that is not complete; nothing if it is no such name.
    fn read(text: &str) -> Option<Self> {
        let text = text.strip_prefix('.').unwrap_or(text);
        let (until, rest) = text.split_once('-')?;
        let (hash, name) = rest.split_once('-')?;
        let is_hash = hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        let until = Millis(until.parse().ok()?);
        is_hash.then(|| Self { until, hash: hash.to_owned(), name: name.to_owned() })
    }

    fn text(&self) -> String {
        let Self { until, hash, name } = self;
        format!("{}-{hash}-{name}", until.0)
    }

    /// Whether its link works. One that works for much longer than any was made before
    /// somebody set the clock.
    fn is_valid(&self, now: Millis) -> bool {
        now < self.until && self.until <= now.after(VALID).after(SLACK)
    }
}

impl Hosting {
    /// Takes the folder of all media.
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// Offers a file, and returns its link. Blocks.
    pub(crate) fn offer(&self, file: &Attachment, now: Millis) -> Result<Link, OfferError> {
        let bytes = match &file.content {
            Content::Bytes(bytes) => bytes,
            Content::Text(text) => text.as_bytes(),
        };
        let provider = rustls::crypto::ring::default_provider();
        let word = key::random_text(provider.secure_random, WORD)?;
        let (until, name) = (now.after(VALID), name::harmless(&file.name));
        let entry = Entry { until, hash: hash(&word), name }.text();
        let folder = Folder::below(&self.root, FOLDER)?;
        // The room is taken before the next one looks, and filled afterwards.
        let (part, mut to) = {
            let only_one = Folder::below(&self.root, FOLDER)?;
            flock(only_one.fd(), FlockOperation::LockExclusive).map_err(io::Error::from)?;
            let (n_files, n_bytes) = sweep(&folder, now)?;
            if n_files >= MOST || n_bytes.saturating_add(file.content.len()) > TOGETHER {
                return Err(OfferError::Full);
            }
            let (part, to) = folder.begin_as(format!(".{entry}"))?;
            to.set_len(file.content.len())?;
            (part, to)
        };
        to.write_all(bytes)?;
        part.keep(&to, &entry)?;
        Ok(Link(word))
    }

    /// Returns what a link leads to, or led to, and leaves the link as it is. What is in the
    /// file is not to be shown. Blocks.
    pub(crate) fn look(&self, word: &str, now: Millis) -> Option<Offered> {
        let found = self.find(word, now, "").or_else(|| self.find(word, now, USED));
        found.map(|(_, _, offered)| offered)
    }

    /// Returns the file of a link that works, and uses the link up: of all who ask,
    /// one gets it. Blocks.
    pub(crate) fn take(&self, word: &str, now: Millis) -> Option<Offered> {
        let (folder, entry, offered) = self.find(word, now, "")?;
        match unlinkat(folder.fd(), entry.text(), AtFlags::empty()) {
            Ok(()) => {
                if let Err(error) = remember(&folder, &entry, &offered) {
                    tracing::info!(%error, "it is not remembered what a link led to");
                }
                Some(offered)
            }
            Err(Errno::NOENT) => None,
            Err(error) => {
                tracing::warn!(%error, "a file on offer cannot be removed, and is not handed out");
                None
            }
        }
    }

    fn find(&self, word: &str, now: Millis, mark: &str) -> Option<(Folder, Entry, Offered)> {
        let is_word = word.len() == WORD && word.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if !is_word || !self.root.join(FOLDER).exists() {
            return None;
        }
        let found = self.open(&hash(word), now, mark).inspect_err(|error| {
            tracing::warn!(%error, "a file on offer cannot be opened");
        });
        found.ok().flatten()
    }

    /// Opens what a hash belongs to, among the files with this mark.
    fn open(
        &self,
        hash: &str,
        now: Millis,
        mark: &str,
    ) -> io::Result<Option<(Folder, Entry, Offered)>> {
        let folder = Folder::below(&self.root, FOLDER)?;
        let is_it = |entry: &Entry| entry.hash == hash && entry.is_valid(now);
        let names = names(&folder)?;
        let mut marked = names.iter().filter_map(|name| Entry::read(name.strip_prefix(mark)?));
        let Some(entry) = marked.find(is_it) else { return Ok(None) };
        let Some(file) = folder.file(&format!("{mark}{}", entry.text()))? else {
            return Ok(None);
        };
        let start = start_of(&file)?;
        let (length, name) = (file.metadata()?.len(), name::harmless(&entry.name));
        let offered = Offered { length, kind: kind::of_named(&start, &name), name, file };
        Ok(Some((folder, entry, offered)))
    }

    /// Removes what nobody can fetch any more. Blocks.
    pub(crate) fn clear(&self, now: Millis) -> io::Result<()> {
        if !self.root.join(FOLDER).exists() {
            return Ok(());
        }
        sweep(&Folder::below(&self.root, FOLDER)?, now).map(drop)
    }
}

/// Notes what a link led to that was used.
fn remember(folder: &Folder, entry: &Entry, offered: &Offered) -> io::Result<()> {
    let name = format!("{USED}{}", entry.text());
    let (part, mut to) = folder.begin_as(format!(".{name}"))?;
    to.write_all(&start_of(&offered.file)?)?;
    // What is not written takes no room.
    to.set_len(offered.length)?;
    part.keep(&to, &name)
}

fn start_of(file: &File) -> io::Result<Vec<u8>> {
    let mut start = vec![0; HEAD];
    let n_read = file.read_at(&mut start, 0)?;
    start.truncate(n_read);
    Ok(start)
}

/// Removes what is over; returns how many files are left, and how large they are.
fn sweep(folder: &Folder, now: Millis) -> io::Result<(usize, u64)> {
    let (mut n_files, mut n_bytes, mut trouble) = (0, 0_u64, None);
    for name in names(folder)? {
        let plain = name.strip_prefix('.').unwrap_or(&name);
        let used = plain.strip_prefix(USED);
        let Some(entry) = Entry::read(used.unwrap_or(plain)) else { continue };
        if !entry.is_valid(now) {
            match unlinkat(folder.fd(), &name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => continue,
                // It takes up room; the others go, and there may be further ones.
                Err(error) => trouble = trouble.or(Some(error)),
            }
        }
        if used.is_some() {
            continue;
        }
        // Somebody may have fetched it meanwhile.
        let Ok(stat) = statat(folder.fd(), &name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
        n_files += 1;
        n_bytes = n_bytes.saturating_add(u64::try_from(stat.st_size).unwrap_or(u64::MAX));
    }
    if let Some(error) = trouble {
        tracing::warn!(%error, "a file that was on offer cannot be removed");
    }
    Ok((n_files, n_bytes))
}

fn names(folder: &Folder) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder.fd())? {
        // Ours are texts.
        names.extend(entry?.file_name().to_str().ok().map(str::to_owned));
    }
    Ok(names)
}

fn hash(word: &str) -> String {
    let digest = Sha256::digest(word.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
