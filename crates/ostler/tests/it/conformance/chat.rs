//! A conversation with the program, message by message.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};

use crate::support::{Events, parse, signal, until};

/// A conversation that goes on until it is ended.
pub(crate) struct Chat {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: std::io::Lines<BufReader<ChildStdout>>,
    /// The events of the turn that runs.
    seen: Vec<Value>,
}

impl Chat {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { stdin: child.stdin.take(), child, lines, seen: Vec::new() }
    }

    pub(crate) fn send(&mut self, message: &Value) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(format!("{message}\n").as_bytes()).unwrap();
    }

    pub(crate) fn prompt(&mut self, text: &str) {
        self.send(&json!({"type": "prompt", "text": text}));
    }

    pub(crate) fn answer(&mut self, request: &Value, decision: &str) {
        self.send(&json!({"type": "answer", "request": request, "decision": decision}));
    }

    pub(crate) fn cancel(&mut self) {
        self.send(&json!({"type": "cancel"}));
    }

    /// Reads on until an event is the one.
    pub(crate) fn wait_for(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = self.lines.next().expect("the event comes before the end").unwrap();
            let event = parse(&line);
            self.seen.push(event.clone());
            if is_it(&event) {
                return event;
            }
            assert_ne!(event["type"], "complete", "the turn ended before: {event}");
        }
    }

    /// Drops what was told outside of the turn.
    pub(crate) fn forget_asides(&mut self) {
        self.seen.retain(|event| event["turn"] != Value::Null);
    }

    /// Reads the turn that runs to its end.
    pub(crate) fn finish(&mut self) -> Events {
        self.wait_for(|event| event["type"] == "complete");
        Events::check(std::mem::take(&mut self.seen))
    }

    /// Says something and returns everything about the answer.
    pub(crate) fn ask(&mut self, text: &str) -> Events {
        self.prompt(text);
        self.finish()
    }

    /// Says something and returns the answer, which there must be.
    pub(crate) fn answer_to(&mut self, text: &str) -> String {
        let events = self.ask(text);
        let last = events.last();
        assert_eq!(last["is_error"], false, "{last}");
        assert_eq!((&last["mode"], &last["exit_code"]), (&"warm".into(), &Value::Null));
        last["response_text"].as_str().unwrap().to_owned()
    }

    pub(crate) fn signal(&self, name: &str) {
        signal(self.child.id(), name);
    }

    /// Waits until the program is gone, however it was ended.
    pub(crate) fn wait(mut self) -> Option<i32> {
        until("the program has ended", || self.child.try_wait().unwrap()).code()
    }

    /// Ends the conversation.
    pub(crate) fn end(mut self) {
        self.stdin = None;
        let status = until("the program has ended", || self.child.try_wait().unwrap());
        assert_eq!(status.code(), Some(0));
    }
}

impl Drop for Chat {
    /// A failed test leaves nothing running: the keeper ends what Ostler started.
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
