//! What holds for every request and every output.

use proptest::{collection::vec, option, prelude::*};
use serde_json::{Value, json};

use super::*;
use crate::{
    agent::Stdin,
    request::{Format, Permissions, PromptCommands, Thinking},
};

const CASES: u32 = 256;

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        Just("--session".to_owned()),
        Just("--continue".to_owned()),
        "[a-z /@\n-]{1,20}",
    ]
}

prop_compose! {
    fn any_options()(
        model in option::of("[a-z0-9.-]{1,8}(/[a-z0-9.:/-]{1,8})?"),
        system_prompt in option::of(any_text()),
        tools in option::of(vec("[A-Za-z]{1,8}|Read|Bash", 0..3)),
        thinking in option::of(prop_oneof![Just(Thinking::Off), Just(Thinking::High)]),
        format in prop_oneof![Just(Format::Json), Just(Format::StreamJson), Just(Format::Text)],
        permissions in prop_oneof![Just(Permissions::Bypass), Just(Permissions::ReadOnly)],
        has_commands in any::<bool>(),
    ) -> Options {
        let mut options = Options::new("/w");
        options.model = model;
        options.system_prompt = system_prompt;
        options.allowed_tools = tools;
        options.thinking = thinking;
        options.format = format;
        options.permissions = permissions;
        if has_commands {
            options.prompt_commands = PromptCommands::On;
        }
        options
    }
}

fn any_open() -> impl Strategy<Value = Open> {
    option::of("[a-z0-9]([a-z0-9._-]{0,20}[a-z0-9])?").prop_map(|id| match id {
        Some(id) => resume(&id),
        None => Open::New,
    })
}

/// The arguments that are flags: values and the prompt left out.
fn words<'a>(args: &[&'a str], prompt: Option<&str>) -> Vec<&'a str> {
    let with_values = [
        "--mode",
        "--provider",
        "--model",
        "--session",
        "--thinking",
        "--append-system-prompt",
        "--tools",
    ];
    let mut words = Vec::new();
    let mut at = 0;
    let end = args.len() - usize::from(prompt.is_some());
    while at < end {
        words.push(args[at]);
        at += if with_values.contains(&args[at]) { 2 } else { 1 };
    }
    words
}

/// Names of fields that the reader knows.
const NAMES: &[&str] = &["type", "text", "content", "usage"];

fn any_line() -> impl Strategy<Value = Vec<u8>> {
    let kinds = prop::sample::select(vec![
        "session",
        "agent_start",
        "turn_start",
        "message_start",
        "message_update",
        "message_end",
        "tool_execution_start",
        "tool_execution_update",
        "tool_execution_end",
        "turn_end",
        "agent_end",
        "agent_settled",
        "auto_retry_start",
        "auto_retry_end",
        "compaction_start",
        "compaction_end",
        "entry_appended",
        "queue_update",
        "result",
        "news_from_the_future",
    ]);
    let updates = prop::sample::select(vec![
        "text_start",
        "text_delta",
        "text_end",
        "thinking_delta",
        "thinking_end",
        "toolcall_end",
        "news",
    ]);
    let stops = prop::sample::select(vec!["stop", "toolUse", "error", "length", "aborted", "news"]);
    let typed = (kinds, updates, stops, any_value(NAMES), any_value(NAMES), any_value(NAMES))
        .prop_map(|(kind, update, stop, first, second, third)| {
            let line = json!({
                "type": kind,
                "id": first,
                "session_id": first,
                "result": second,
                "toolCallId": first, "toolName": second, "args": third,
                "isError": second, "willRetry": third, "aborted": first,
                "attempt": second, "delayMs": third, "errorMessage": first,
                "assistantMessageEvent": {
                    "type": update, "contentIndex": first, "delta": second, "content": third,
                },
                "message": {
                    "role": "assistant", "content": first, "stopReason": stop, "usage": second,
                    "model": third, "errorMessage": first, "rawStopReason": second,
                },
            });
            line.to_string().into_bytes()
        });
    prop_oneof![
        4 => typed,
        1 => any_value(NAMES).prop_map(|value| value.to_string().into_bytes()),
        1 => vec(any::<u8>(), 0..200),
    ]
}

fn any_exit() -> impl Strategy<Value = Exit> {
    (option::of(0i32..3), option::of(1i32..32), any::<String>())
        .prop_map(|(code, signal, stderr)| Exit { code, signal, stderr })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    // Property 5: session flags exactly when a session id is given
    #[test]
    fn session_and_continue_stand_there_exactly_when_there_is_a_session(
        options in any_options(), open in any_open(), prompt in any_text(),
    ) {
        let line = command_line(&options, &open, &prompt);
        let args = argv(&line);
        // A word goes to standard input.
        let without = command_line(&options, &open, "x");
        let is_argument = args.len() > argv(&without).len();
        let flags = words(&args, is_argument.then_some(&prompt));
        prop_assert_eq!(flags.contains(&"--session"), open.memo().is_some());
        prop_assert_eq!(flags.contains(&"--continue"), open.memo().is_some());
        if let Some(memo) = open.memo() {
            let at = args.iter().position(|arg| *arg == "--session").unwrap();
            prop_assert_eq!(&args[at..at + 3], ["--session", memo.id.as_str(), "--continue"]);
        }
    }

    #[test]
    fn a_prompt_arrives_whole_but_for_white_space_at_its_start(
        options in any_options(), open in any_open(), prompt in any_text(),
    ) {
        let line = command_line(&options, &open, &prompt);
        let empty = command_line(&options, &open, "x");
        let argument = argv(&line).get(argv(&empty).len()).copied().unwrap_or_default().to_owned();
        let stdin = match &line.stdin {
            Stdin::Null | Stdin::Open => String::new(),
            Stdin::Bytes(bytes) => String::from_utf8(bytes.clone()).unwrap(),
        };
        let sent = format!("{stdin}{argument}");
        if prompt.trim().is_empty() {
            return Ok(());
        }
        prop_assert!(sent == prompt || sent == format!(" {prompt}"), "{:?}", line);
        // What is an argument can be taken for nothing but a message.
        prop_assert!(!argument.starts_with(['-', '@', '/']), "{:?}", line);
    }

    // Property 6: the parser extracts text and session id from every shape
    #[test]
    fn text_and_session_are_read_from_every_shape(
        text in any::<String>(), before in any::<String>(), id in "[a-z0-9-]{1,36}",
        banner in "[a-zA-Z !]{0,20}", is_older in any::<bool>(), is_settled in any::<bool>(),
    ) {
        let mut lines = if is_older {
            vec![json!({"type": "result", "result": text, "session_id": id})]
        } else {
            let message = |text: &str, stop: &str| json!({
                "type": "message_end",
                "message": {
                    "role": "assistant", "stopReason": stop,
                    "content": [{"type": "thinking", "thinking": "t"}, {"type": "text", "text": text}],
                },
            });
            vec![
                json!({"type": "session", "version": 3, "id": id}),
                json!({"type": "something_new", "field": 1}),
                message(&before, "toolUse"),
                json!({"type": "message_end", "message": {"role": "toolResult", "content": []}}),
                message(&text, "stop"),
            ]
        };
        if is_settled && !is_older {
            lines.push(json!({"type": "agent_settled"}));
        }
        let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
        let stdout = format!("{banner}\n\n{}\n", lines.join("\n"));
        let actions = play_new(&stdout, exit(0, ""));
        prop_assert_eq!(opened(&actions), Some(id.as_str()));
        prop_assert_eq!(end_of(&actions).text.as_ref(), Some(&text));
        prop_assert!(end_of(&actions).failure.is_none());
    }

    #[test]
    fn no_output_panics_and_each_turn_ends_once(
        lines in any_lines(any_line(), 12),
        exit in any_exit(), open in any_open(), mut options in any_options(),
        max_turns in option::of(0u32..3),
    ) {
        options.max_turns = max_turns;
        let out = play_any(&SPEC, &options, &open, &lines, &exit);
        prop_assert_eq!(play::n_ends(&out), 1);
        prop_assert!(sessions(&out).len() <= 1);
    }

    #[test]
    fn texts_of_a_block_put_together_are_the_block(
        pieces in vec(".{0,6}", 0..6), end in ".{0,6}",
    ) {
        let piece = |text: &String| json!({
            "type": "message_update",
            "assistantMessageEvent": {"type": "text_delta", "contentIndex": 0, "delta": text},
        }).to_string();
        let whole = format!("{}{end}", pieces.concat());
        let mut lines = vec![json!({"type": "message_start", "message": {"role": "assistant"}}).to_string()];
        lines.extend(pieces.iter().map(piece));
        let message = json!({"role": "assistant", "content": [{"type": "text", "text": whole}]});
        lines.push(json!({"type": "message_end", "message": message}).to_string());
        let actions = play_new(&lines.join("\n"), exit(0, ""));
        let told: String = outputs(&actions).iter().map(|(_, text)| *text).collect();
        prop_assert_eq!(&told, &whole);
        prop_assert_eq!(end_of(&actions).text.as_ref(), Some(&whole));
    }
}
