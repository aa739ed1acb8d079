//! One turn with a process of its own.

use super::*;
use crate::agent::{
    Input, ONLY_TURN,
    testing::{end_of, ended_once, exit, failure_of, has_stopped, launch_of, stdout_line},
};

/// A process of one turn.
struct Once {
    dialect: Box<dyn Dialect>,
    actions: Vec<Action>,
}

impl Once {
    fn new(options: &Options) -> Self {
        let spec = named("own").spec().unwrap();
        let dialect = (spec.dialect)(&launch_of(&spec, options, &Open::New, "hi"));
        let mut once = Self { dialect, actions: Vec::new() };
        once.step(Input::Order(Order::Start));
        once
    }

    fn step(&mut self, input: Input<'_>) {
        self.dialect.step(jiff::Timestamp::UNIX_EPOCH, input, &mut self.actions);
    }

    fn answer(&mut self, method: &str, result: Value) {
        let asked = written(&self.actions).into_iter().rfind(|one| one["method"] == method);
        let id = asked.unwrap_or_else(|| panic!("{method} was not asked"))["id"].take();
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    }

    fn say(&mut self, message: &Value) {
        self.step(stdout_line(message.to_string().as_bytes()));
    }

    fn running(options: &Options) -> Self {
        let mut once = Self::new(options);
        once.answer("initialize", json!({ "protocolVersion": 1 }));
        once.answer("session/new", json!({ "sessionId": SESSION }));
        once
    }
}

#[test]
fn one_prompt_is_asked_and_then_the_process_is_ended() {
    let options = Options { permissions: Permissions::Bypass, ..asking() };
    let mut once = Once::running(&options);
    assert_eq!(methods(&once.actions), ["initialize", "session/new", "session/prompt"]);
    assert!(!has_stopped(&once.actions));
    once.answer("session/prompt", json!({ "stopReason": "end_turn" }));
    assert!(has_stopped(&once.actions));
    once.step(Input::Exited(&exit(0, "")));
    let actions = ended_once(once.actions);
    assert!(end_of(&actions).failure.is_none());
}

#[test]
fn nobody_can_be_asked_so_that_what_asks_is_denied() {
    let mut once = Once::running(&asking());
    let call = json!({ "toolCallId": "c", "title": "rm", "kind": "execute" });
    let options = json!([{ "optionId": "n", "kind": "reject_once" }, { "optionId": "y", "kind": "allow_once" }]);
    let params = json!({ "sessionId": SESSION, "toolCall": call, "options": options });
    once.say(&json!({ "id": 9, "method": "session/request_permission", "params": params }));
    let answer = written(&once.actions).pop().unwrap();
    assert_eq!(answer["result"]["outcome"]["optionId"], "n");
}

#[test]
fn an_agent_that_never_gets_ready_is_given_up_and_one_that_dies_has_crashed() {
    let mut once = Once::new(&asking());
    once.step(Input::Timer(crate::agent::TimerKey(u32::MAX)));
    assert_eq!(failure_of(&once.actions).0, "timeout");
    assert!(has_stopped(&once.actions));
    let mut once = Once::running(&asking());
    once.step(Input::Exited(&exit(3, "boom")));
    let actions = ended_once(once.actions);
    assert_eq!(failure_of(&actions).0, "crashed");
    let mut once = Once::new(&asking());
    once.step(Input::Exited(&exit(1, "please log in: not logged in")));
    assert_eq!(failure_of(&ended_once(once.actions)).0, "auth");
}

#[test]
fn a_cancel_is_passed_on_and_before_the_start_it_ends_the_process() {
    let mut once = Once::running(&asking());
    once.step(Input::Cancel { turn: ONLY_TURN });
    assert_eq!(methods(&once.actions).last().map(String::as_str), Some("session/cancel"));
    once.answer("session/prompt", json!({ "stopReason": "cancelled" }));
    assert_eq!(failure_of(&once.actions).0, "cancelled");
    let mut once = Once::new(&asking());
    once.step(Input::Cancel { turn: ONLY_TURN });
    assert!(has_stopped(&once.actions));
}
