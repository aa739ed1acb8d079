//! Cuts a stream of server-sent events into the data of each. Pure.
//!
//! Our own, because the crates for it keep an event however long it grows.
//! Names, ids and comments are passed over: no server that we listen to uses
//! them to say anything.

/// What was read of a stream and is not a whole event yet.
#[derive(Debug)]
pub(crate) struct Events {
    line: Vec<u8>,
    data: Option<Vec<u8>>,
    /// The last byte was a carriage return, which may be the half of a line end.
    after_return: bool,
    limit: usize,
}

/// An event was longer than anybody wants to keep.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

impl Events {
    /// Nothing was read yet. No event may be longer than the limit, in bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self { line: Vec::new(), data: None, after_return: false, limit }
    }

    /// Reads on; appends the data of every event that is complete now.
    pub(crate) fn push(&mut self, bytes: &[u8], events: &mut Vec<Vec<u8>>) -> Result<(), TooLong> {
        let mut rest = bytes;
        while let Some(at) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (before, behind) = rest.split_at_checked(at).unwrap_or((rest, &[]));
            let is_second_half = self.after_return && at == 0 && behind.first() == Some(&b'\n');
            self.after_return = behind.first() == Some(&b'\r');
            rest = behind.get(1..).unwrap_or_default();
            if is_second_half {
                continue;
            }
            self.keep(before)?;
            self.end_line(events);
        }
        if !rest.is_empty() {
            self.after_return = false;
        }
        self.keep(rest)
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        let so_far = self.line.len() + self.data.as_ref().map_or(0, Vec::len);
        if so_far + bytes.len() > self.limit {
            return Err(TooLong);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self, events: &mut Vec<Vec<u8>>) {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            events.extend(self.data.take());
            return;
        }
        let value = match line.strip_prefix(b"data") {
            Some([]) => &[],
            Some([b':', b' ', value @ ..] | [b':', value @ ..]) => value,
            Some(_) | None => return,
        };
        match &mut self.data {
            Some(data) => {
                data.push(b'\n');
                data.extend_from_slice(value);
            }
            None => self.data = Some(value.to_vec()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(chunks: &[&[u8]]) -> Vec<String> {
        let mut events = Events::new(1000);
        let mut found = Vec::new();
        for chunk in chunks {
            events.push(chunk, &mut found).unwrap();
        }
        found.into_iter().map(|data| String::from_utf8(data).unwrap()).collect()
    }

    #[test]
    fn an_event_is_complete_at_the_blank_line_and_not_before() {
        assert_eq!(read(&[b"data: {\"a\":1}\n"]), Vec::<String>::new());
        assert_eq!(read(&[b"data: {\"a\":1}\n\ndata: b"]), ["{\"a\":1}"]);
    }

    #[test]
    fn every_kind_of_line_end_counts_once() {
        for stream in
            ["data: a\n\ndata: b\n\n", "data: a\r\n\r\ndata: b\r\n\r\n", "data: a\r\rdata: b\r\r"]
        {
            assert_eq!(read(&[stream.as_bytes()]), ["a", "b"], "{stream:?}");
        }
    }

    #[test]
    fn several_lines_of_data_are_one_event_and_the_rest_is_passed_over() {
        let stream = b": hello\nevent: x\nid: 7\ndata: a\ndata:b\ndata\nretry: 5\n\n\n";
        assert_eq!(read(&[stream]), ["a\nb\n"]);
        assert_eq!(read(&[b"event: x\n\n"]), Vec::<String>::new());
    }

    #[test]
    fn an_endless_event_is_given_up_in_one_line_or_many() {
        let mut events = Events::new(100);
        assert_eq!(events.push(&[b'x'; 101], &mut Vec::new()), Err(TooLong));
        let mut events = Events::new(100);
        let line = b"data: 0123456789\n";
        let all: Vec<_> = (0..20).map(|_| events.push(line, &mut Vec::new())).collect();
        assert!(all.contains(&Err(TooLong)));
    }

    proptest! {
        #[test]
        fn the_cuts_of_the_stream_do_not_matter(
            stream in "(data: [a-c]{0,3}(\n|\r\n)(\n|\r\n)?|: x\n|\r){0,8}",
            cuts in prop::collection::vec(0usize..60, 0..6),
        ) {
            let bytes = stream.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(read(&chunks), read(&[bytes]));
        }
    }
}
