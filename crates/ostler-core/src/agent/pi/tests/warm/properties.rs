//! What holds for every conversation, whatever either side says.

use proptest::{collection::vec, prelude::*};

use super::*;
use crate::agent::testing::Ledger;

const CASES: u32 = 512;

/// What the process does not wait for. It may wait for anything else.
const UNANSWERED: [&str; 2] = ["notify", "setTitle"];

/// Something that happens. Orders that the driver would not give then are skipped.
#[derive(Clone, Debug)]
enum Happening {
    Line(Vec<u8>, Stream, bool),
    /// A good or bad answer to the oldest command of the process.
    Reply(bool, Value),
    Prompt,
    Cancel,
    Steer,
    Answer(bool),
    Ring,
    Dialog(&'static str, u8),
}

fn any_event() -> impl Strategy<Value = Vec<u8>> {
    let lines = prop::sample::select(vec![
        r#"{"type":"agent_start"}"#,
        r#"{"type":"turn_start"}"#,
        r#"{"type":"message_start","message":{"role":"assistant","content":[]}}"#,
        r#"{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"a"}}"#,
        r#"{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"ab"}],"stopReason":"stop"}}"#,
        r#"{"type":"message_end","message":{"role":"assistant","content":[],"stopReason":"toolUse"}}"#,
        r#"{"type":"message_end","message":{"role":"assistant","content":[],"stopReason":"error","errorMessage":"429 {}"}}"#,
        r#"{"type":"tool_execution_start","toolCallId":"t","toolName":"bash","args":{}}"#,
        r#"{"type":"turn_end"}"#,
        r#"{"type":"agent_end","willRetry":true}"#,
        r#"{"type":"agent_end"}"#,
        r#"{"type":"agent_settled"}"#,
        r#"{"type":"agent_settled","aborted":true}"#,
        r#"{"type":"auto_retry_start","attempt":1,"delayMs":60000,"errorMessage":"x"}"#,
        r#"{"type":"compaction_start"}"#,
        r#"{"type":"extension_error","error":"x"}"#,
        r#"{"type":"session","id":"other"}"#,
        r#"{"type":"result","result":"old"}"#,
        r#"{"type":"response","id":"r9","success":true}"#,
        r#"{"type":"response","command":"parse","success":false}"#,
        "garbage",
        "{",
    ]);
    prop_oneof![
        8 => lines.prop_map(|line| line.as_bytes().to_vec()),
        1 => any_value(&["type", "id", "message", "method"])
            .prop_map(|value| value.to_string().into_bytes()),
        1 => vec(any::<u8>(), 0..60),
    ]
}

fn any_data() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => Just(state(SESSION)),
        1 => Just(state("another")),
        1 => Just(json!({"disposition": "handled"})),
        1 => Just(json!({"disposition": "started"})),
        1 => Just(json!({"cancelled": true})),
        1 => any_value(&["sessionId", "isStreaming"]),
    ]
}

fn any_happening() -> impl Strategy<Value = Happening> {
    let from = prop_oneof![9 => Just(Stream::Stdout), 1 => Just(Stream::Stderr)];
    let line = (any_event(), from, prop::bool::weighted(0.05))
        .prop_map(|(bytes, from, cut)| Happening::Line(bytes, from, cut));
    let methods = ["select", "confirm", "input", "editor", "notify", "setTitle", "news"];
    let dialog = (prop::sample::select(methods.to_vec()), 0u8..3)
        .prop_map(|(method, id)| Happening::Dialog(method, id));
    prop_oneof![
        8 => line,
        6 => (prop::bool::weighted(0.9), any_data()).prop_map(|(ok, data)| Happening::Reply(ok, data)),
        3 => Just(Happening::Prompt),
        1 => Just(Happening::Cancel),
        1 => Just(Happening::Steer),
        1 => any::<bool>().prop_map(Happening::Answer),
        1 => Just(Happening::Ring),
        2 => dialog,
    ]
}

/// The driver, which knows what runs and who is asked.
#[derive(Default)]
struct Driver {
    ledger: Ledger,
    /// Whether the session was opened, which is done once.
    has_opened: bool,
    /// Whether the process was told to end what runs.
    is_ending: bool,
}

impl Driver {
    fn saw(&mut self, actions: &[Action]) {
        self.ledger.take(actions);
        for action in actions {
            self.is_ending &= !matches!(action, Action::EndTurn { .. });
            for line in written(std::slice::from_ref(action)) {
                match line["type"].as_str().unwrap() {
                    "extension_ui_response" => self.ledger.pay(line["id"].as_str().unwrap()),
                    "abort" => {
                        self.is_ending = true;
                        self.ledger.stop(ONLY_SESSION);
                    }
                    _ => {}
                }
            }
        }
        // One may run that nobody asked for while a prompt waits.
        let running = self.ledger.running();
        assert!(running.len() <= 2, "one at a time");
        let must_be_quiet = self.is_ending || running.is_empty();
        assert!(!must_be_quiet || self.ledger.asked().is_empty(), "nobody is asked after a turn");
        self.ledger.check();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn whatever_happens_every_turn_ends_once_and_every_question_is_answered(
        happenings in vec(any_happening(), 0..60),
        settles in any::<bool>(),
        is_resumed in any::<bool>(),
        max_turns in prop::option::of(0u32..2),
        code in prop::option::of(0i32..3),
    ) {
        let mut started = Started { version: settles.then_some("0.87.1"), ..Started::default() };
        started.options.max_turns = max_turns;
        let mut open = Open::New;
        if is_resumed {
            let mut memo = Memo::of_id("pi", SESSION);
            memo.file = Some("/sessions/x.jsonl".into());
            open = Open::Resume(Box::new(memo));
        }
        let mut process = Process::new(&started);
        let mut driver = Driver::default();
        driver.saw(&process.order(Order::Start));
        for (second, happening) in (0..).zip(happenings) {
            let running = driver.ledger.running();
            let turn = running.first().copied().unwrap_or(TurnKey(u32::MAX / 2));
            let actions = match happening {
                Happening::Line(bytes, from, cut) => {
                    process.step_at_second(second, Input::Line { from, bytes: &bytes, cut })
                }
                Happening::Reply(is_good, data) => {
                    let commands = process.open_commands();
                    let Some(asked) = commands.first() else { continue };
                    let command = asked["type"].as_str().unwrap().to_owned();
                    if is_good {
                        process.reply(&command, &data)
                    } else {
                        process.refuse(&command, "no")
                    }
                }
                Happening::Prompt if !driver.ledger.sessions(false).is_empty() => {
                    process.prompt(driver.ledger.begin(ONLY_SESSION).0, "hi")
                }
                Happening::Prompt if driver.ledger.is_ready() && !driver.has_opened => {
                    driver.has_opened = true;
                    driver.ledger.open();
                    process.order_open(&open)
                }
                Happening::Cancel => {
                    for request in driver.ledger.asked_in(turn) {
                        driver.ledger.decide(&request);
                        let ruling = Ruling::Deny { why: "no".to_owned() };
                        let order = Order::Answer { turn, request: &request, ruling: &ruling };
                        driver.saw(&process.order(order));
                    }
                    process.step(Input::Cancel { turn })
                }
                Happening::Steer => process.order(Order::Steer { turn, text: "left" }),
                Happening::Answer(is_allowed) => {
                    let Some(request) = driver.ledger.asked().first().cloned() else { continue };
                    let turn = driver.ledger.decide(&request);
                    let ruling = if is_allowed {
                        Ruling::Allow { text: None }
                    } else {
                        Ruling::Deny { why: "no".to_owned() }
                    };
                    let request = request.as_str();
                    process.order(Order::Answer { turn, request, ruling: &ruling })
                }
                Happening::Ring => {
                    let timer = driver.ledger.take_timer(usize::try_from(second).unwrap());
                    let Some(timer) = timer else { continue };
                    process.step(Input::Timer(timer))
                }
                Happening::Dialog(method, id) => {
                    let line = json!({
                        "type": "extension_ui_request", "id": format!("{method}{id}"), "method": method,
                        "title": "?", "options": ["Yes", "No"], "timeout": u64::from(id) * 1000,
                    });
                    if !UNANSWERED.contains(&method) {
                        driver.ledger.owe(format!("{method}{id}"));
                    }
                    process.say(&line)
                }
                Happening::Prompt => continue,
            };
            driver.saw(&actions);
        }
        let gone = Exit { code, signal: code.is_none().then_some(9), stderr: String::new() };
        driver.saw(&process.exit(&gone));
        driver.ledger.check_all_ended();
    }
}
