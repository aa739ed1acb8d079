//! Cuts a text into pieces that a chat can take. A piece depends on what stands
//! before it and on little that follows, so that the pieces of an answer that
//! still grows stay as they are, but for the last two. Pure, and linear in the text.

mod cut;
mod fence;
mod unit;

use std::ops::Range;

use super::measure::Measure;
use cut::{Next, Window};

/// A part of a text, as it is posted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// At most as long as was asked for, and never empty. Code that
    /// goes on in the next piece is closed here and opened there again.
    pub(crate) text: String,
    /// The bytes of the whole text that it shows, with the white space around them.
    pub(crate) source: Range<usize>,
}

/// Cuts a text into pieces that are at most `limit` long, and at least one character.
/// Their sources are all of the text; one in which there is nothing to see has no
/// pieces. A text that fits is one piece and stays as it is, but for blank lines
/// before it and white space behind it.
pub(crate) fn split(text: &str, limit: usize, measure: Measure) -> Vec<Piece> {
    let solid = text.trim_end();
    let shown = solid.get(first_line(solid)..).unwrap_or_default();
    match measure.fits(shown, limit) && !shown.is_empty() {
        true => vec![Piece { text: shown.to_owned(), source: 0..text.len() }],
        false => split_growing(text, limit, measure),
    }
}

/// Cuts a text that still grows: code that is open at its end is closed there, as more
/// of it is to come.
pub(crate) fn split_growing(text: &str, limit: usize, measure: Measure) -> Vec<Piece> {
    let limit = limit.max(measure.widest());
    let solid = text.trim_end();
    let mut pieces = Vec::new();
    if solid.is_empty() {
        return pieces;
    }
    let (mut start, mut line, mut open) = (0, first_line(solid), None::<fence::Fence<'_>>);
    loop {
        let opening = open.map(|fence| fence.opening(limit, measure)).unwrap_or_default();
        let closing = open.map_or(0, |fence| fence.closing_length(limit));
        let room = limit - measure.of(&opening);
        let begin = without_wide_indent(solid, line, room.saturating_sub(closing), measure);
        let window = Window { text: solid, begin, open, room, limit, measure };
        let (end, fence, next) = match window.next() {
            Next::Rest { open } => (solid.len(), open, None),
            Next::Cut { at, open } => (at, open, Some(after_white(solid, at))),
        };
        let shown = solid.get(begin..end).unwrap_or_default();
        let closing = fence.map(|fence| fence.closing(limit)).unwrap_or_default();
        let source = start..next.unwrap_or(text.len());
        pieces.push(Piece { text: format!("{opening}{shown}{closing}"), source });
        let Some(next) = next else { return pieces };
        (start, line, open) = (next, next, fence);
    }
}

/// Returns where the first line begins that is not blank.
fn first_line(text: &str) -> usize {
    let white = text.len() - text.trim_start().len();
    text.get(..white).and_then(|white| white.rfind('\n')).map_or(0, |newline| newline + 1)
}

/// Returns where the text goes on after a cut: at the beginning of a line with its
/// indent, or within a line.
fn after_white(text: &str, at: usize) -> usize {
    let white = white_at(text, at);
    at + white.rfind('\n').map_or(white.len(), |newline| newline + 1)
}

/// Returns the white space at a place.
fn white_at(text: &str, at: usize) -> &str {
    let rest = text.get(at..).unwrap_or_default();
    rest.get(..rest.len() - rest.trim_start().len()).unwrap_or_default()
}

/// Passes over an indent that leaves no room for what is indented.
fn without_wide_indent(text: &str, line: usize, room: usize, measure: Measure) -> usize {
    let indent = white_at(text, line);
    let is_wide = indent.chars().nth(room / 2).is_some()
        || measure.of(indent).saturating_add(measure.widest()) > room;
    if is_wide { line + indent.len() } else { line }
}

#[cfg(test)]
mod tests;
