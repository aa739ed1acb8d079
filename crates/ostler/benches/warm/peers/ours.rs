//! No gateway at all, and the ways through Ostler.

use std::{
    io::{BufRead, BufReader, Lines, Write as _},
    process::{Child, ChildStdin, ChildStdout, Stdio},
};

use ostler_core::{Memo, event::Mode};
use serde_json::json;

use super::{AGENT, Ground, MARK};
use crate::{
    figures::{Clock, Gateway, PROMPT, Took},
    process::run_turn,
    raw,
    stand::Stand,
};

/// What an event with text has in it.
const OUTPUT: &str = r#""type":"output""#;

pub(super) fn raw<'a>(ground: &'a Ground<'a>) -> Box<dyn Gateway + 'a> {
    let stand = stand(ground);
    let plan = stand.plan(Mode::Warm);
    raw::start(AGENT, stand.command(&plan), &stand.request)
}

pub(super) fn library<'a>(ground: &'a Ground<'a>) -> Box<dyn Gateway + 'a> {
    Box::new(Library { stand: stand(ground), memo: None })
}

struct Library<'a> {
    stand: Stand<'a>,
    memo: Option<Memo>,
}

impl Gateway for Library<'_> {
    fn turn(&mut self) -> Took {
        self.stand.turn(&mut self.memo)
    }
}

impl Drop for Library<'_> {
    fn drop(&mut self) {
        self.stand.shut_down();
    }
}

pub(super) fn run<'a>(ground: &'a Ground<'a>) -> Box<dyn Gateway + 'a> {
    Box::new(Run(stand(ground)))
}

struct Run<'a>(Stand<'a>);

impl Gateway for Run<'_> {
    fn turn(&mut self) -> Took {
        run_turn(&mut self.0.ostler("run", "stream-json"), OUTPUT)
    }
}

pub(super) fn chat<'a>(ground: &'a Ground<'a>) -> Box<dyn Gateway + 'a> {
    let mut child = stand(ground)
        .ostler("chat", "stream-json")
        .env(MARK, &ground.place)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let stdin = child.stdin.take();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    Box::new(Chat { child, stdin, lines })
}

struct Chat {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Gateway for Chat {
    fn turn(&mut self) -> Took {
        let mut clock = Clock::start();
        let prompt = json!({ "type": "prompt", "text": PROMPT });
        self.stdin.as_mut().unwrap().write_all(format!("{prompt}\n").as_bytes()).unwrap();
        loop {
            let line = self.lines.next().expect("the turn ends before the process").unwrap();
            if line.contains(OUTPUT) {
                clock.text();
            }
            if line.contains(r#""type":"complete""#) {
                assert!(line.contains(r#""mode":"warm""#), "{line}");
                return clock.end();
            }
        }
    }
}

impl Drop for Chat {
    fn drop(&mut self) {
        // The end of its input is the end of the conversation.
        self.stdin = None;
        self.child.wait().ok();
    }
}

fn stand<'a>(ground: &'a Ground<'a>) -> Stand<'a> {
    Stand::of(&ground.place, AGENT, ground.runtime, &ground.agent)
}
