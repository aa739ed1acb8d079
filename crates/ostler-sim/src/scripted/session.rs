//! Sessions on disk, the same for every played agent: one file each, with the
//! prompts and the number of pretended model calls, from which the cumulative
//! usage follows.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Error;
use super::answer::{Answer, answer};
use super::id::is_plain;
use super::report;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Session {
    pub(super) id: String,
    pub(super) model: String,
    pub(super) cwd: PathBuf,
    pub(super) prompts: Vec<String>,
    pub(super) n_model_calls: u64,
}

impl Session {
    pub(super) fn new(id: String, model: String, cwd: &Path) -> Self {
        Self { id, model, cwd: cwd.to_path_buf(), prompts: Vec::new(), n_model_calls: 0 }
    }

    /// Takes a prompt and returns what is answered to it.
    pub(super) fn ask(&mut self, agent: &str, prompt: &str) -> Answer {
        self.prompts.push(prompt.to_owned());
        let answer = answer(agent, prompt, self.prompts.len());
        self.n_model_calls += answer.n_model_calls();
        answer
    }
}

/// The sessions of one agent.
#[derive(Debug)]
pub(super) struct Sessions {
    folder: PathBuf,
}

impl Sessions {
    pub(super) fn of(agent: &str, home: &Path) -> Self {
        Self { folder: home.join(agent) }
    }

    /// A word that cannot be a file name is no session's id.
    pub(super) fn load(&self, id: &str) -> Result<Option<Session>, Error> {
        if !is_plain(id) {
            return Ok(None);
        }
        let path = self.path(id);
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::file("read the session", &path)(error)),
        };
        serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|error| Error::Usage(format!("session {}: {error}", path.display())))
    }

    pub(super) fn save(&self, session: &Session) -> Result<(), Error> {
        std::fs::create_dir_all(&self.folder).map_err(Error::file("create", &self.folder))?;
        report::write_json(&self.path(&session.id), session)
    }

    /// Whether any session belongs to this folder.
    pub(super) fn any_in(&self, cwd: &Path) -> Result<bool, Error> {
        let entries = match std::fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(Error::file("read", &self.folder)(error)),
        };
        for entry in entries.flatten() {
            let path = entry.path();
            let id = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            if self.load(id)?.is_some_and(|session| session.cwd == cwd) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(super) fn path(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}.json"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "11111111-2222-4333-8444-555555555555";

    #[test]
    fn a_saved_session_is_found_by_its_agent_only() {
        let home = tempfile::tempdir().unwrap();
        let mut session = Session::new(ID.into(), "m".into(), Path::new("/somewhere"));
        session.prompts.push("one\ntwo".into());
        let claude = Sessions::of("claude", home.path());
        assert_eq!(claude.load(ID).unwrap(), None);
        claude.save(&session).unwrap();
        assert_eq!(claude.load(ID).unwrap(), Some(session));
        assert_eq!(Sessions::of("codex", home.path()).load(ID).unwrap(), None);
    }

    #[test]
    fn a_broken_session_file_is_named() {
        let home = tempfile::tempdir().unwrap();
        let sessions = Sessions::of("claude", home.path());
        sessions.save(&Session::new(ID.into(), "m".into(), Path::new("/"))).unwrap();
        std::fs::write(sessions.path(ID), "{").unwrap();
        assert!(sessions.load(ID).unwrap_err().to_string().contains(ID));
    }
}
