//! The protocol with an agent of which nothing special is true.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{AcpFacts, Habits, Stderr, dialect};
use crate::{
    agent::{
        Action, Dialect, Exit, Input, ONLY_SESSION, Order, TurnKey,
        testing::{end_of, events, exit, failure_of, outputs, statuses, stdout_line},
    },
    event::{EventBody, Usage},
    failure::{Failure, FailureKind},
    memo::Memo,
    permission::Ruling,
    request::{Open, Options, Permissions},
};

const TURN: TurnKey = TurnKey(3);

static PLAIN: AcpFacts = AcpFacts {
    load_id: str::to_owned,
    replay: None,
    has_settings: false,
    thoughts_are_whole: false,
    is_notice: |_| false,
    tool: |call| call.kind.clone().unwrap_or_default(),
    input: |call| call.raw_input.clone(),
    prompt: |prompt, _, _| prompt.to_owned(),
    looks: |_| false,
    ignored: |_, _| None,
    spent: |_| (Usage::default(), None),
    stopped: |_| None,
    failure: |error| Failure::new(FailureKind::Unavailable, error.message.clone()),
    is_lost: |_| false,
    habits: |_| &Habits::NONE,
    stderr: || Box::new(Deaf),
};

struct Deaf;

impl Stderr for Deaf {
    fn line(&mut self, _: &[u8], _: Option<TurnKey>, _: &mut Vec<Action>) -> Option<Failure> {
        None
    }

    fn not_started(&mut self, exit: &Exit) -> Failure {
        Failure::new(FailureKind::Crashed, exit.stderr.clone())
    }
}

struct Talk {
    dialect: Box<dyn Dialect>,
    actions: Vec<Action>,
}

impl Talk {
    fn started(about: Value) -> Self {
        let mut talk = Self { dialect: dialect(&PLAIN), actions: Vec::new() };
        talk.step(Input::Order(Order::Start));
        talk.say(&json!({ "id": 1, "result": about }));
        talk
    }

    fn running(permissions: Permissions) -> Self {
        let can = json!({ "loadSession": false });
        let mut talk = Self::started(json!({ "protocolVersion": 1, "agentCapabilities": can }));
        let options = Options { permissions, ..Options::new("/w") };
        talk.open(&Open::New, &options);
        talk.say(&json!({ "id": 2, "result": { "sessionId": "s" } }));
        let (session, turn, prompt) = (ONLY_SESSION, TURN, "hi");
        talk.step(Input::Order(Order::Prompt { session, turn, prompt, options: &options }));
        talk
    }

    fn open(&mut self, open: &Open, options: &Options) -> Vec<Action> {
        self.step(Input::Order(Order::Open { session: ONLY_SESSION, open, options }))
    }

    fn step(&mut self, input: Input<'_>) -> Vec<Action> {
        let mut out = Vec::new();
        self.dialect.step(Timestamp::UNIX_EPOCH, input, &mut out);
        self.actions.extend(out.iter().cloned());
        out
    }

    fn say(&mut self, message: &Value) -> Vec<Action> {
        self.step(stdout_line(message.to_string().as_bytes()))
    }

    fn tell(&mut self, update: &Value) -> Vec<Action> {
        let params = json!({ "sessionId": "s", "update": update });
        self.say(&json!({ "method": "session/update", "params": params }))
    }

    fn ask(&mut self, options: &Value) -> Vec<Action> {
        let call = json!({ "toolCallId": "c", "title": "rm a", "kind": "delete" });
        let params = json!({ "sessionId": "s", "options": options, "toolCall": call });
        self.say(&json!({ "id": "r", "method": "session/request_permission", "params": params }))
    }

    fn over(&mut self, reason: &str) {
        self.say(&json!({ "id": 3, "result": { "stopReason": reason } }));
    }
}

fn replies(actions: &[Action]) -> Vec<Value> {
    let written = actions.iter().filter_map(|action| {
        let Action::Write(bytes) = action else { return None };
        Some(serde_json::from_slice::<Value>(bytes).unwrap()["result"]["outcome"].take())
    });
    written.collect()
}

#[test]
fn an_agent_of_another_version_is_not_spoken_with() {
    let mut talk = Talk::started(json!({ "protocolVersion": 2 }));
    let actions = talk.open(&Open::New, &Options::new("/w"));
    assert!(matches!(actions.as_slice(), [Action::OpenFailed { .. }]), "{actions:?}");
}

#[test]
fn an_agent_that_cannot_load_has_lost_every_session() {
    let mut talk = Talk::started(json!({ "protocolVersion": 1 }));
    let open = Open::Resume(Box::new(Memo::of_id("any", "x")));
    let actions = talk.open(&open, &Options::new("/w"));
    let [Action::OpenFailed { failure, .. }] = actions.as_slice() else { panic!("{actions:?}") };
    assert_eq!(failure.kind, FailureKind::SessionLost);
}

#[test]
fn the_pieces_of_a_thought_are_one_block() {
    let mut talk = Talk::running(Permissions::Bypass);
    for text in ["one ", "two"] {
        let content = json!({ "type": "text", "text": text });
        talk.tell(&json!({ "sessionUpdate": "agent_thought_chunk", "content": content }));
    }
    let blocks: Vec<_> = events(&talk.actions)
        .into_iter()
        .filter_map(|event| {
            let EventBody::Thinking { block, .. } = event else { return None };
            Some(block.as_str())
        })
        .collect();
    assert_eq!(blocks, ["t1", "t1"]);
}

#[test]
fn a_plan_is_told_as_its_steps() {
    let mut talk = Talk::running(Permissions::Bypass);
    let step = |text: &str, status: &str| json!({ "content": text, "status": status });
    let entries = json!([step("look", "completed"), step("write", "pending")]);
    let actions = talk.tell(&json!({ "sessionUpdate": "plan", "entries": entries }));
    let told = events(&actions);
    let [EventBody::ToolUse { tool, .. }, EventBody::ToolResult(result)] = told.as_slice() else {
        panic!("{told:?}")
    };
    assert_eq!((tool.as_str(), result.output.as_str()), ("plan", "[x] look\n[ ] write"));
}

#[test]
fn an_always_is_never_chosen_even_where_there_is_no_once() {
    let always = json!([{ "optionId": "a", "kind": "allow_always" }]);
    let mut talk = Talk::running(Permissions::Bypass);
    let actions = talk.ask(&always);
    assert_eq!(replies(&actions), [json!({ "outcome": "cancelled" })]);
    assert_eq!(statuses(&actions, "warning").len(), 1);
}

#[test]
fn a_denied_call_that_the_agent_tells_of_is_not_ended_by_us() {
    let mut talk = Talk::running(Permissions::Ask);
    let call = |kind: &str, status: &str| json!({ "sessionUpdate": kind, "toolCallId": "c", "status": status, "rawOutput": { "why": "no" } });
    talk.tell(&call("tool_call", "pending"));
    talk.ask(&json!([{ "optionId": "n", "kind": "reject_once" }]));
    let ruling = Ruling::Deny { why: "no".to_owned() };
    let order = Order::Answer { turn: TURN, request: "\"r\"", ruling: &ruling };
    let actions = talk.step(Input::Order(order));
    assert_eq!(replies(&actions)[0]["optionId"], "n");
    assert_eq!(actions.len(), 1, "{actions:?}");
    let actions = talk.tell(&call("tool_call_update", "failed"));
    let [EventBody::ToolResult(result)] = events(&actions)[..] else { panic!("{actions:?}") };
    assert_eq!((result.is_error, result.output.as_str()), (true, "{\"why\":\"no\"}"));
}

#[test]
fn reasons_to_stop_are_failures_where_there_is_no_answer_to_expect() {
    let cases = [
        ("cancelled", "cancelled"),
        ("refusal", "refused"),
        ("max_turn_requests", "limit_reached"),
        ("", "unreadable_output"),
    ];
    for (reason, kind) in cases {
        let mut talk = Talk::running(Permissions::Bypass);
        talk.over(reason);
        assert_eq!(failure_of(&talk.actions).0, kind);
    }
    for reason in ["end_turn", "max_tokens", "brand_new"] {
        let mut talk = Talk::running(Permissions::Bypass);
        talk.over(reason);
        assert!(end_of(&talk.actions).failure.is_none(), "{reason}");
    }
}

#[test]
fn a_model_that_cannot_be_chosen_is_warned_about() {
    let mut talk = Talk::running(Permissions::Bypass);
    talk.over("end_turn");
    let options = Options { model: Some("m".to_owned()), ..Options::new("/w") };
    let (session, turn, prompt) = (ONLY_SESSION, TurnKey(4), "hi");
    let order = Order::Prompt { session, turn, prompt, options: &options };
    let actions = talk.step(Input::Order(order));
    assert_eq!(statuses(&actions, "warning").len(), 1);
    assert!(actions.iter().any(|action| matches!(action, Action::Write(_))));
}

#[test]
fn what_is_not_known_is_passed_on_and_what_is_cut_spoils_the_answer() {
    let mut talk = Talk::running(Permissions::Bypass);
    let unknown = |actions: &[Action]| {
        events(actions).iter().filter(|event| matches!(event, EventBody::Unknown { .. })).count()
    };
    assert_eq!(unknown(&talk.tell(&json!({ "sessionUpdate": "brand_new" }))), 1);
    assert_eq!(unknown(&talk.say(&json!({ "method": "brand/new" }))), 1);
    assert_eq!(unknown(&talk.tell(&json!({ "sessionUpdate": "current_mode_update" }))), 0);
    let content = json!({ "type": "text", "text": "half" });
    talk.tell(&json!({ "sessionUpdate": "agent_message_chunk", "content": content }));
    let line = Input::Line { from: crate::event::Stream::Stdout, bytes: b"{\"x", cut: true };
    assert_eq!(unknown(&talk.step(line)), 1);
    talk.over("end_turn");
    assert_eq!(failure_of(&talk.actions).0, "unreadable_output");
    assert_eq!(outputs(&talk.actions), [("b1", "half")]);
}

#[test]
fn an_agent_that_ends_before_it_begins_is_asked_why() {
    let mut talk = Talk { dialect: dialect(&PLAIN), actions: Vec::new() };
    talk.step(Input::Order(Order::Start));
    let actions = talk.step(Input::Exited(&exit(1, "no")));
    let [Action::OpenFailed { failure, .. }] = actions.as_slice() else { panic!("{actions:?}") };
    assert_eq!(failure.message, "no");
}
