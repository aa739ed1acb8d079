//! Commands that the operator configured or allows: the one way in which they are
//! run.
//!
//! Without a shell, with exactly the variables that they are given, and for a
//! limited time. When one has ended, no process of it is left, also none that it
//! put into the background; one that takes too long is killed with all of them.
//! What is printed is either kept and looked at afterwards (here), or followed
//! line by line while it runs (`live`).

pub(crate) mod live;

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    time::Duration,
};

use ostler_core::{
    agent::Stdin,
    binary,
    environment::Variables,
    failure::chain,
    proc::{self, Proc, ProcEvent, Spawn},
};
use thiserror::Error;
use tokio::time;

/// How much of a line of standard error is told, in characters.
const SHOWN: usize = 300;
/// How often it is looked whether a command prints too much.
const LOOK: Duration = Duration::from_millis(50);

/// The variables that a command gets from the gateway's own environment.
const PASSED_ON: [&str; 2] = ["PATH", "HOME"];

/// Returns the environment of commands that the operator configured.
pub(crate) fn passed_on(environment: &Variables) -> Variables {
    let passed_on = PASSED_ON.into_iter().filter_map(|name| {
        let value = environment.get(OsStr::new(name))?;
        Some((name.into(), value.clone()))
    });
    passed_on.collect()
}

/// A program that is to be started.
#[derive(Debug)]
pub(crate) struct Launch<'a> {
    /// The program and its arguments.
    pub(crate) words: &'a [String],
    /// Its whole environment. A program without a folder is looked for in PATH.
    pub(crate) env: &'a Variables,
    /// Where it runs, and what a program with a relative folder is relative to.
    pub(crate) cwd: &'a Path,
    pub(crate) stdin: Stdin,
}

impl Launch<'_> {
    /// Starts it.
    fn start(self) -> Result<Proc, CommandError> {
        let (name, args) = self.words.split_first().ok_or(CommandError::Empty)?;
        let args: Vec<OsString> = args.iter().map(OsString::from).collect();
        let env: Vec<_> = self.env.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
        let spawn = Spawn {
            program: &self.program(name)?,
            args: &args,
            env: &env,
            cwd: self.cwd,
            stdin: self.stdin,
            stdout: None,
        };
        proc::spawn(spawn).map_err(|error| CommandError::NotStarted(chain(&error)))
    }

    fn program(&self, name: &str) -> Result<PathBuf, CommandError> {
        if name.contains('/') {
            return Ok(self.cwd.join(name));
        }
        let path = self.env.get(OsStr::new("PATH")).map(OsString::as_os_str);
        let found = binary::search(Path::new(name), path);
        found.ok_or_else(|| CommandError::NotFound(name.to_owned()))
    }
}

/// A command that is to be run from the root folder, and whose output is kept.
#[derive(Debug)]
pub(crate) struct Command<'a> {
    /// The program and its arguments.
    pub(crate) words: &'a [String],
    /// Its whole environment. A program without a folder is looked for in PATH.
    pub(crate) env: &'a Variables,
    pub(crate) stdin: Stdin,
    /// How much of what it prints is kept, in bytes.
    pub(crate) keep: usize,
    pub(crate) excess: Excess,
    pub(crate) limit: Duration,
}

/// What becomes of a command that prints more than is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Excess {
    /// It goes on, and what it prints is dropped.
    Dropped,
    /// It is ended soon.
    Ends,
}

/// What a command printed, and how it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Printed {
    /// The start of its standard output.
    pub(crate) stdout: Vec<u8>,
    /// Whether it printed more than that.
    pub(crate) is_more: bool,
    /// The first line of its standard error that says anything.
    pub(crate) complaint: Option<String>,
    pub(crate) end: End,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Code(i32),
    Signal(i32),
    /// It printed too much.
    Cut,
}

/// Why a command did not end by itself.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum CommandError {
    #[error("it names no program")]
    Empty,
    #[error("program `{0}` was not found in PATH")]
    NotFound(String),
    #[error("{0}")]
    NotStarted(String),
    #[error("it took longer than {0:?}")]
    Late(Duration),
}

impl Command<'_> {
    /// Runs it. Dropping the future ends it with everything that it started.
    pub(crate) async fn run(self) -> Result<Printed, CommandError> {
        let limit = self.limit;
        let run = time::timeout(limit, self.run_to_its_end());
        run.await.map_err(|_| CommandError::Late(limit))?
    }

    async fn run_to_its_end(self) -> Result<Printed, CommandError> {
        let Self { words, env, stdin, .. } = self;
        let mut proc = Launch { words, env, cwd: Path::new("/"), stdin }.start()?;
        // One byte more tells whether there is more.
        proc.keep_heads(self.keep.saturating_add(1));
        let end = loop {
            // Both can be dropped half-way without losing anything.
            let event = tokio::select! {
                event = proc.next() => event,
                () = time::sleep(LOOK), if self.excess == Excess::Ends => {
                    if proc.stdout_head().len() > self.keep {
                        break End::Cut;
                    }
                    continue;
                }
            };
            match event {
                ProcEvent::Line { .. } | ProcEvent::StdinClosed => {}
                ProcEvent::Exited { code: Some(code), .. } => break End::Code(code),
                ProcEvent::Exited { signal, .. } => break End::Signal(signal.unwrap_or(0)),
            }
        };
        let mut stdout = proc.stdout_head().to_vec();
        let is_more = stdout.len() > self.keep;
        stdout.truncate(self.keep);
        Ok(Printed { stdout, is_more, complaint: first_line(proc.stderr_head()), end })
    }
}

fn first_line(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().take(SHOWN).collect())
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    const KEEP: usize = 64 * 1024;

    async fn shell(script: &str, limit: Duration) -> Result<Printed, CommandError> {
        let words = ["sh", "-c", script].map(str::to_owned);
        let env = [("PATH".into(), "/usr/bin:/bin".into()), ("NAME".into(), "value".into())].into();
        let stdin = Stdin::Bytes(b"what it reads".to_vec());
        let excess = Excess::Dropped;
        Command { words: &words, env: &env, stdin, keep: KEEP, excess, limit }.run().await
    }

    const PATIENCE: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn a_command_gets_what_it_is_given_and_nothing_else() {
        let printed = shell("cat; pwd; env | sort | grep -v ^_=", PATIENCE).await.unwrap();
        let said = String::from_utf8(printed.stdout).unwrap();
        let mut lines = said.lines();
        assert_eq!(lines.next(), Some("what it reads/"));
        let rest: Vec<_> = lines.filter(|line| !line.starts_with("PWD=")).collect();
        let ours: Vec<_> = rest.iter().filter(|line| !line.starts_with("SHLVL=")).collect();
        assert_eq!(ours, [&"NAME=value", &"PATH=/usr/bin:/bin"], "{rest:?}");
        assert_eq!((printed.end, printed.is_more), (End::Code(0), false));
    }

    #[tokio::test]
    async fn the_end_and_the_first_complaint_are_told() {
        let printed = shell("echo >&2; echo ' why ' >&2; echo more >&2; exit 3", PATIENCE).await;
        let Printed { complaint, end, .. } = printed.unwrap();
        assert_eq!((complaint.as_deref(), end), (Some("why"), End::Code(3)));
        let printed = shell("kill -9 $$", PATIENCE).await.unwrap();
        assert_eq!((printed.complaint, printed.end), (None, End::Signal(9)));
    }

    #[tokio::test]
    async fn what_is_printed_beyond_the_limit_is_read_and_dropped() {
        for script in
            ["yes | head -c 300000000", "head -c 300000000 /dev/zero >&2; yes | head -c 70000"]
        {
            let printed = shell(script, PATIENCE).await.unwrap();
            assert_eq!((printed.stdout.len(), printed.is_more), (KEEP, true), "{script}");
            assert_eq!(printed.end, End::Code(0));
        }
    }

    #[tokio::test]
    async fn a_child_in_the_background_neither_holds_it_up_nor_outlives_it() {
        let script = "(trap '' HUP TERM; exec sleep 1000) & setsid sleep 1000 & echo $! done";
        let printed = shell(script, PATIENCE).await.unwrap();
        let said = String::from_utf8(printed.stdout).unwrap();
        let (pid, done) = said.trim().split_once(' ').unwrap();
        assert_eq!(done, "done");
        assert!(!Path::new("/proc").join(pid).exists());
    }

    #[tokio::test]
    async fn one_that_hangs_is_ended_with_all_that_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pid");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let script = format!("sleep 1000 & echo $! > {}; wait", pipe.display());
        // The time is over when it hangs, however long it took to come to that.
        let until_hanging = async {
            let pid = tokio::fs::read_to_string(pipe).await.unwrap();
            time::pause();
            time::advance(PATIENCE).await;
            time::resume();
            pid
        };
        let (end, pid) = tokio::join!(shell(&script, PATIENCE), until_hanging);
        assert_eq!(end, Err(CommandError::Late(PATIENCE)));
        let process = Path::new("/proc").join(pid.trim());
        // Its keeper kills it; that it did is not waited for when it is dropped.
        while process.exists() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_program_that_cannot_be_run_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("script");
        std::fs::write(&file, "#!/bin/sh\n").unwrap();
        let file = file.to_string_lossy().into_owned();
        for (words, says) in [
            (vec![], "names no program"),
            (vec!["no-such-program".to_owned()], "`no-such-program` was not found in PATH"),
            (vec![file.clone()], "script"),
            (vec![format!("{file}/x")], "script/x"),
        ] {
            let env = [("PATH".into(), "/usr/bin:/bin".into())].into();
            let (stdin, keep, excess) = (Stdin::Null, KEEP, Excess::Ends);
            let command =
                Command { words: &words, env: &env, stdin, keep, excess, limit: PATIENCE };
            let error = command.run().await.unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
