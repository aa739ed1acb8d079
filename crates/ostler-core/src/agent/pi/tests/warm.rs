//! Pi kept running, against recorded conversations and its known traps.

mod launch;
mod properties;
mod recordings;
mod traps;

use serde_json::{Value, json};

use super::*;
use crate::{
    agent::{Dialect, ONLY_SESSION, Order, SessionKey, TimerKey, TurnEnd, TurnKey, WarmLaunch},
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
        let launch = WarmLaunch {
            spec: &SPEC,
            options: &self.options,
            open: &self.open,
            new_id: "00000000-0000-0000-0000-000000000000",
            version: self.version,
            variables: &[],
            run_dir: std::path::Path::new("/run"),
        };
        (SPEC.warm.unwrap().dialect)(&launch)
    }
}

/// A process with somebody who answers for it.
struct Process {
    dialect: Box<dyn Dialect>,
    options: Options,
    /// What was written to it: the commands that have not been answered.
    commands: Vec<Value>,
    /// Everything that came of everything.
    actions: Vec<Action>,
}

impl Process {
    fn new(started: &Started<'_>) -> Self {
        Self {
            dialect: started.dialect(),
            options: started.options.clone(),
            commands: Vec::new(),
            actions: Vec::new(),
        }
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
        process.line(&json!({"type": "agent_start"}));
        process
    }

    /// Takes an input and returns what came of it.
    fn step(&mut self, input: Input<'_>) -> Vec<Action> {
        self.step_at(0, input)
    }

    fn step_at(&mut self, second: i64, input: Input<'_>) -> Vec<Action> {
        let mut out = Vec::new();
        self.dialect.step(at_second(second), input, &mut out);
        self.commands.extend(written(&out));
        self.actions.extend(out.iter().cloned());
        out
    }

    fn order(&mut self, order: Order<'_>) -> Vec<Action> {
        self.step(Input::Order(order))
    }

    fn order_open(&mut self, open: &Open) -> Vec<Action> {
        let options = self.options.clone();
        self.order(Order::Open { session: ONLY_SESSION, open, options: &options })
    }

    fn prompt(&mut self, turn: u32, prompt: &str) -> Vec<Action> {
        let options = self.options.clone();
        let turn = TurnKey(turn);
        self.order(Order::Prompt { session: ONLY_SESSION, turn, prompt, options: &options })
    }

    fn cancel(&mut self, turn: u32) -> Vec<Action> {
        self.step(Input::Cancel { turn: TurnKey(turn) })
    }

    fn line(&mut self, line: &Value) -> Vec<Action> {
        self.step(stdout_line(line.to_string().as_bytes()))
    }

    fn text_lines(&mut self, lines: &[&str]) -> Vec<Action> {
        lines.iter().flat_map(|line| self.step(stdout_line(line.as_bytes()))).collect()
    }

    fn exit(&mut self, exit: &Exit) -> Vec<Action> {
        self.step(Input::Exited(exit))
    }

    /// Returns the id of the oldest command of a kind that is not answered.
    fn take_command(&mut self, command: &str) -> Option<Value> {
        let at = self.commands.iter().position(|known| known["type"] == command)?;
        Some(self.commands.remove(at))
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
        self.line(&line)
    }
}

/// Returns the lines that were written.
fn written(actions: &[Action]) -> Vec<Value> {
    let lines = actions.iter().filter_map(|action| {
        let Action::Write(bytes) = action else { return None };
        let line = bytes.strip_suffix(b"\n").expect("a whole line");
        Some(serde_json::from_slice(line).unwrap())
    });
    lines.collect()
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
