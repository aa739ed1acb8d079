//! The protocol with an agent of which nothing special is true.

use proptest::{collection::vec, prelude::*};
use serde_json::{Value, json};

use super::{AcpFacts, Habits, Stderr, dialect, testing::AcpAgent};
use crate::{
    agent::{
        Action, Dialect, Exit, Input, ONLY_SESSION, Order, TurnKey,
        testing::{
            self, end_of, events, exit, failure_of, outputs, statuses, thought_blocks, written,
        },
    },
    event::{EventBody, Usage},
    failure::{Failure, FailureKind},
    memo::Memo,
    permission::Ruling,
    protocol::testing::{World, any_story, survives_before_the_start},
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
    title: |call| call.title.clone().unwrap_or_default(),
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

struct Plain;

impl AcpAgent for Plain {
    const STDERR: &'static [&'static str] = &["anything"];

    fn dialect() -> Box<dyn Dialect> {
        dialect(&PLAIN)
    }

    fn session(&self) -> &'static str {
        "s"
    }
}

type Talk = testing::Talk<Plain>;

impl Talk {
    fn started(about: Value) -> Self {
        let mut talk = Self::playing(Plain);
        talk.order(Order::Start);
        talk.answer_ok("initialize", about);
        talk
    }

    fn running(permissions: Permissions) -> Self {
        let can = json!({ "loadSession": false });
        let mut talk = Self::started(json!({ "protocolVersion": 1, "agentCapabilities": can }));
        let options = Options { permissions, ..Options::new("/w") };
        talk.open_session(ONLY_SESSION, &Open::New, &options);
        talk.answer_ok("session/new", json!({ "sessionId": "s" }));
        talk.prompt(TURN, "hi", &options);
        talk
    }

    fn asks_to_delete(&mut self, options: Value) -> Vec<Action> {
        let call = json!({ "toolCallId": "c", "title": "rm a", "kind": "delete" });
        self.asks(json!("r"), options, call)
    }
}

fn replies(actions: &[Action]) -> Vec<Value> {
    written(actions).iter_mut().map(|reply| reply["result"]["outcome"].take()).collect()
}

#[test]
fn an_agent_of_another_version_is_not_spoken_with() {
    let mut talk = Talk::started(json!({ "protocolVersion": 2 }));
    let actions = talk.open_session(ONLY_SESSION, &Open::New, &Options::new("/w"));
    assert!(matches!(actions.as_slice(), [Action::OpenFailed { .. }]), "{actions:?}");
}

#[test]
fn an_agent_that_cannot_load_has_lost_every_session() {
    let mut talk = Talk::started(json!({ "protocolVersion": 1 }));
    let open = Open::Resume(Box::new(Memo::of_id("any", "x")));
    let actions = talk.open_session(ONLY_SESSION, &open, &Options::new("/w"));
    let [Action::OpenFailed { failure, .. }] = actions.as_slice() else { panic!("{actions:?}") };
    assert_eq!(failure.kind, FailureKind::SessionLost);
}

#[test]
fn the_pieces_of_a_thought_are_one_block() {
    let mut talk = Talk::running(Permissions::Bypass);
    for text in ["one ", "two"] {
        let content = json!({ "type": "text", "text": text });
        talk.tell(json!({ "sessionUpdate": "agent_thought_chunk", "content": content }));
    }
    assert_eq!(thought_blocks(&talk.actions), ["t1", "t1"]);
}

#[test]
fn a_plan_is_told_as_its_steps() {
    let mut talk = Talk::running(Permissions::Bypass);
    let step = |text: &str, status: &str| json!({ "content": text, "status": status });
    let entries = json!([step("look", "completed"), step("write", "pending")]);
    let actions = talk.tell(json!({ "sessionUpdate": "plan", "entries": entries }));
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
    let actions = talk.asks_to_delete(always);
    assert_eq!(replies(&actions), [json!({ "outcome": "cancelled" })]);
    assert_eq!(statuses(&actions, "warning").len(), 1);
}

#[test]
fn a_denied_call_that_the_agent_tells_of_is_not_ended_by_us() {
    let mut talk = Talk::running(Permissions::Ask);
    let call = |kind: &str, status: &str| json!({ "sessionUpdate": kind, "toolCallId": "c", "status": status, "rawOutput": { "why": "no" } });
    talk.tell(call("tool_call", "pending"));
    talk.asks_to_delete(json!([{ "optionId": "n", "kind": "reject_once" }]));
    let ruling = Ruling::Deny { why: "no".to_owned() };
    let actions = talk.decide(TURN, "\"r\"", &ruling);
    assert_eq!(replies(&actions)[0]["optionId"], "n");
    assert_eq!(actions.len(), 1, "{actions:?}");
    let actions = talk.tell(call("tool_call_update", "failed"));
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
    let actions = talk.prompt(TurnKey(4), "hi", &options);
    assert_eq!(statuses(&actions, "warning").len(), 1);
    assert!(actions.iter().any(|action| matches!(action, Action::Write(_))));
}

#[test]
fn what_is_not_known_is_passed_on_and_what_is_cut_spoils_the_answer() {
    let mut talk = Talk::running(Permissions::Bypass);
    let unknown = |actions: &[Action]| {
        events(actions).iter().filter(|event| matches!(event, EventBody::Unknown { .. })).count()
    };
    assert_eq!(unknown(&talk.tell(json!({ "sessionUpdate": "brand_new" }))), 1);
    assert_eq!(unknown(&talk.say(&json!({ "method": "brand/new" }))), 1);
    assert_eq!(unknown(&talk.tell(json!({ "sessionUpdate": "current_mode_update" }))), 0);
    talk.text("half");
    let line = Input::Line { from: crate::event::Stream::Stdout, bytes: b"{\"x", cut: true };
    assert_eq!(unknown(&talk.step(line)), 1);
    talk.over("end_turn");
    assert_eq!(failure_of(&talk.actions).0, "unreadable_output");
    assert_eq!(outputs(&talk.actions), [("b1", "half")]);
}

#[test]
fn an_agent_that_ends_before_it_begins_is_asked_why() {
    let mut talk = Talk::playing(Plain);
    talk.order(Order::Start);
    let actions = talk.exit(&exit(1, "no"));
    let [Action::OpenFailed { failure, .. }] = actions.as_slice() else { panic!("{actions:?}") };
    assert_eq!(failure.message, "no");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_turn_ends_once_and_every_request_is_answered(
        story in any_story::<Plain>(),
        code in 0..3,
    ) {
        World::<Plain>::new().live(story, code);
    }

    #[test]
    fn nothing_that_is_said_before_the_start_is_over_does_harm(
        lines in vec(any::<Vec<u8>>(), 0..20),
        line in any::<usize>(),
    ) {
        survives_before_the_start::<Plain>(&lines, line);
    }
}
