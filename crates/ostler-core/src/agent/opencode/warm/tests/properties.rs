//! What holds whatever the server says, whatever is ordered, in any order.

use std::{fs, path::Path, sync::LazyLock};

use proptest::{collection::vec, prelude::*};

use super::*;
use crate::{
    agent::{
        Input, Order, SessionKey, TimerKey,
        http::Heard,
        testing::{any_value, stdout_line},
    },
    permission::Ruling,
    request::Open,
};

const CASES: u32 = 400;

const FIELDS: &[&str] = &[
    "id",
    "info",
    "part",
    "role",
    "parentID",
    "time",
    "completed",
    "finish",
    "error",
    "status",
    "type",
    "messageID",
    "partID",
    "delta",
    "state",
    "tool",
    "callID",
    "questions",
    "directory",
];

const KINDS: &[&str] = &[
    "message.updated",
    "message.part.updated",
    "message.part.delta",
    "session.status",
    "session.idle",
    "session.error",
    "session.created",
    "permission.asked",
    "permission.replied",
    "question.asked",
    "brand.new",
];

/// The events that the real server told.
static RECORDED: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/opencode/1.18.33");
    let mut events = Vec::new();
    for name in ["warm-serve.jsonl", "warm-serve-compaction.jsonl", "sse-event-examples.jsonl"] {
        for line in fs::read_to_string(folder.join(name)).unwrap().lines() {
            let mut line: Value = serde_json::from_str(line).unwrap();
            if line.get("event").is_some() {
                let mut event = line["event"].take();
                if event["properties"].get("sessionID").is_some() {
                    event["properties"]["sessionID"] = SESSION.into();
                }
                events.push(event);
            }
        }
    }
    events
});

/// One thing that happens. Numbers choose among what is there at that time.
#[derive(Clone, Debug)]
enum Happens {
    Prompt,
    Steer,
    Answer(usize, bool),
    Cancel,
    Ring(usize),
    Reply(usize, u16, Value),
    NoReply(usize),
    Recorded(usize, u8),
    Tells(usize, Value),
    Lost,
    Connected,
    Garbage(Vec<u8>),
    Close,
}

fn happens() -> impl Strategy<Value = Happens> {
    let n = any::<usize>;
    let status = prop::sample::select(vec![200u16, 204, 400, 404, 500]);
    prop_oneof![
        4 => Just(Happens::Prompt),
        1 => Just(Happens::Steer),
        2 => (n(), any::<bool>()).prop_map(|(at, yes)| Happens::Answer(at, yes)),
        2 => Just(Happens::Cancel),
        3 => n().prop_map(Happens::Ring),
        6 => (n(), status, any_value(FIELDS)).prop_map(|(at, s, body)| Happens::Reply(at, s, body)),
        1 => n().prop_map(Happens::NoReply),
        12 => (n(), 0u8..40).prop_map(|(at, count)| Happens::Recorded(at, count)),
        4 => (n(), any_value(FIELDS)).prop_map(|(at, value)| Happens::Tells(at, value)),
        1 => Just(Happens::Lost),
        1 => Just(Happens::Connected),
        1 => vec(any::<u8>(), 0..40).prop_map(Happens::Garbage),
        1 => Just(Happens::Close),
    ]
}

/// A conversation in which one session at a time is used as a worker would.
struct World {
    talk: Talk,
    session: u32,
    is_open: bool,
    turn: u32,
    /// The last turn whose session could not be opened.
    lost: u32,
    asked: Vec<(TurnKey, String)>,
    timers: Vec<TimerKey>,
}

impl World {
    fn is_running(&self) -> bool {
        self.turn > self.lost && !has_ended(&self.talk.actions, TurnKey(self.turn))
    }

    fn happens(&mut self, what: Happens) {
        let before = self.talk.actions.len();
        match what {
            Happens::Prompt if !self.is_running() => {
                let session = SessionKey(self.session);
                if !std::mem::replace(&mut self.is_open, true) {
                    let open = &Open::New;
                    self.talk.order(Order::Open { session, open, options: &asking() });
                }
                self.turn += 1;
                self.talk.prompt_in(session, TurnKey(self.turn), "hi", &asking());
            }
            Happens::Steer if self.is_running() => {
                self.talk.order(Order::Steer { turn: TurnKey(self.turn), text: "more" });
            }
            Happens::Prompt | Happens::Steer => {}
            Happens::Answer(at, yes) => {
                if let Some((turn, request)) = pick(&mut self.asked, at) {
                    let ruling = match yes {
                        true => Ruling::Allow { text: None },
                        false => Ruling::Deny { why: "no".to_owned() },
                    };
                    self.talk.order(Order::Answer { turn, request: &request, ruling: &ruling });
                }
            }
            Happens::Cancel if self.is_running() => {
                self.talk.cancel(TurnKey(self.turn));
            }
            Happens::Cancel => {}
            Happens::Ring(at) => {
                if let Some(timer) = pick(&mut self.timers, at) {
                    self.talk.step(Input::Timer(timer));
                }
            }
            Happens::Reply(at, status, mut body) => {
                if let Some((call, request)) = pick(&mut self.talk.open_calls, at) {
                    if request.url.contains("/session?") {
                        body = json!({ "id": SESSION, "directory": "/workspace" });
                    }
                    self.talk.reply_to(call, Ok((status, &body)));
                }
            }
            Happens::NoReply(at) => {
                if let Some((call, _)) = pick(&mut self.talk.open_calls, at) {
                    self.talk.reply_to(call, Err("cut"));
                }
            }
            Happens::Recorded(at, count) => {
                let at = at % RECORDED.len();
                for event in RECORDED.iter().skip(at).take(usize::from(count)) {
                    self.talk.event(event);
                }
            }
            Happens::Tells(at, value) => {
                let value = if value.is_object() { value } else { json!({ "info": value }) };
                self.talk.tell(KINDS[at % KINDS.len()], value);
            }
            Happens::Lost => {
                self.talk.lose();
            }
            Happens::Connected => {
                self.talk.tell("server.connected", json!({}));
            }
            Happens::Garbage(bytes) => {
                self.talk.step(Input::Heard(Heard::Event(&bytes)));
                self.talk.step(stdout_line(&bytes));
            }
            Happens::Close if !self.is_running() && self.is_open => {
                self.talk.order(Order::Close { session: SessionKey(self.session) });
                self.is_open = false;
                self.session += 1;
            }
            Happens::Close => {}
        }
        self.note(before);
    }

    fn note(&mut self, before: usize) {
        for action in &self.talk.actions[before..] {
            match action {
                Action::Arm { timer, .. } => self.timers.push(*timer),
                Action::Ask { turn, permission } => {
                    assert!(self.turn == turn.0, "asked in a turn that is over");
                    self.asked.push((*turn, permission.request.clone()));
                }
                Action::Withdraw { request, .. } => self.asked.retain(|(_, one)| one != request),
                // A worker forgets the session, and ends the turn that waits.
                Action::OpenFailed { .. } => {
                    self.is_open = false;
                    self.session += 1;
                    self.lost = self.turn;
                }
                Action::EndTurn { turn, .. } => self.asked.retain(|(one, _)| one != turn),
                // The server stayed away; whoever comes next has another worker.
                Action::Stop => {
                    self.is_open = false;
                    self.session += 1;
                }
                Action::Write(_)
                | Action::Call { .. }
                | Action::Listen(_)
                | Action::Ready
                | Action::Unasked { .. }
                | Action::Opened { .. }
                | Action::Working { .. }
                | Action::Emit { .. } => {}
            }
        }
    }
}

fn pick<T>(list: &mut Vec<T>, at: usize) -> Option<T> {
    (!list.is_empty()).then(|| list.remove(at % list.len()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, ..ProptestConfig::default() })]

    #[test]
    fn every_turn_ends_once_and_says_nothing_afterwards(
        all in vec(happens(), 0..60),
        is_attached in any::<bool>(),
    ) {
        let talk = if is_attached { super::attached::found() } else { Talk::ready() };
        let mut world = World {
            talk,
            session: 0,
            is_open: false,
            turn: 0,
            lost: 0,
            asked: Vec::new(),
            timers: Vec::new(),
        };
        for what in all {
            world.happens(what);
        }
        let still = world.is_running().then_some(world.turn);
        world.talk.exit();
        if let Some(turn) = still {
            prop_assert!(has_ended(&world.talk.actions, TurnKey(turn)));
        }
        let mut ended = Vec::new();
        for action in &world.talk.actions {
            match action {
                Action::EndTurn { turn, .. } => {
                    prop_assert!(!ended.contains(turn), "{turn:?} ended twice");
                    ended.push(*turn);
                }
                Action::Emit { turn, .. }
                | Action::Ask { turn, .. }
                | Action::Working { turn } => {
                    prop_assert!(!ended.contains(turn), "{turn:?} went on after its end");
                }
                Action::Stop
                | Action::Write(_)
                | Action::Call { .. }
                | Action::Listen(_)
                | Action::Ready
                | Action::OpenFailed { .. }
                | Action::Unasked { .. }
                | Action::Withdraw { .. }
                | Action::Arm { .. }
                | Action::Opened { .. } => {}
            }
        }
    }
}
