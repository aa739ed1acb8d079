//! Standard input, line by line, from a thread of its own.
//!
//! Reading it blocks, and cannot be called off, so the thread is nobody's to
//! wait for: it ends with the input or with the program. It reads no further
//! ahead than its channel is long.

use std::{
    io::{self, Read},
    thread,
};

use ostler_core::lines::{Line, Lines};
use tokio::sync::mpsc;

use super::message::Misunderstood;

/// The longest line that is taken.
const MAX_LINE: usize = 16 * 1024 * 1024;
/// How many lines are read ahead.
const LINES_AHEAD: usize = 4;
/// How much is read at once.
const PIECE: usize = 64 * 1024;

/// A line, or why it cannot be taken.
pub(crate) type Taken = Result<String, Misunderstood>;

/// Starts to read; the channel ends with the input.
pub(crate) fn lines() -> io::Result<mpsc::Receiver<Taken>> {
    let (sender, lines) = mpsc::channel(LINES_AHEAD);
    let reader = thread::Builder::new().name("input".to_owned());
    reader.spawn(move || read(io::stdin().lock(), &sender))?;
    Ok(lines)
}

/// Reads until the input ends or nobody wants any more. An input that fails has
/// ended: nothing more will come of it.
fn read(mut from: impl Read, to: &mpsc::Sender<Taken>) {
    let mut lines = Lines::new(MAX_LINE, 0);
    let mut piece = vec![0; PIECE];
    loop {
        let mut rest = match from.read(&mut piece) {
            Ok(0) => break,
            Ok(n_read) => piece.get(..n_read).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        while let Some(line) = lines.take(&mut rest) {
            if to.blocking_send(text(line)).is_err() {
                return;
            }
        }
    }
    if let Some(line) = lines.finish() {
        // Whoever read the lines may have gone.
        to.blocking_send(text(line)).ok();
    }
}

fn text(line: Line) -> Taken {
    if line.cut {
        return Err(Misunderstood::TooLong { max: MAX_LINE });
    }
    String::from_utf8(line.bytes)
        .map_err(|error| Misunderstood::NotUtf8 { at: error.utf8_error().valid_up_to() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(input: impl Read) -> Vec<Taken> {
        let (sender, mut lines) = mpsc::channel(16);
        read(input, &sender);
        drop(sender);
        std::iter::from_fn(|| lines.blocking_recv()).collect()
    }

    #[test]
    fn lines_come_whole_and_the_last_one_needs_no_end() {
        let lines = all(&b"one\r\n\ntwo"[..]);
        assert_eq!(lines, ["one", "", "two"].map(|line| Ok(line.to_owned())));
    }

    #[test]
    fn a_line_that_cannot_be_taken_does_not_spoil_the_next() {
        let long = io::repeat(b'x').take(MAX_LINE as u64 + 1);
        let lines = all(long.chain(&b"\nok\xff\nfine\n"[..]));
        let wrong = [Misunderstood::TooLong { max: MAX_LINE }, Misunderstood::NotUtf8 { at: 2 }];
        let expected: Vec<Taken> =
            wrong.into_iter().map(Err).chain([Ok("fine".to_owned())]).collect();
        assert_eq!(lines, expected);
    }
}
