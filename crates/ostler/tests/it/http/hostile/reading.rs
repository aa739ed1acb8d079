//! Answers as they came over the wire, taken apart by hand.

use serde_json::Value;

/// An answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Answer {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// Reads an answer, and returns what follows it.
    fn read(bytes: &[u8]) -> (Self, &[u8]) {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        let (head, rest) = bytes.split_at(end.expect("a head of an answer ends") + 4);
        let head = std::str::from_utf8(head).unwrap();
        let mut lines = head.lines();
        let status = super::super::served::status_of(lines.next().unwrap());
        let headers = lines.filter_map(|line| line.split_once(": "));
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let mut answer = Self { status, headers, body: Vec::new() };
        // An answer that says to go on has no body.
        let length = answer.header("content-length").map_or(0, |length| length.parse().unwrap());
        let (body, rest) = rest.split_at_checked(length).expect("the whole body comes");
        answer.body = body.to_vec();
        (answer, rest)
    }
}

/// Returns all answers of a connection.
pub(super) fn answers(mut bytes: &[u8]) -> Vec<Answer> {
    let mut answers = Vec::new();
    while !bytes.is_empty() {
        let (answer, rest) = Answer::read(bytes);
        answers.push(answer);
        bytes = rest;
    }
    answers
}

/// Returns all answers of a connection, of which there must be one, after checking
/// them.
pub(super) fn some(bytes: &[u8], what: &str) -> Vec<Answer> {
    let answers = answers(bytes);
    assert!(!answers.is_empty(), "{what:?} got no answer");
    answers.iter().for_each(|answer| check(answer, what));
    answers
}

/// Returns the only answer, after checking it.
pub(super) fn one(bytes: &[u8], what: &str) -> Answer {
    let mut answers = answers(bytes);
    assert_eq!(answers.len(), 1, "{what}: {answers:?}");
    let answer = answers.remove(0);
    check(&answer, what);
    answer
}

/// Says that an answer is none of a gateway in trouble, and that an error has the
/// envelope. What is no HTTP is refused before it is a request, without a body.
pub(super) fn check(answer: &Answer, what: &str) {
    assert!(answer.status < 500, "{what:?}: {answer:?}");
    if answer.status < 400 || (answer.body.is_empty() && [400, 414, 431].contains(&answer.status)) {
        return;
    }
    let body: Value = serde_json::from_slice(&answer.body)
        .unwrap_or_else(|error| panic!("{what:?}: {error}: {answer:?}"));
    assert!(body["error"]["code"].is_string(), "{what:?}: {body}");
    assert!(body["error"]["message"].is_string(), "{what:?}: {body}");
    assert_eq!(body["meta"]["request_id"].as_str(), answer.header("x-request-id"), "{what:?}");
    assert!(!body.to_string().contains("panicked"), "{what:?}: {body}");
}
