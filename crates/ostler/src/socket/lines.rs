//! Lines from a socket. One that is too long is an error at once, not when it
//! ends: it may never do so.

use std::{io, mem};

use thiserror::Error;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _};

/// Why there is no line.
#[derive(Debug, Error)]
pub(crate) enum LineError {
    #[error("a line is longer than {max} bytes")]
    TooLong { max: usize },
    #[error("the connection broke: {0}")]
    Io(#[from] io::Error),
}

/// Reads lines of bounded length.
#[derive(Debug)]
pub(crate) struct LineReader<R> {
    from: R,
    max: usize,
    /// What was read of the line that is being read.
    partial: Vec<u8>,
}

impl<R: AsyncBufRead + Unpin> LineReader<R> {
    pub(crate) fn new(from: R, max: usize) -> Self {
        Self { from, max, partial: Vec::new() }
    }

    /// Returns the next line without its end, or nothing at the end. The last
    /// line needs no line end. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<u8>>, LineError> {
        loop {
            let piece = self.from.fill_buf().await?;
            if piece.is_empty() {
                let last = mem::take(&mut self.partial);
                return Ok(Some(last).filter(|last| !last.is_empty()));
            }
            let end = piece.iter().position(|byte| *byte == b'\n');
            let part = piece.get(..end.unwrap_or(piece.len())).unwrap_or_default();
            if self.partial.len() + part.len() > self.max {
                return Err(LineError::TooLong { max: self.max });
            }
            self.partial.extend_from_slice(part);
            let n_used = part.len() + usize::from(end.is_some());
            self.from.consume(n_used);
            if end.is_some() {
                return Ok(Some(mem::take(&mut self.partial)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tokio::io::BufReader;

    use super::*;

    fn read(bytes: &[u8], buffer: usize, max: usize) -> (Vec<Vec<u8>>, Option<LineError>) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut lines = LineReader::new(BufReader::with_capacity(buffer, bytes), max);
        let mut found = Vec::new();
        loop {
            match runtime.block_on(lines.next()) {
                Ok(Some(line)) => found.push(line),
                Ok(None) => return (found, None),
                Err(error) => return (found, Some(error)),
            }
        }
    }

    #[test]
    fn a_line_as_long_as_it_may_be_is_read_and_one_byte_more_is_an_error() {
        let (found, error) = read(b"12345\n12345", 2, 5);
        assert!(found == [b"12345", b"12345"] && error.is_none());
        let (found, error) = read(b"1\n123456\n2\n", 3, 5);
        assert_eq!(found, [b"1"]);
        assert!(matches!(error, Some(LineError::TooLong { max: 5 })));
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_how_they_come_in(
            bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..200),
            buffer in 1_usize..20,
        ) {
            let (found, error) = read(&bytes, buffer, 200);
            prop_assert!(error.is_none());
            let mut expected: Vec<_> = bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
            if expected.last().is_some_and(Vec::is_empty) {
                expected.pop();
            }
            prop_assert_eq!(found, expected);
        }
    }
}
