//! Reads what `pi --mode json` prints: one JSON object a line.
//!
//! One process, one turn, which `reader` understands. Where a version has no
//! line for the end of a turn, the exit is it; the exit code is 0 even when the
//! model failed.

use jiff::Timestamp;

use super::{
    message::Ending,
    plain::Plain,
    reader::{Halt, Reader},
    turn::Turn,
};
use crate::{
    agent::{
        Action, Dialect, Exit, Input, Launch,
        document::{Documents, Piece},
        emit::emit_unknown,
    },
    event::Stream,
    request::{Format, PromptCommands},
};

/// How much of the lines that were not understood is kept for finding out what failed.
const MAX_PRINTED_BYTES: usize = 8 * 1024;

/// Makes the state machine for the output that was asked for.
pub(super) fn dialect(launch: &Launch<'_>) -> Box<dyn Dialect> {
    match launch.options.wire_format() {
        Format::Text => Box::new(Plain::new(launch)),
        Format::StreamJson | Format::Json => {
            Box::new(JsonLines { documents: Documents::default(), only: OnlyTurn::new(launch) })
        }
    }
}

struct JsonLines {
    documents: Documents,
    only: OnlyTurn,
}

impl Dialect for JsonLines {
    fn step(&mut self, now: Timestamp, input: Input<'_>, out: &mut Vec<Action>) {
        let Self { documents, only } = self;
        match input {
            Input::Line { from: Stream::Stderr, bytes, .. } => only.reader.turn.stderr(bytes, out),
            Input::Line { bytes, cut: true, .. } => {
                documents.finish(|piece| only.piece(now, piece, out));
                only.reader.lost_line(bytes);
                emit_unknown(only.reader.turn.key(), Stream::Stdout, bytes, out);
            }
            Input::Line { bytes, .. } => {
                documents.push(bytes, |piece| only.piece(now, piece, out));
            }
            Input::Cancel { .. } => out.push(Action::Stop),
            Input::Timer(_) | Input::Order(_) | Input::Heard(_) => {}
            Input::Exited(exit) => {
                documents.finish(|piece| only.piece(now, piece, out));
                only.exited(exit, out);
            }
        }
    }
}

/// The only turn of a process.
struct OnlyTurn {
    reader: Reader,
    /// Whether the CLI may have carried out the prompt as a command.
    may_be_command: bool,
    /// Lines that were not understood.
    printed: String,
}

impl OnlyTurn {
    fn new(launch: &Launch<'_>) -> Self {
        Self {
            reader: Reader::new(Turn::new(launch), launch.options.max_turns, Halt::Stop),
            may_be_command: launch.options.prompt_commands == PromptCommands::On,
            printed: String::new(),
        }
    }

    fn piece(&mut self, now: Timestamp, piece: Piece<'_>, out: &mut Vec<Action>) {
        let reader = &mut self.reader;
        let bytes = match piece {
            Piece::Document { mut value, raw } => {
                if !reader.turn.has_ended() && reader.document(now, &mut value, out) {
                    return;
                }
                raw
            }
            Piece::Line(bytes) => bytes,
        };
        emit_unknown(reader.turn.key(), Stream::Stdout, bytes, out);
        if self.printed.len() < MAX_PRINTED_BYTES {
            let start = bytes.get(..MAX_PRINTED_BYTES).unwrap_or(bytes);
            self.printed.push_str(&String::from_utf8_lossy(start));
            self.printed.push('\n');
        }
    }

    fn exited(&mut self, exit: &Exit, out: &mut Vec<Action>) {
        let reader = &mut self.reader;
        if reader.turn.has_ended() {
            return;
        }
        let has_answered = match &reader.last {
            None => self.may_be_command && reader.turn.session.is_named(),
            // Without the end of its run it would have gone on.
            Some(message) => message.ending != Ending::Tools || reader.has_run,
        };
        if reader.has_failed() || (exit.is_success() && has_answered) {
            return reader.finish(out);
        }
        let text = reader.last.take().map(|message| message.text);
        reader.turn.fail_with_exit(exit, &self.printed, text, out);
    }
}
