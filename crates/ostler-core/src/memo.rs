//! What is remembered about a session between turns, and its place on disk.
//!
//! The agent keeps the conversation; a memo keeps what the agent does not tell
//! again: where the session lives, and what it had used before this turn.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::host::create_private_dir;

/// What to hand back in order to go on with a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Memo {
    /// The agent's own id.
    pub id: String,
    /// Whose session it is.
    pub agent: String,
    /// Where it was last used; absent when only the id is known.
    #[serde(default)]
    pub cwd: Option<PathBuf>,
    /// The agent's home, when it was not the user's.
    #[serde(default)]
    pub home: Option<PathBuf>,
    /// The address of the server that keeps it, when that is somebody else's.
    #[serde(default)]
    pub server: Option<String>,
    /// When it began.
    #[serde(default)]
    pub created_at: Option<Timestamp>,
    /// When it was last used.
    #[serde(default)]
    pub updated_at: Option<Timestamp>,
    /// The model that answered last.
    #[serde(default)]
    pub model: Option<String>,
    /// The CLI's version at the last turn, where the CLI tells it.
    #[serde(default)]
    pub version: Option<String>,
    /// The file in which the agent keeps it, where the agent tells.
    #[serde(default)]
    pub file: Option<PathBuf>,
    /// What the session had used after the last turn, as the agent counts.
    #[serde(default)]
    pub totals: Option<Totals>,
    /// Whether the system prompt or identity text was sent.
    #[serde(default)]
    pub system_sent: bool,
    /// Which system prompt the session began with, or was told of later, by its hash.
    #[serde(default)]
    pub system_hash: Option<String>,
}

impl Memo {
    /// Makes a memo of which nothing but the id is known.
    pub fn of_id(agent: impl Into<String>, id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            agent: agent.into(),
            cwd: None,
            home: None,
            server: None,
            created_at: None,
            updated_at: None,
            model: None,
            version: None,
            file: None,
            totals: None,
            system_sent: false,
            system_hash: None,
        }
    }
}

/// Where an agent keeps its sessions. What is kept in one place is not in another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept<'a> {
    /// In a home: the user's, or one of the agent's own.
    Home(Option<&'a Path>),
    /// By the server at this address.
    Server(&'a str),
}

impl Memo {
    /// Returns where the session is kept.
    #[must_use]
    pub fn kept(&self) -> Kept<'_> {
        match &self.server {
            Some(url) => Kept::Server(url),
            None => Kept::Home(self.home.as_deref()),
        }
    }
}

/// Cumulative figures of a session, for agents that report nothing else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Totals {
    /// Whole prompts, cache included.
    pub input_tokens: u64,
    /// What the model wrote.
    pub output_tokens: u64,
    /// Read from a cache.
    pub cached_tokens: u64,
    /// In US dollars.
    pub cost_usd: f64,
}

/// Why a memo could not be read or written.
#[derive(Debug, Error)]
pub enum MemoError {
    /// The file system said no.
    #[error("could not {what} {path:?}")]
    Io {
        /// What was being done.
        what: &'static str,
        /// To which path.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The file is not a memo.
    #[error("{path:?} is not a session memo; delete it to go on without it")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: serde_json::Error,
    },
}

/// The memos of one data folder: `sessions/<agent>/<id>.json`.
#[derive(Clone, Debug)]
pub struct MemoStore {
    root: PathBuf,
}

impl MemoStore {
    /// Uses the folder `sessions` of a data folder; it is made when first written to.
    pub fn new(data_dir: impl AsRef<Path>) -> Self {
        Self { root: data_dir.as_ref().join("sessions") }
    }

    /// Reads a memo; `None` when there is none.
    ///
    /// # Errors
    /// When it is there but cannot be read.
    pub fn load(&self, agent: &str, id: &str) -> Result<Option<Memo>, MemoError> {
        read(&self.path(agent, id, "json"))
    }

    /// Writes a memo so that a reader sees the old or the new one, never half.
    ///
    /// # Errors
    /// When the file system says no.
    pub fn save(&self, memo: &Memo) -> Result<(), MemoError> {
        let path = self.path(&memo.agent, &memo.id, "json");
        let fail = |what, source| MemoError::Io { what, path: path.clone(), source };
        let text = serde_json::to_vec_pretty(memo)
            .map_err(|source| MemoError::Malformed { path: path.clone(), source })?;
        let folder = path.parent().unwrap_or(&self.root);
        create_private_dir(folder).map_err(|source| fail("create the folder of", source))?;
        let temporary = path.with_extension(format!("{}.tmp", uuid::Uuid::now_v7().simple()));
        fs::write(&temporary, text).map_err(|source| fail("write", source))?;
        fs::rename(&temporary, &path).map_err(|source| {
            // The rename's own error is the one to tell.
            fs::remove_file(&temporary).ok();
            fail("replace", source)
        })
    }

    /// Finds the memo that was used last for an agent in a directory, of those
    /// that are kept there.
    ///
    /// # Errors
    /// When the folder cannot be listed. Files that are no memos are passed over.
    pub fn newest(
        &self,
        agent: &str,
        cwd: &Path,
        kept: Kept<'_>,
    ) -> Result<Option<Memo>, MemoError> {
        let folder = self.root.join(agent);
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => {
                return Err(MemoError::Io { what: "list", path: folder, source });
            }
        };
        let newest = entries
            .filter_map(Result::ok)
            .filter(|entry| entry.path().extension().is_some_and(|ext| ext == "json"))
            .filter_map(|entry| read(&entry.path()).ok().flatten())
            .filter(|memo| memo.cwd.as_deref() == Some(cwd) && memo.kept() == kept)
            .max_by_key(|memo| memo.updated_at);
        Ok(newest)
    }

    /// Returns the path of a session's file with the given ending.
    pub(crate) fn path(&self, agent: &str, id: &str, ending: &str) -> PathBuf {
        self.root.join(agent).join(format!("{}.{ending}", file_stem(id)))
    }
}

/// Returns a file name for an id: the id itself where that is harmless, else its hash.
fn file_stem(id: &str) -> String {
    let harmless = (1..=128).contains(&id.len())
        && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    if harmless {
        return id.to_owned();
    }
    format!("sha256-{}", hash(id))
}

/// Returns the SHA-256 of a text in hexadecimal.
#[must_use]
pub fn hash(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn read(path: &Path) -> Result<Option<Memo>, MemoError> {
    match fs::read(path) {
        Ok(text) => serde_json::from_slice(&text)
            .map(Some)
            .map_err(|source| MemoError::Malformed { path: path.to_owned(), source }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(MemoError::Io { what: "read", path: path.to_owned(), source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_saved_is_loaded_and_the_newest_of_a_directory_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let store = MemoStore::new(dir.path());
        let at = |seconds| Timestamp::from_second(seconds).ok();
        let memo = |id: &str, cwd: &str, seconds| Memo {
            cwd: Some(cwd.into()),
            updated_at: at(seconds),
            ..Memo::of_id("claude", id)
        };
        store.save(&memo("a", "/w", 10)).unwrap();
        store.save(&memo("b", "/w", 30)).unwrap();
        store.save(&memo("c", "/other", 99)).unwrap();
        store.save(&memo("a", "/w", 20)).unwrap();
        assert_eq!(store.load("claude", "a").unwrap().unwrap().updated_at, at(20));
        assert_eq!(
            store.newest("claude", Path::new("/w"), Kept::Home(None)).unwrap().unwrap().id,
            "b"
        );
        for elsewhere in [Kept::Home(Some(Path::new("/h"))), Kept::Server("http://127.0.0.1")] {
            assert_eq!(store.newest("claude", Path::new("/w"), elsewhere).unwrap(), None);
        }
        let at_server = Memo { server: Some("http://host".to_owned()), ..memo("d", "/w", 40) };
        store.save(&at_server).unwrap();
        let found = store.newest("claude", Path::new("/w"), Kept::Server("http://host"));
        assert_eq!(found.unwrap().unwrap().id, "d");
        assert_eq!(store.newest("codex", Path::new("/w"), Kept::Home(None)).unwrap(), None);
        assert_eq!(store.load("claude", "zzz").unwrap(), None);
    }

    #[test]
    fn hostile_ids_stay_inside_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        let store = MemoStore::new(dir.path());
        for id in ["../../etc/passwd", "/abs", "a/b", "..", ".", "", "é"] {
            let path = store.path("claude", id, "json");
            assert_eq!(path.parent().unwrap(), dir.path().join("sessions/claude"), "{id:?}");
            store.save(&Memo::of_id("claude", id)).unwrap();
            assert_eq!(store.load("claude", id).unwrap().unwrap().id, id);
        }
    }

    #[test]
    fn a_damaged_memo_is_an_error_that_names_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let store = MemoStore::new(dir.path());
        fs::create_dir_all(dir.path().join("sessions/codex")).unwrap();
        fs::write(dir.path().join("sessions/codex/x.json"), "{").unwrap();
        let error = store.load("codex", "x").unwrap_err();
        assert!(error.to_string().contains("x.json"), "{error}");
        assert_eq!(store.newest("codex", Path::new("/w"), Kept::Home(None)).unwrap(), None);
    }
}
