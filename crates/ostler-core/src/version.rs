//! Which version of an agent's program is installed, remembered so that no
//! turn ever waits for it.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use crate::{
    agent::Stdin,
    event::Stream,
    host::Host,
    proc::{self, ProcEvent, Spawn, SpawnError},
    run_dir::RunDir,
};

/// How long a program may take to say its version.
const LIMIT: Duration = Duration::from_secs(10);

/// What `validate` found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// What turns would run on.
    pub at: Found,
    /// Its version, if it could be read.
    pub version: Option<String>,
    /// What is not as it should be, though the agent can run.
    pub warning: Option<String>,
}

/// What an agent's turns would run on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// A program on this machine.
    Program(PathBuf),
    /// A server that somebody else runs.
    Server {
        /// Where it is.
        url: String,
        /// How long it took to say that it is well.
        latency: Duration,
    },
}

impl Health {
    /// Returns the program that would run, if it is one.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match &self.at {
            Found::Program(path) => Some(path),
            Found::Server { .. } => None,
        }
    }
}

/// A version, valid as long as the file is the same.
#[derive(Debug, Serialize, Deserialize)]
struct Known {
    modified: i64,
    size: u64,
    version: String,
}

type Cache = BTreeMap<String, Known>;

/// Returns the version that a former look at the same file found.
pub(crate) fn cached(data_dir: &Path, program: &Path) -> Option<String> {
    let meta = fs::metadata(program).ok()?;
    let known = load(data_dir).remove(&key(program))?;
    (known.modified == meta.mtime() && known.size == meta.size()).then_some(known.version)
}

/// Asks the command of an operator's own for the version of a program. Nothing is
/// remembered: what the command runs may be another file than its first word.
///
/// # Errors
/// When it cannot be executed at all.
pub(crate) async fn read_by(
    host: &Host,
    program: PathBuf,
    asked: &Path,
    args: &[OsString],
) -> Result<Health, SpawnError> {
    match timeout(LIMIT, ask(host, asked, args)).await {
        Ok(Ok(Some(version))) => Ok(known(program, version)),
        Ok(Ok(None)) => Ok(unknown(program, "its `version` command printed none")),
        Ok(Err(error)) => Err(error),
        Err(_) => Ok(unknown(program, &format!("no answer within {LIMIT:?}"))),
    }
}

/// Asks the program for its version, unless it is known. Takes ten seconds at most.
///
/// # Errors
/// When it cannot be executed at all.
pub async fn read(host: &Host, program: PathBuf) -> Result<Health, SpawnError> {
    if let Some(version) = cached(host.data_dir(), &program) {
        return Ok(known(program, version));
    }
    match timeout(LIMIT, ask(host, &program, &["--version".into()])).await {
        Ok(Ok(Some(version))) => {
            remember(host.data_dir(), &program, &version);
            Ok(known(program, version))
        }
        Ok(Ok(None)) => Ok(unknown(program, "`--version` printed none")),
        Ok(Err(error)) => Err(error),
        Err(_) => Ok(unknown(program, &format!("no answer within {LIMIT:?}"))),
    }
}

fn known(path: PathBuf, version: String) -> Health {
    Health { at: Found::Program(path), version: Some(version), warning: None }
}

fn unknown(path: PathBuf, why: &str) -> Health {
    let warning = format!("the version of {} could not be read: {why}", path.display());
    Health { at: Found::Program(path), version: None, warning: Some(warning) }
}

async fn ask(host: &Host, program: &Path, args: &[OsString]) -> Result<Option<String>, SpawnError> {
    let named = |name: &str| {
        let value = host.environment().get(std::ffi::OsStr::new(name))?;
        Some((OsString::from(name), value.clone()))
    };
    // Some CLIs fill their home even when they are only asked for their version.
    let home = RunDir::create(host.run_root())
        .map_err(|source| SpawnError::Io { program: program.to_owned(), source })?;
    let own = ["HOME", "TMPDIR"].map(|name| (name.into(), home.path().as_os_str().to_owned()));
    let env: Vec<_> = ["PATH", "LANG"].into_iter().filter_map(named).chain(own).collect();
    let mut proc = proc::spawn(Spawn {
        program,
        args,
        env: &env,
        cwd: Path::new("/"),
        stdin: Stdin::Null,
        stdout: None,
    })?;
    let mut version = None;
    loop {
        match proc.next().await {
            ProcEvent::Line { from: Stream::Stdout, bytes, .. } => {
                version = version.or_else(|| find_version(&String::from_utf8_lossy(&bytes)));
            }
            ProcEvent::Line { from: Stream::Stderr, .. } | ProcEvent::StdinClosed => {}
            ProcEvent::Exited { .. } => break,
        }
    }
    Ok(version)
}

/// Returns the first word that looks like a version: `2.1.325 (Claude Code)`, `codex-cli 0.166.0`.
fn find_version(line: &str) -> Option<String> {
    line.split_whitespace()
        .map(|word| word.trim_start_matches('v').trim_end_matches('.'))
        .find(|word| word.contains('.') && word.starts_with(|c: char| c.is_ascii_digit()))
        .map(str::to_owned)
}

fn key(program: &Path) -> String {
    program.to_string_lossy().into_owned()
}

fn file(data_dir: &Path) -> PathBuf {
    data_dir.join("versions.json")
}

fn load(data_dir: &Path) -> Cache {
    let text = fs::read(file(data_dir)).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

/// Writes a version down. A cache that cannot be written is only slower.
fn remember(data_dir: &Path, program: &Path, version: &str) {
    let Ok(meta) = fs::metadata(program) else {
        return;
    };
    let mut cache = load(data_dir);
    let known = Known { modified: meta.mtime(), size: meta.size(), version: version.to_owned() };
    cache.insert(key(program), known);
    let Ok(text) = serde_json::to_vec_pretty(&cache) else {
        return;
    };
    let path = file(data_dir);
    let temporary = path.with_extension(format!("{}.tmp", uuid::Uuid::now_v7().simple()));
    let written = fs::create_dir_all(data_dir)
        .and_then(|()| fs::write(&temporary, text))
        .and_then(|()| fs::rename(&temporary, &path));
    if written.is_err() {
        fs::remove_file(&temporary).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_found_in_what_the_programs_print() {
        for (line, version) in [
            ("2.1.325 (Claude Code)", Some("2.1.325")),
            ("codex-cli 0.166.0", Some("0.166.0")),
            ("v1.5.0", Some("1.5.0")),
            ("GitHub Copilot CLI 1.0.102.", Some("1.0.102")),
            ("no version here.", None),
        ] {
            assert_eq!(find_version(line).as_deref(), version, "{line}");
        }
    }

    #[test]
    fn a_changed_file_is_asked_again() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("agent");
        fs::write(&program, "one").unwrap();
        remember(dir.path(), &program, "1.0.0");
        assert_eq!(cached(dir.path(), &program).as_deref(), Some("1.0.0"));
        fs::write(&program, "three").unwrap();
        assert_eq!(cached(dir.path(), &program), None);
    }
}
