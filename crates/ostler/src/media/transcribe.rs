//! Makes texts of recordings, with a command of the operator's. Whatever goes wrong,
//! the recording stays as it is, and the agent is told that nobody heard it.
//!
//! A text is kept beside its recording, so that a further attempt at the same job
//! does not run the command again.

use std::{
    cell::Cell,
    io::{self, Write as _},
    path::Path,
    time::Duration,
};

use ostler_core::{agent::Stdin, environment::Variables, template};
use thiserror::Error;
use tokio::{
    task,
    time::{self, Instant},
};

use super::folder::Folder;
use crate::{
    command::{self, Command, CommandError, End, Excess},
    config,
    id::JobId,
};

/// The longest text, in bytes.
pub(crate) const LONGEST: usize = 64 * 1024;
/// How long all recordings of a turn may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(10 * 60);

/// What makes texts of recordings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Transcriber {
    /// A program and its arguments, with variables in them.
    words: Vec<String>,
    environment: Variables,
    timeout: Duration,
}

/// A recording that came with a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recording<'a> {
    pub(crate) job: JobId,
    /// Which of the files of its message it is, from 1 on.
    pub(crate) number: usize,
    pub(crate) path: &'a str,
    pub(crate) kind: &'a str,
}

/// Why there is no text, in words for the agent and whoever asks it.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub(crate) enum Unheard {
    #[error("the command for it could not be run")]
    NotRun,
    #[error("the command for it failed")]
    Failed,
    #[error("that took too long")]
    Late,
    #[error("the command for it printed too much")]
    TooMuch,
    #[error("nothing was heard in it")]
    Nothing,
}

impl Transcriber {
    /// Takes what is configured, if something is.
    pub(crate) fn new(config: &config::Transcribe, environment: &Variables) -> Option<Self> {
        let words = config.command.clone()?;
        let environment = command::passed_on(environment);
        Some(Self { words, environment, timeout: config.timeout })
    }

    /// Returns what is spoken in a recording that lies below a folder. Dropped, it
    /// ends the command.
    pub(crate) async fn hear(
        &self,
        root: &Path,
        recording: Recording<'_>,
        until: Instant,
    ) -> Result<String, Unheard> {
        if let Some(text) = kept(root, recording).await {
            return Ok(text);
        }
        let Recording { job, number, .. } = recording;
        let heard = time::timeout_at(until, self.run(recording)).await;
        let heard = heard.unwrap_or(Err((Unheard::Late, String::new())));
        let text = heard.map_err(|(unheard, why)| {
            tracing::warn!(%job, number, %unheard, why, "a recording was not transcribed");
            unheard
        })?;
        if let Err(error) = keep(root, recording, text.clone()).await {
            tracing::warn!(%job, number, %error, "a transcript could not be kept");
        }
        Ok(text)
    }

    /// Runs the command; the error has what is for the log alone.
    async fn run(&self, recording: Recording<'_>) -> Result<String, (Unheard, String)> {
        let words = self.words_for(recording);
        let command = Command {
            words: &words,
            env: &self.environment,
            stdin: Stdin::Null,
            keep: LONGEST,
            excess: Excess::Ends,
            limit: self.timeout,
        };
        let printed = command.run().await.map_err(|error| {
            let unheard = match error {
                CommandError::Late(_) => Unheard::Late,
                CommandError::Empty | CommandError::NotFound(_) | CommandError::NotStarted(_) => {
                    Unheard::NotRun
                }
            };
            (unheard, error.to_string())
        })?;
        let complaint = printed.complaint.unwrap_or_default();
        if printed.is_more {
            return Err((Unheard::TooMuch, complaint));
        }
        match printed.end {
            End::Code(0) | End::Cut => {}
            End::Code(code) => {
                return Err((Unheard::Failed, format!("exit code {code}: {complaint}")));
            }
            End::Signal(signal) => {
                return Err((Unheard::Failed, format!("signal {signal}: {complaint}")));
            }
        }
        readable(&printed.stdout).ok_or((Unheard::Nothing, complaint))
    }

    /// Fills the variables in. Without one for the file, that is the last word.
    fn words_for(&self, recording: Recording<'_>) -> Vec<String> {
        let is_named = Cell::new(false);
        let lookup = |name: &str| match name {
            "MediaPath" => {
                is_named.set(true);
                Some(recording.path)
            }
            "MediaType" => Some(recording.kind),
            _ => None,
        };
        let words = self.words.iter().map(|word| template::expand(word, &lookup));
        let mut words: Vec<_> = words.collect();
        if !is_named.get() {
            words.push(recording.path.to_owned());
        }
        words
    }
}

/// Returns what was printed as a text without what a terminal would obey; nothing,
/// if nobody could read anything there.
fn readable(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let text: String = text.chars().filter(|c| !c.is_control() || "\n\t".contains(*c)).collect();
    let text = text.trim();
    // What stands for a wrong byte is longer than that was.
    let text = text.get(..text.floor_char_boundary(LONGEST)).unwrap_or_default();
    text.contains(char::is_alphanumeric).then(|| text.to_owned())
}

fn name(number: usize) -> String {
    format!(".{number}.transcript")
}

/// Returns the text that an earlier attempt kept.
async fn kept(root: &Path, recording: Recording<'_>) -> Option<String> {
    let (root, Recording { job, number, .. }) = (root.to_owned(), recording);
    let read = move || Folder::open(&root, job)?.start_of(&name(number), LONGEST);
    let read =
        task::spawn_blocking(read).await.unwrap_or_else(|error| Err(io::Error::other(error)));
    let bytes = read.inspect_err(|error| {
        tracing::warn!(%job, number, %error, "a transcript that was kept cannot be read");
    });
    readable(&bytes.ok()??)
}

async fn keep(root: &Path, recording: Recording<'_>, text: String) -> io::Result<()> {
    let (root, Recording { job, number, .. }) = (root.to_owned(), recording);
    let write = move || {
        let (part, mut file) =
            Folder::open(&root, job)?.begin_as(format!("{}.part", name(number)))?;
        file.write_all(text.as_bytes())?;
        part.keep(&file, &name(number))
    };
    task::spawn_blocking(write).await.unwrap_or_else(|error| Err(io::Error::other(error)))
}

#[cfg(test)]
mod tests;
