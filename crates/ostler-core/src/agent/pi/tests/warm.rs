//! Pi kept running, against recorded conversations and its known traps.

mod launch;
mod properties;
mod recordings;
mod traps;

use serde_json::{Value, json};

use super::*;
use crate::{
    agent::{
        Dialect, ONLY_SESSION, Order, SessionKey, TimerKey, TurnEnd, TurnKey, WarmLaunch,
        testing::{Talk, warm_launch_of, written},
    },
    event::Status,
    permission::Ruling,
};

/// What is told about a process before it is asked anything.
struct Started<'a> {
    options: Options,
    open: Open,
    version: Option<&'a str>,
}

impl Default for Started<'_> {
    fn default() -> Self {
        Self { options: Options::new("/workspace"), open: Open::New, version: Some("0.87.1") }
    }
}

impl Started<'_> {
    fn dialect(&self) -> Box<dyn Dialect> {
        let launch = warm_launch_of(&SPEC, &self.options, &self.open);
        (SPEC.warm.unwrap().dialect)(&WarmLaunch { version: self.version, ..launch })
    }
}

/// The CLI.
struct Pi {
    /// What its turns are asked for with.
    options: Options,
    /// The ids of the commands that it has answered.
    answered: Vec<Value>,
}

/// A process with somebody who answers for it.
type Process = Talk<Pi>;

impl Process {
    fn new(started: &Started<'_>) -> Self {
        let played = Pi { options: started.options.clone(), answered: Vec::new() };
        Self::with(started.dialect(), played)
    }

    /// A process that is up, in this session.
    fn ready(started: &Started<'_>, id: &str) -> Self {
        let mut process = Self::new(started);
        process.order(Order::Start);
        process.reply("get_state", &state(id));
        process
    }

    /// A process with an open new session.
    fn open() -> Self {
        let mut process = Self::ready(&Started::default(), SESSION);
        process.order_open(&Open::New);
        process
    }

    /// A process that works on its first prompt.
    fn working() -> Self {
        let mut process = Self::open();
        process.prompt(0, "hi");
        process.reply("prompt", &Value::Null);
        process.say(&json!({"type": "agent_start"}));
        process
    }

    fn order_open(&mut self, open: &Open) -> Vec<Action> {
        let options = self.played.options.clone();
        self.order(Order::Open { session: ONLY_SESSION, open, options: &options })
    }

    fn prompt(&mut self, turn: u32, prompt: &str) -> Vec<Action> {
        let options = self.played.options.clone();
        let turn = TurnKey(turn);
        self.order(Order::Prompt { session: ONLY_SESSION, turn, prompt, options: &options })
    }

    fn cancel(&mut self, turn: u32) -> Vec<Action> {
        self.step(Input::Cancel { turn: TurnKey(turn) })
    }

    fn text_lines(&mut self, lines: &[&str]) -> Vec<Action> {
        lines.iter().flat_map(|line| self.step(stdout_line(line.as_bytes()))).collect()
    }

    /// Returns the commands that are not answered.
    fn open_commands(&self) -> Vec<Value> {
        let is_open = |line: &Value| {
            line["type"] != "extension_ui_response" && !self.played.answered.contains(&line["id"])
        };
        self.written().into_iter().filter(is_open).collect()
    }

    /// Takes the oldest command of a kind that is not answered.
    fn take_command(&mut self, command: &str) -> Option<Value> {
        let taken = self.open_commands().into_iter().find(|known| known["type"] == command)?;
        self.played.answered.push(taken["id"].clone());
        Some(taken)
    }

    /// Answers the oldest command of a kind well.
    fn reply(&mut self, command: &str, data: &Value) -> Vec<Action> {
        self.answer(command, &json!({"success": true, "data": data}))
    }

    /// Answers the oldest command of a kind with an error.
    fn refuse(&mut self, command: &str, error: &str) -> Vec<Action> {
        self.answer(command, &json!({"success": false, "error": error}))
    }

    fn answer(&mut self, command: &str, more: &Value) -> Vec<Action> {
        let asked = self.take_command(command).expect("it was asked");
        let mut line = json!({"type": "response", "command": command, "id": asked["id"]});
        for (name, value) in more.as_object().unwrap() {
            line[name] = value.clone();
        }
        self.say(&line)
    }
}

/// Returns what the commands are that were written.
fn commands(actions: &[Action]) -> Vec<String> {
    written(actions).iter().map(|line| line["type"].as_str().unwrap().to_owned()).collect()
}

/// What the CLI says about itself.
fn state(id: &str) -> Value {
    json!({"sessionId": id, "sessionFile": format!("/sessions/x_{id}.jsonl"), "isStreaming": false})
}

/// Returns the ends, by turn.
fn ends(actions: &[Action]) -> Vec<(TurnKey, &TurnEnd)> {
    let ends = actions.iter().filter_map(|action| {
        let Action::EndTurn { turn, end } = action else { return None };
        Some((*turn, end.as_ref()))
    });
    ends.collect()
}

/// Returns the sessions that could not be opened, and why.
fn open_failures(actions: &[Action]) -> Vec<(SessionKey, &str, &str)> {
    let failures = actions.iter().filter_map(|action| {
        let Action::OpenFailed { session, failure } = action else { return None };
        Some((*session, failure.kind.code(), failure.message.as_str()))
    });
    failures.collect()
}
