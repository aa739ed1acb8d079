//! What is kept of what a program prints: lines up to a bound for the log, and the
//! end of everything for the result. Pure.

use std::collections::VecDeque;

/// How much of the output of one command is in the log.
const MAX_BYTES: usize = 16 * 1024 * 1024;
const MAX_LINES: usize = 100_000;
/// How much of its end is in the result, in bytes.
const END: usize = 64 * 1024;

/// What is said once when no more is kept.
pub(super) const DROPPED: &str = "the output is longer than 16 MiB or 100000 lines; \
     the rest of it is not kept, but for the end of it in the result";

/// What was printed so far.
#[derive(Debug, Default)]
pub(super) struct Output {
    n_bytes: usize,
    n_lines: usize,
    is_full: bool,
    end: VecDeque<u8>,
    is_end_only: bool,
}

/// Whether a line is kept in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    Yes,
    /// It is the first that is not.
    FirstDropped,
    No,
}

impl Output {
    /// Takes a line.
    pub(super) fn take(&mut self, line: &str) -> Kept {
        self.end.extend(line.as_bytes());
        self.end.push_back(b'\n');
        let excess = self.end.len().saturating_sub(END);
        if excess > 0 {
            self.is_end_only = true;
            self.end.drain(..excess);
        }
        if self.is_full {
            return Kept::No;
        }
        self.n_bytes = self.n_bytes.saturating_add(line.len()).saturating_add(1);
        self.n_lines = self.n_lines.saturating_add(1);
        self.is_full = self.n_bytes > MAX_BYTES || self.n_lines > MAX_LINES;
        if self.is_full { Kept::FirstDropped } else { Kept::Yes }
    }

    /// Returns the end of it, and whether that is not all.
    pub(super) fn end(&self) -> (String, bool) {
        let (front, back) = self.end.as_slices();
        let bytes = [front, back].concat();
        // The first character may have been cut in two.
        let is_inside = |byte: &&u8| **byte & 0b1100_0000 == 0b1000_0000;
        let n_inside = bytes.iter().take_while(is_inside).count();
        let whole = bytes.get(n_inside..).unwrap_or_default();
        (String::from_utf8_lossy(whole).into_owned(), self.is_end_only)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn beyond_the_bound_lines_are_dropped_which_is_said_once() {
        let mut output = Output::default();
        let line = "x".repeat(MAX_BYTES / 8 - 1);
        let kept: Vec<_> = (0..10).map(|_| output.take(&line)).collect();
        assert_eq!(kept[..8], [Kept::Yes; 8]);
        assert_eq!(kept[8..], [Kept::FirstDropped, Kept::No]);
        let mut output = Output::default();
        assert!((0..MAX_LINES).all(|_| output.take("") == Kept::Yes));
        assert_eq!(output.take(""), Kept::FirstDropped);
    }

    proptest! {
        #[test]
        fn the_end_is_the_end_of_everything(
            lines in proptest::collection::vec("[a-zä€😀]{0,9}", 0..40), repeat in 1_usize..400,
        ) {
            let mut output = Output::default();
            let mut all = String::new();
            for line in std::iter::repeat_n(&lines, repeat).flatten() {
                output.take(line);
                all.push_str(line);
                all.push('\n');
            }
            let (end, is_end_only) = output.end();
            prop_assert!(end.len() <= END);
            prop_assert!(all.ends_with(&end));
            prop_assert_eq!(is_end_only, all.len() > END);
            prop_assert!(is_end_only || end == all);
            prop_assert!(!is_end_only || end.len() > END - 4);
        }
    }
}
