//! Standard input in lines, for those that must not wait for one longer than
//! they want to.

use std::io::{self, Read};
use std::time::Duration;

/// Where bytes come from, and whether there are any.
pub(super) trait Source: Read {
    /// Waits until reading would not block, or that long.
    fn wait(&mut self, at_most: Duration) -> io::Result<bool>;
}

/// What came within the time.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// A line with its newline, which only the last one may lack.
    Line(Vec<u8>),
    Nothing,
    /// There will be no more.
    End,
}

pub(super) struct Inbox<'a> {
    source: Box<dyn Source + 'a>,
    unread: Vec<u8>,
    has_ended: bool,
}

impl<'a> Inbox<'a> {
    pub(super) fn new(source: impl Source + 'a) -> Self {
        Self { source: Box::new(source), unread: Vec::new(), has_ended: false }
    }

    /// Waits for a line, for ever or at most that long.
    pub(super) fn line(&mut self, at_most: Option<Duration>) -> io::Result<Heard> {
        loop {
            if let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                let rest = self.unread.split_off(end + 1);
                return Ok(Heard::Line(std::mem::replace(&mut self.unread, rest)));
            }
            if self.has_ended {
                let line = std::mem::take(&mut self.unread);
                return Ok(if line.is_empty() { Heard::End } else { Heard::Line(line) });
            }
            // A line that has begun is on its way; the little while that its rest
            // may take on top is not counted.
            if let Some(at_most) = at_most
                && !self.source.wait(at_most)?
            {
                return Ok(Heard::Nothing);
            }
            self.read()?;
        }
    }

    /// Everything up to the end.
    pub(super) fn rest(&mut self) -> io::Result<Vec<u8>> {
        while !self.has_ended {
            self.read()?;
        }
        Ok(std::mem::take(&mut self.unread))
    }

    fn read(&mut self) -> io::Result<()> {
        let mut block = [0; 64 * 1024];
        match self.source.read(&mut block) {
            Ok(0) => self.has_ended = true,
            Ok(length) => self.unread.extend(block.get(..length).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

impl<T: AsRef<[u8]>> Source for io::Cursor<T> {
    fn wait(&mut self, _at_most: Duration) -> io::Result<bool> {
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_one_by_one_and_the_last_may_lack_its_newline() {
        let mut inbox = Inbox::new(io::Cursor::new("one\n\ntwo"));
        for expected in ["one\n", "\n", "two"] {
            let heard = inbox.line(Some(Duration::ZERO)).unwrap();
            assert_eq!(heard, Heard::Line(expected.as_bytes().to_vec()));
        }
        assert_eq!(inbox.line(None).unwrap(), Heard::End);
    }

    #[test]
    fn what_no_line_has_taken_is_the_rest() {
        let mut inbox = Inbox::new(io::Cursor::new("one\ntwo\nthree"));
        inbox.line(None).unwrap();
        assert_eq!(inbox.rest().unwrap(), b"two\nthree");
    }

    #[test]
    fn silence_is_told_from_the_end() {
        struct Silent;
        impl Read for Silent {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                panic!("nothing to read")
            }
        }
        impl Source for Silent {
            fn wait(&mut self, _: Duration) -> io::Result<bool> {
                Ok(false)
            }
        }
        assert_eq!(Inbox::new(Silent).line(Some(Duration::ZERO)).unwrap(), Heard::Nothing);
    }
}
