//! Where a conversation hears from: a pipe, or a person at a terminal.

use tokio::sync::mpsc;

use super::{
    editor::{Edited, Editor},
    input::Taken,
    message::Misunderstood,
};
use crate::cli::typed::Typed;

/// What was heard.
pub(crate) enum Heard {
    /// A line.
    Line(String),
    /// A line that cannot be one.
    Wrong(Misunderstood),
    /// Ctrl-C.
    Interrupt { at_an_empty_line: bool },
    /// Nothing more.
    End,
}

/// Whether a turn runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attention {
    Idle,
    Busy,
}

/// Where it is heard from.
pub(crate) enum Source {
    Pipe(mpsc::Receiver<Taken>),
    Terminal {
        editor: Editor,
        /// The terminal while a turn runs; without it, only Ctrl-C works then.
        typed: Option<Typed>,
    },
}

impl Source {
    /// Waits for what is said next. Cancel-safe.
    pub(crate) async fn next(&mut self, attention: Attention) -> Heard {
        match self {
            Self::Pipe(lines) => match lines.recv().await {
                Some(Ok(line)) => Heard::Line(line),
                Some(Err(error)) => Heard::Wrong(error),
                None => Heard::End,
            },
            // A line that was begun is read to its end, whatever happens meanwhile.
            Self::Terminal { editor, typed }
                if attention == Attention::Busy && !editor.is_editing() =>
            {
                match typed {
                    Some(typed) => typed.next().await.map_or(Heard::End, Heard::Line),
                    None => std::future::pending().await,
                }
            }
            Self::Terminal { editor, .. } => match editor.next().await {
                Edited::Line(line) => Heard::Line(line),
                Edited::Interrupted { was_empty } => {
                    Heard::Interrupt { at_an_empty_line: was_empty }
                }
                Edited::End => Heard::End,
            },
        }
    }

    /// Returns whether a line is being edited.
    pub(crate) fn is_editing(&self) -> bool {
        match self {
            Self::Pipe(_) => false,
            Self::Terminal { editor, .. } => editor.is_editing(),
        }
    }
}
