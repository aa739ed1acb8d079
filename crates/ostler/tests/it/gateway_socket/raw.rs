//! A program that talks to the socket itself, as the documentation shows.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    os::unix::{fs::PermissionsExt as _, net::UnixStream},
};

use serde_json::{Value, json};

use super::Serving;
use crate::support::{LIMIT, parse};

/// A connection.
pub(super) struct Raw {
    stream: BufReader<UnixStream>,
}

impl Raw {
    pub(super) fn connect(serving: &Serving) -> Self {
        let stream = UnixStream::connect(serving.place.path("data/daemon.sock")).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let mut raw = Self { stream: BufReader::new(stream) };
        let hello = raw.hear();
        assert_eq!((&hello["type"], &hello["protocol"]), (&json!("hello"), &json!(1)));
        raw
    }

    pub(super) fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        parse(&line)
    }

    pub(super) fn ask(&mut self, message: &Value) -> Value {
        writeln!(self.stream.get_mut(), "{message}").unwrap();
        self.hear()
    }
}

#[test]
fn a_message_is_sent_and_followed_over_the_socket() {
    let serving = Serving::start();
    let mode = std::fs::metadata(serving.place.path("data/daemon.sock")).unwrap().permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
    let mut raw = Raw::connect(&serving);
    let send = json!({ "type": "send", "conversation": "local:program", "text": "hello" });
    let accepted = raw.ask(&send);
    let mut heard = raw.ask(&json!({ "type": "follow", "job": accepted["job"] }));
    let mut number = 0;
    while heard["type"] == "event" {
        assert!(heard["number"].as_i64().unwrap() > number);
        number = heard["number"].as_i64().unwrap();
        heard = raw.hear();
    }
    assert_eq!((&heard["type"], &heard["state"]), (&json!("ended"), &json!("done")));
    assert_eq!(heard["complete"]["agent"], "claude");
    assert_eq!(raw.ask(&json!({ "type": "status" }))["turns_running"], 0);
}
