//! Reads the output of one turn: one process, one session, whichever format.
//!
//! What the JSON in it means is for `turn` to say, as in a process that is kept;
//! plain text is read in `text`.

use jiff::Timestamp;
use serde_json::Value;

use super::{
    session::Session,
    text::PlainText,
    turn::{Turn, complaint},
};
use crate::{
    agent::{
        Action, Dialect, Input, Launch, ONLY_SESSION, ONLY_TURN,
        document::{Documents, Piece},
        emit::emit_unknown,
    },
    event::Stream,
    request::Format,
};

/// Makes the reader of a process.
pub(super) fn dialect(launch: &Launch<'_>) -> Box<dyn Dialect> {
    match launch.options.wire_format() {
        Format::StreamJson | Format::Json => {
            let session = Session::new(ONLY_SESSION, launch.open.memo(), launch.options);
            Box::new(Claude {
                documents: Documents::default(),
                turn: Turn::new(ONLY_TURN, session),
            })
        }
        Format::Text => Box::new(PlainText::new(launch)),
    }
}

struct Claude {
    documents: Documents,
    turn: Turn,
}

impl Dialect for Claude {
    fn step(&mut self, now: Timestamp, input: Input<'_>, out: &mut Vec<Action>) {
        let Self { documents, turn } = self;
        match input {
            Input::Line { from: Stream::Stderr, bytes, .. } => complaint(turn.key, bytes, out),
            Input::Line { bytes, cut: true, .. } => {
                documents.finish(|piece| read_piece(turn, now, piece, out));
                emit_unknown(turn.key, Stream::Stdout, bytes, out);
            }
            Input::Line { bytes, .. } => {
                documents.push(bytes, |piece| read_piece(turn, now, piece, out));
            }
            Input::Cancel { .. } => out.push(Action::Stop),
            Input::Timer(_) | Input::Order(_) | Input::Heard(_) => {}
            Input::Exited(exit) => {
                documents.finish(|piece| read_piece(turn, now, piece, out));
                turn.exited(now, exit, out);
            }
        }
    }
}

fn read_piece(turn: &mut Turn, now: Timestamp, piece: Piece<'_>, out: &mut Vec<Action>) {
    match piece {
        Piece::Document { value: Value::Array(mut items), .. }
            if items.iter().any(|item| item.get("type").is_some()) =>
        {
            for item in &mut items {
                if !turn.document(now, item, out) {
                    emit_unknown(turn.key, Stream::Stdout, item.to_string().as_bytes(), out);
                }
            }
        }
        Piece::Document { mut value, raw } => {
            if !turn.document(now, &mut value, out) {
                emit_unknown(turn.key, Stream::Stdout, raw, out);
            }
        }
        Piece::Line(bytes) => turn.stray(bytes, out),
    }
    if let Some(failure) = turn.given_up.take() {
        turn.fail(failure, out);
        out.push(Action::Stop);
    }
}
