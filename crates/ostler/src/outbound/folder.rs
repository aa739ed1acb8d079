//! The folder whose files are sent as messages. A file is taken when it is
//! complete, and removed when its message is stored; one that cannot be sent is
//! set aside with the reason. A crash in between sends nothing twice, for the
//! message has a name by which it is known.

use std::{
    collections::HashMap,
    ffi::{OsStr, OsString},
    fs::{self, DirBuilder, File},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use rustix::{
    fs::{AtFlags, Mode, OFlags},
    io::Errno,
};
use tokio::{
    sync::watch,
    task,
    time::{self, Instant},
};
use tokio_util::sync::CancellationToken;

use super::{
    Outgoing,
    draft::{self, Form},
};
use crate::{
    config::{Stamp, stamp_of},
    gateway::{Gateway, inbound::Refusal, policy::Policy},
};

/// How often the folder is looked at.
const LOOK: Duration = Duration::from_secs(1);
/// How long a file must have been as it is before it counts as complete, where
/// its content does not tell.
const SETTLED: Duration = Duration::from_secs(2);
/// The largest file that is sent, in bytes.
const LARGEST: u64 = 1024 * 1024;
/// How many names are looked at; the others when there are fewer.
const MOST: usize = 100_000;
/// Where files are put that cannot be sent.
const FAILED: &str = "failed";
/// What the file is called beside them that says why.
const REASON: &str = ".reason";
/// The longest name that is kept there.
const LONGEST: usize = 200;

/// Watches the folder that is configured, if one is, until it is told to stop.
pub(crate) async fn watch(
    gateway: Gateway,
    policy: watch::Receiver<Arc<Policy>>,
    stop: CancellationToken,
) {
    let mut folder: Option<Folder> = None;
    loop {
        let dir = policy.borrow().outbound.clone();
        if folder.as_ref().map(|folder| &folder.dir) != dir.as_ref() {
            folder = dir.map(Folder::new);
        }
        if let Some(folder) = &mut folder {
            // A disk may never answer. A file whose message was stored is known
            // again by its name.
            stop.run_until_cancelled(folder.look(&gateway, Instant::now(), &stop)).await;
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = time::sleep(LOOK) => {}
        }
    }
}

/// A folder that is watched.
#[derive(Debug)]
pub(super) struct Folder {
    dir: PathBuf,
    seen: HashMap<OsString, Seen>,
    /// Whether it was told that something is wrong.
    is_told: bool,
}

/// A file that was there at the last look.
#[derive(Clone, Copy, Debug)]
struct Seen {
    stamp: Stamp,
    /// Since when it is as it is.
    since: Instant,
    /// Whether its message is stored, and only the file is left to be removed.
    is_sent: bool,
}

/// A file of the folder.
#[derive(Debug)]
struct Found {
    name: OsString,
    form: Form,
    stamp: Stamp,
    what: What,
}

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    File,
    TooLarge,
    Link,
    /// A pipe, a socket, a device.
    Other,
}

/// What becomes of a file.
#[derive(Debug)]
enum Step {
    /// It may not be complete.
    Wait,
    Send(Outgoing),
    /// It cannot be sent, and why.
    SetAside(String),
}

/// Why a look ends before its time.
enum Halt {
    /// The gateway takes nothing now.
    Refused(Refusal),
    Trouble(io::Error),
}

impl From<io::Error> for Halt {
    fn from(error: io::Error) -> Self {
        Self::Trouble(error)
    }
}

impl Folder {
    pub(super) fn new(dir: PathBuf) -> Self {
        Self { dir, seen: HashMap::new(), is_told: false }
    }

    /// Sends what is there and complete. What goes wrong is told once, and tried
    /// again with the next look.
    pub(super) async fn look(&mut self, gateway: &Gateway, now: Instant, stop: &CancellationToken) {
        let why = match self.send_all(gateway, now, stop).await {
            Ok(()) => {
                self.is_told = false;
                return;
            }
            Err(Halt::Refused(Refusal::Stopping)) => return,
            Err(Halt::Refused(refusal)) => refusal.to_string(),
            Err(Halt::Trouble(error)) => error.to_string(),
        };
        if !std::mem::replace(&mut self.is_told, true) {
            tracing::warn!(folder = %self.dir.display(), why, "messages to people have to wait");
        }
    }

    async fn send_all(
        &mut self,
        gateway: &Gateway,
        now: Instant,
        stop: &CancellationToken,
    ) -> Result<(), Halt> {
        let dir = self.dir.clone();
        let found = blocking(move || list(&dir)).await?;
        self.note(&found, now);
        let mut trouble = Ok(());
        for one in found {
            if stop.is_cancelled() {
                break;
            }
            match self.send(gateway, &one, now).await {
                Ok(()) => {}
                // One that stands in the way of no other.
                Err(Halt::Trouble(error)) => trouble = Err(Halt::Trouble(error)),
                Err(halt @ Halt::Refused(_)) => return Err(halt),
            }
        }
        trouble
    }

    /// Notes since when files are as they are, and forgets those that are gone.
    fn note(&mut self, found: &[Found], now: Instant) {
        let mut seen = HashMap::with_capacity(found.len());
        for Found { name, stamp, .. } in found {
            let before = self.seen.get(name).filter(|seen| seen.stamp == *stamp).copied();
            let new = Seen { stamp: *stamp, since: now, is_sent: false };
            seen.insert(name.clone(), before.unwrap_or(new));
        }
        self.seen = seen;
    }

    async fn send(&mut self, gateway: &Gateway, found: &Found, now: Instant) -> Result<(), Halt> {
        let Some(seen) = self.seen.get_mut(&found.name) else { return Ok(()) };
        let path = self.dir.join(&found.name);
        let stamp = found.stamp;
        if !seen.is_sent {
            let is_settled = now.duration_since(seen.since) >= SETTLED;
            let step = step(path.clone(), found, is_settled).await?;
            let outcome = match step {
                Step::Wait => return Ok(()),
                Step::SetAside(reason) => Err(reason),
                Step::Send(outgoing) => match gateway.deliver(outgoing).await {
                    Ok(delivered) => Ok(delivered),
                    Err(refusal) if refusal.code() == "invalid_request" => Err(refusal.to_string()),
                    Err(refusal) => return Err(Halt::Refused(refusal)),
                },
            };
            match outcome {
                Ok(delivered) => {
                    seen.is_sent = true;
                    let file = found.name.display();
                    tracing::info!(%file, id = %delivered.message, "a file was sent");
                }
                Err(reason) => {
                    let (dir, name, why) = (self.dir.clone(), found.name.clone(), reason.clone());
                    blocking(move || set_aside(&dir, &name, &why)).await?;
                    let file = found.name.display();
                    tracing::warn!(%file, reason, "a file cannot be sent, and was set aside");
                    return Ok(());
                }
            }
        }
        // Somebody may have put another there meanwhile.
        let removed = blocking(move || match fs::symlink_metadata(&path) {
            Ok(metadata) if stamp_of(&metadata) == stamp => fs::remove_file(&path),
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        });
        Ok(removed.await?)
    }
}

/// Does what may take a while without holding up others.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    task::spawn_blocking(work).await.unwrap_or_else(|error| Err(io::Error::other(error)))
}

/// Lists the files that may be messages, in the order of their names. A folder
/// that is not there is made.
fn list(dir: &Path) -> io::Result<Vec<Found>> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let mut all = Vec::new();
    for entry in fs::read_dir(dir)?.take(MOST) {
        let entry = entry?;
        let name = entry.file_name();
        let Some(form) = draft::form(&name) else { continue };
        // It may be gone already.
        let Ok(metadata) = entry.path().symlink_metadata() else { continue };
        let kind = metadata.file_type();
        let what = match metadata.len() {
            _ if kind.is_dir() => continue,
            _ if kind.is_symlink() => What::Link,
            _ if !kind.is_file() => What::Other,
            length if length > LARGEST => What::TooLarge,
            _ => What::File,
        };
        all.push(Found { name, form, stamp: stamp_of(&metadata), what });
    }
    all.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(all)
}

/// Decides what becomes of a file.
async fn step(path: PathBuf, found: &Found, is_settled: bool) -> io::Result<Step> {
    let aside = |reason: &str| Ok(Step::SetAside(reason.to_owned()));
    match found.what {
        What::Link => return aside("it is a symbolic link"),
        What::Other => return aside("it is no file"),
        What::TooLarge if is_settled => return aside("it is larger than 1 MiB"),
        // A part of a text is a text, too.
        What::File if found.form == Form::Json || is_settled => {}
        What::TooLarge | What::File => return Ok(Step::Wait),
    }
    let stamp = found.stamp;
    let content = match blocking(move || content(&path, stamp)).await {
        Ok(Some(content)) => content,
        Ok(None) => return Ok(Step::Wait),
        Err(error) if is_settled => return aside(&format!("it cannot be read: {error}")),
        Err(_) => return Ok(Step::Wait),
    };
    Ok(match draft::read(found.form, &content.bytes) {
        Ok(mut outgoing) => {
            let id = || draft::id(&found.name, content.changed_at, &content.bytes);
            outgoing.id.get_or_insert_with(id);
            Step::Send(outgoing)
        }
        Err(reason) if is_settled => Step::SetAside(reason),
        Err(_) => Step::Wait,
    })
}

/// What is in a file.
struct Content {
    bytes: Vec<u8>,
    changed_at: (i64, i64),
}

/// Reads a file, if it still is the one that was looked at.
fn content(path: &Path, stamp: Stamp) -> io::Result<Option<Content>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let mut bytes = Vec::new();
    (&file).take(LARGEST + 1).read_to_end(&mut bytes)?;
    let metadata = file.metadata()?;
    let changed_at = (metadata.mtime(), metadata.mtime_nsec());
    Ok((stamp_of(&metadata) == stamp).then_some(Content { bytes, changed_at }))
}

/// Puts a file where it is not looked at, with the reason beside it. Whoever
/// writes to the folder may have put links there: none is followed, so that
/// nothing is written anywhere else.
fn set_aside(dir: &Path, name: &OsStr, reason: &str) -> io::Result<()> {
    let folder = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    let dir = rustix::fs::open(dir, folder, Mode::empty())?;
    match rustix::fs::mkdirat(&dir, FAILED, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    let failed = match rustix::fs::openat(&dir, FAILED, folder | OFlags::NOFOLLOW, Mode::empty()) {
        Ok(failed) => failed,
        Err(Errno::NOTDIR | Errno::LOOP) => {
            return Err(io::Error::other(format!("{FAILED} in it is no folder")));
        }
        Err(error) => return Err(error.into()),
    };
    let name_there = if name.len() > LONGEST {
        // It would be too long with what is added to it.
        OsString::from(draft::id(name, (0, 0), &[]))
    } else {
        name.to_owned()
    };
    let is_free = |name: &OsStr| {
        let found = rustix::fs::statat(&failed, name, AtFlags::SYMLINK_NOFOLLOW);
        matches!(found, Err(Errno::NOENT))
    };
    let numbered = |number: u32| {
        let mut name = name_there.clone();
        if number > 1 {
            name.push(format!(".{number}"));
        }
        let mut reason_name = name.clone();
        reason_name.push(REASON);
        (name, reason_name)
    };
    let free = (1..10_000).map(numbered).find(|(name, reason)| is_free(name) && is_free(reason));
    let (free, reason_name) =
        free.ok_or_else(|| io::Error::other("too many files of the same name failed"))?;
    rustix::fs::renameat(&dir, name, &failed, &free)?;
    let new = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::WRONLY | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
    let mut file = File::from(rustix::fs::openat(&failed, &reason_name, new, mode)?);
    file.write_all(format!("{reason}\n").as_bytes())
}

#[cfg(test)]
mod tests;
