//! The line at the bottom of an interactive conversation: typed, edited and
//! recalled with the usual keys.
//!
//! Editing blocks, and so happens in a thread of its own, which is idle while a
//! turn runs: then the terminal does the editing, and the answer streams
//! undisturbed. The thread ends with this, or with the program.

use std::{
    io::{self, Write as _},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc as blocking,
    },
    thread,
};

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use rustyline::{
    Config, Context, ExternalPrinter as _, Helper, completion::Completer, error::ReadlineError,
    highlight::Highlighter, hint::Hinter, history::MemHistory, validate::Validator,
};
use tokio::sync::mpsc;

use super::command;
use crate::ui::Above;

/// What stands before the line.
const PROMPT: &str = "> ";

/// Ends the line, and the terminal's marking of what is pasted.
const LEAVE_LINE: &[u8] = b"\x1b[?2004l\r\n";

/// What came of editing a line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Edited {
    /// A line, or several that were pasted together.
    Line(String),
    /// Ctrl-C, which throws away what was typed, if anything was.
    Interrupted { was_empty: bool },
    /// Ctrl-D, or no terminal any more.
    End,
}

/// The way to the thread that edits.
pub(crate) struct Editor {
    reads: blocking::SyncSender<()>,
    edited: mpsc::Receiver<Edited>,
    is_editing: bool,
    /// How the terminal was before.
    modes: Option<Termios>,
}

impl Editor {
    /// Starts the thread, which completes the names of these agents; returns what prints above the line, too.
    pub(crate) fn start(agents: Vec<String>) -> io::Result<(Self, Above)> {
        let modes = tcgetattr(io::stdin()).ok();
        let config = Config::builder().auto_add_history(true).build();
        let history = MemHistory::with_config(&config);
        let mut editor =
            rustyline::Editor::with_history(config, history).map_err(io::Error::other)?;
        let is_blank = Arc::new(AtomicBool::new(true));
        editor.set_helper(Some(Watcher { is_blank: Arc::clone(&is_blank), agents }));
        let mut printer = editor.create_external_printer().map_err(io::Error::other)?;
        let above = Above::new(move |text| printer.print(text).map_err(io::Error::other));
        let (reads, asked) = blocking::sync_channel(1);
        let (sender, edited) = mpsc::channel(1);
        thread::Builder::new().name("editor".to_owned()).spawn(move || {
            while asked.recv().is_ok() {
                is_blank.store(true, Ordering::Relaxed);
                let line = editor.readline(PROMPT);
                let was_empty = is_blank.load(Ordering::Relaxed);
                if sender.blocking_send(meaning(line, was_empty)).is_err() {
                    break;
                }
            }
        })?;
        Ok((Self { reads, edited, is_editing: false, modes }, above))
    }

    /// Waits for a line, or for the one that is being edited. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Edited {
        if !self.is_editing {
            // A thread that is gone leaves its channel closed, which is the end.
            self.is_editing = self.reads.try_send(()).is_ok();
        }
        let edited = self.edited.recv().await.unwrap_or(Edited::End);
        self.is_editing = false;
        edited
    }

    /// Returns whether a line is being edited, so that the terminal is not to
    /// be written to by anybody else.
    pub(crate) fn is_editing(&self) -> bool {
        self.is_editing
    }
}

impl Drop for Editor {
    /// A line that is still being edited has the terminal in a state that no
    /// shell would like.
    fn drop(&mut self) {
        if let (true, Some(modes)) = (self.is_editing, &self.modes) {
            // There is nobody left to tell if that fails.
            tcsetattr(io::stdin(), OptionalActions::Drain, modes).ok();
            io::stdout().write_all(LEAVE_LINE).ok();
        }
    }
}

fn meaning(line: rustyline::Result<String>, was_empty: bool) -> Edited {
    match line {
        Ok(line) => Edited::Line(line),
        Err(ReadlineError::Interrupted) => Edited::Interrupted { was_empty },
        Err(_) => Edited::End,
    }
}

/// Notes whether anything was typed, and completes commands.
struct Watcher {
    is_blank: Arc<AtomicBool>,
    /// The names that can be completed.
    agents: Vec<String>,
}

impl Hinter for Watcher {
    type Hint = String;

    /// Called whenever the line has changed.
    fn hint(&self, line: &str, _: usize, _: &Context<'_>) -> Option<String> {
        self.is_blank.store(line.is_empty(), Ordering::Relaxed);
        None
    }
}

impl Completer for Watcher {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        Ok((0, command::completions(line.get(..at).unwrap_or_default(), &self.agents)))
    }
}

impl Highlighter for Watcher {}
impl Validator for Watcher {}
impl Helper for Watcher {}
