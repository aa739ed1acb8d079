//! How Claude is kept between turns: recordings, command lines, traps, properties.

mod asking;
mod cancels;
mod launch;
mod player;
mod properties;
mod recordings;
mod traps;

use serde_json::{Value, json};

use super::{RUN_DIR, SPEC, options, resume};
use crate::{
    agent::{
        Action, CommandLine, Exit, Input, ONLY_SESSION, Order, TurnEnd, TurnKey, WarmLaunch, play,
        testing::{self, argv, exit, statuses, stdout_line, warm_launch_of, written},
    },
    event::EventBody,
    permission::{Permission, Ruling},
    request::{Open, Options},
};

const NEW_ID: &str = "00000000-0000-4000-8000-000000000000";

fn warm_launch<'a>(options: &'a Options, open: &'a Open) -> WarmLaunch<'a> {
    let run_dir = std::path::Path::new(RUN_DIR);
    WarmLaunch { new_id: NEW_ID, run_dir, ..warm_launch_of(&SPEC, options, open) }
}

/// A kept process.
struct Claude {
    /// What its turns are asked for with.
    options: Options,
}

/// A conversation with it.
type Talk = testing::Talk<Claude>;

impl Talk {
    /// Starts a process; it is not ready.
    fn start(options: Options, open: &Open) -> Self {
        let dialect = (SPEC.warm.unwrap().dialect)(&warm_launch(&options, open));
        let mut talk = Self::with(dialect, Claude { options });
        talk.order(Order::Start);
        talk
    }

    /// Starts a process for a new session, makes it ready and opens the session.
    fn ready() -> Self {
        let mut talk = Self::start(options(), &Open::New);
        talk.confirm("initialize");
        talk.open(&Open::New);
        talk
    }

    fn open(&mut self, open: &Open) {
        let options = self.played.options.clone();
        self.order(Order::Open { session: ONLY_SESSION, open, options: &options });
    }

    fn prompt(&mut self, turn: u32, prompt: &str) -> Vec<Action> {
        let options = self.played.options.clone();
        let turn = TurnKey(turn);
        self.order(Order::Prompt { session: ONLY_SESSION, turn, prompt, options: &options })
    }

    fn answer(&mut self, turn: u32, request: &str, ruling: &Ruling) -> Vec<Action> {
        self.order(Order::Answer { turn: TurnKey(turn), request, ruling })
    }

    fn cancel(&mut self, turn: u32) -> Vec<Action> {
        self.step(Input::Cancel { turn: TurnKey(turn) })
    }

    /// Lets the CLI agree to the newest request of ours of a kind.
    fn confirm(&mut self, subtype: &str) -> Vec<Action> {
        self.respond(subtype, &json!({"subtype": "success", "response": {}}))
    }

    fn respond(&mut self, subtype: &str, response: &Value) -> Vec<Action> {
        let id = request_ids(&self.actions, subtype).pop().expect("it was asked for");
        let mut response = response.clone();
        response["request_id"] = json!(id);
        self.say(&json!({"type": "control_response", "response": response}))
    }

    /// Returns the id of the newest prompt.
    fn message_id(&self) -> String {
        let mut lines = self.written().into_iter();
        let message = lines.rfind(|line| line["type"] == "user").expect("a prompt was sent");
        message["uuid"].as_str().unwrap().to_owned()
    }

    /// Begins the turn of the newest prompt.
    fn begin(&mut self) -> Vec<Action> {
        let init = init(&[&self.message_id()]);
        self.say(&init)
    }

    /// Ends the turn of the newest prompt.
    fn finish(&mut self, text: &str) -> Vec<Action> {
        let result = result(&[&self.message_id()], text);
        self.say(&result)
    }
}

fn init(messages: &[&str]) -> Value {
    let mut init = json!({"type": "system", "subtype": "init", "session_id": NEW_ID,
        "model": "m", "capabilities": ["msg_lifecycle_v1"]});
    if !messages.is_empty() {
        init["user_message_uuids"] = json!(messages);
    }
    init
}

fn result(messages: &[&str], text: &str) -> Value {
    let mut result = json!({"type": "result", "subtype": "success", "is_error": false,
        "result": text, "num_turns": 1, "session_id": NEW_ID, "total_cost_usd": 0.5});
    if !messages.is_empty() {
        result["user_message_uuids"] = json!(messages);
    }
    result
}

fn says(text: &str) -> Value {
    json!({"type": "assistant", "session_id": NEW_ID,
        "message": {"id": text, "content": [{"type": "text", "text": text}]}})
}

fn asks(id: &str, tool: &str, input: &Value) -> Value {
    json!({"type": "control_request", "request_id": id,
        "request": {"subtype": "can_use_tool", "tool_name": tool, "input": input}})
}

fn lifecycle(id: &str, state: &str) -> Value {
    json!({"type": "command_lifecycle", "command_uuid": id, "state": state})
}

/// Returns the ids of our requests of a kind.
fn request_ids(actions: &[Action], subtype: &str) -> Vec<String> {
    let lines = written(actions).into_iter();
    let ours = lines.filter(|line| line["request"]["subtype"] == subtype);
    ours.map(|line| line["request_id"].as_str().unwrap().to_owned()).collect()
}

fn ends(actions: &[Action]) -> Vec<(u32, &TurnEnd)> {
    let ends = actions.iter().filter_map(|action| {
        let Action::EndTurn { turn, end } = action else { return None };
        Some((turn.0, end.as_ref()))
    });
    ends.collect()
}

/// Returns the turns that have ended, with what they said or how they failed.
fn outcomes(actions: &[Action]) -> Vec<(u32, &str)> {
    let ends = ends(actions).into_iter().map(|(turn, end)| {
        let failed = end.failure.as_ref().map(|failure| failure.kind.code());
        (turn, failed.or(end.text.as_deref()).unwrap_or_default())
    });
    ends.collect()
}

fn asked(actions: &[Action]) -> Vec<&Permission> {
    let asked = actions.iter().filter_map(|action| {
        let Action::Ask { permission, .. } = action else { return None };
        Some(permission.as_ref())
    });
    asked.collect()
}

fn unasked(actions: &[Action]) -> Vec<TurnKey> {
    let unasked = actions.iter().filter_map(|action| {
        let Action::Unasked { turn, .. } = action else { return None };
        Some(*turn)
    });
    unasked.collect()
}

/// Returns the texts that were told, by turn.
fn told(actions: &[Action]) -> Vec<(u32, &str)> {
    let told = actions.iter().filter_map(|action| {
        let Action::Emit { turn, event: EventBody::Output { text, .. }, .. } = action else {
            return None;
        };
        Some((turn.0, text.as_str()))
    });
    told.collect()
}
