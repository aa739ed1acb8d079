//! acpx, in its three ways: a command for a turn of a session that it keeps, a
//! command for a turn with an agent of its own, and its library.

use std::{path::Path, process::Command};

use super::{Ground, MARK};
use crate::{
    figures::{Gateway, PROMPT, Took},
    process::{Talker, run, run_turn, with_variable},
};

/// What a message with text has in it.
const CHUNK: &str = "agent_message_chunk";

/// A session that acpx keeps, in a process that the first turn leaves behind.
pub(super) fn session<'a>(ground: &'a Ground<'a>) -> Box<dyn Gateway + 'a> {
    run(&mut command(ground, &["sessions", "new"]), b"");
    Box::new(Session(ground))
}

struct Session<'a>(&'a Ground<'a>);

impl Gateway for Session<'_> {
    fn turn(&mut self) -> Took {
        run_turn(&mut command(self.0, &["prompt", PROMPT]), CHUNK)
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        run(&mut command(self.0, &["sessions", "close"]), b"");
        for left in with_variable(&format!("{MARK}={}", self.0.place.display())) {
            Command::new("kill").arg(left.pid).status().ok();
        }
    }
}

/// An agent for each turn.
pub(super) fn exec<'a>(ground: &'a Ground<'a>) -> Box<dyn Gateway + 'a> {
    Box::new(Exec(ground))
}

struct Exec<'a>(&'a Ground<'a>);

impl Gateway for Exec<'_> {
    fn turn(&mut self) -> Took {
        run_turn(&mut command(self.0, &["exec", PROMPT]), CHUNK)
    }
}

fn command(ground: &Ground<'_>, words: &[&str]) -> Command {
    let mut command = Command::new(ground.peers.join("node_modules/.bin/acpx"));
    ground.dress(&mut command);
    let agent = format!("{} --acp", ground.agent.display());
    command.args(["--agent", &agent, "--format", "json"]).args(words);
    command
}

/// A program that uses acpx's library.
pub(super) fn library<'a>(ground: &'a Ground<'a>) -> Box<dyn Gateway + 'a> {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/peers/acpx-library.mjs");
    let mut command = Command::new("/usr/bin/env");
    ground.dress(&mut command);
    command
        .arg("node")
        .arg(program)
        .arg(ground.peers.join("node_modules/acpx/dist/runtime.js"))
        .arg(ground.folder("state"))
        .arg(ground.folder("work"))
        .arg(&ground.agent)
        .arg("--acp");
    Box::new(Library(Talker::start(&mut command)))
}

struct Library(Talker);

impl Gateway for Library {
    fn turn(&mut self) -> Took {
        self.0.tell(PROMPT);
        let line = self.0.hear();
        let mut times = line.split(' ').map(|time| time.parse().expect("two times"));
        Took { first_text: times.next().unwrap(), total: times.next().unwrap() }
    }
}
