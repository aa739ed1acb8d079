//! What holds for any request and for any output.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{agent::play, request::Permissions};

fn any_options() -> impl Strategy<Value = Options> {
    (
        prop::option::of("[a-z0-9.-]{1,12}"),
        prop::option::of(any::<String>()),
        prop::option::of(prop::collection::vec("[A-Z][a-z]{1,8}(\\([a-z:*]{1,5}\\))?", 0..4)),
        prop::option::of(any::<u32>()),
        prop::sample::select(vec![Permissions::Bypass, Permissions::Ask, Permissions::ReadOnly]),
        prop::sample::select(vec![Format::StreamJson, Format::Json, Format::Text]),
    )
        .prop_map(|(model, system_prompt, allowed_tools, max_turns, permissions, format)| {
            Options {
                model,
                system_prompt,
                allowed_tools,
                max_turns,
                permissions,
                ..with_format(format)
            }
        })
}

fn any_open() -> impl Strategy<Value = Open> {
    prop::option::of("[a-zA-Z0-9_é-]{1,36}").prop_map(|id| id.map_or(Open::New, |id| resume(&id)))
}

/// The arguments that are flags, found by walking over the values of those
/// that take one, so that a prompt or a value is never mistaken for a flag.
fn flags(line: &CommandLine) -> Vec<&str> {
    let args = argv(line);
    let mut flags = Vec::new();
    let mut at = 0;
    while let Some(arg) = args.get(at) {
        let takes_value = !matches!(
            *arg,
            "--verbose"
                | "--include-partial-messages"
                | "--dangerously-skip-permissions"
                | "--strict-mcp-config"
        );
        let has_prompt = *arg != "-p" || args.get(at + 1) != Some(&"--output-format");
        let streams = *arg == "-p" && args.get(at + 1) == Some(&"--input-format");
        flags.push(*arg);
        at += if takes_value && has_prompt && !streams { 2 } else { 1 };
    }
    flags
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    // Property 1: Claude's command line always has the flags of the literal line
    #[test]
    fn the_literal_line_always_has_its_flags(
        mut options in any_options(), open in any_open(), prompt in any::<String>()
    ) {
        options.format = Format::Json;
        options.permissions = Permissions::Bypass;
        let line = command_line(&options, &open, &prompt);
        let flags = flags(&line);
        for flag in [
            "-p",
            "--output-format",
            "--dangerously-skip-permissions",
            "--append-system-prompt-file",
            "--max-turns",
        ] {
            prop_assert_eq!(flags.iter().filter(|known| **known == flag).count(), 1, "{}", flag);
        }
        let args = argv(&line);
        let format = args.iter().position(|arg| *arg == "--output-format").unwrap();
        prop_assert!(args[format + 1] == "json" || prompt == "--output-format");
        let n_tools = options.allowed_tools.as_ref().map_or(0, Vec::len);
        let n_flags = flags.iter().filter(|flag| **flag == "--allowedTools").count();
        prop_assert_eq!(n_flags, n_tools);
        prop_assert_eq!(flags.contains(&"--tools"), options.allowed_tools.is_some());
        let system = options.system_prompt.unwrap_or_default();
        prop_assert_eq!(&line.files[0].1, system.as_bytes());
    }

    // Property 5: session flags exactly when a session id is given
    #[test]
    fn the_session_flag_is_there_exactly_when_there_is_a_session(
        options in any_options(), open in any_open(), prompt in any::<String>()
    ) {
        let line = command_line(&options, &open, &prompt);
        let flags = flags(&line);
        let resumes: Vec<_> = flags.iter().filter(|flag| **flag == "--resume").collect();
        prop_assert_eq!(resumes.len(), usize::from(open.memo().is_some()));
        prop_assert!(!flags.contains(&"--session-id") && !flags.contains(&"--continue"));
        if let Some(memo) = open.memo() {
            let args = argv(&line);
            prop_assert_eq!(&args[args.len() - 2..], ["--resume", memo.id.as_str()]);
        }
    }

    #[test]
    fn a_prompt_arrives_whole_and_is_never_an_option(
        options in any_options(), open in any_open(), prompt in "(?s)(-|/|@)?.{1,40}"
    ) {
        let line = command_line(&options, &open, &prompt);
        let arrived = match (&line.stdin, options.format) {
            (Stdin::Null | Stdin::Open, _) => argv(&line)[1].to_owned(),
            (Stdin::Bytes(_), Format::StreamJson) => {
                let message: Value = serde_json::from_str(stdin(&line)).unwrap();
                message["message"]["content"].as_str().unwrap().to_owned()
            }
            (Stdin::Bytes(_), Format::Json | Format::Text) => stdin(&line).to_owned(),
        };
        // The line break that keeps a slash from being a command is ours.
        let arrived = arrived.strip_prefix('\n').filter(|_| prompt.starts_with('/')).unwrap_or(&arrived);
        prop_assert_eq!(arrived, &prompt);
        if line.stdin == Stdin::Null {
            prop_assert!(!prompt.starts_with(['-', '/', '@']));
        }
    }

    // Property 6: the parser extracts text and session id from every shape
    #[test]
    fn text_and_session_are_found_in_every_shape(
        text in any::<String>(), id in "[a-z0-9-]{1,36}", keys in 0..2usize
    ) {
        let result = json!({"type": "result", "subtype": "success", "is_error": false,
            "result": text, "session_id": id, "num_turns": 1, "total_cost_usd": 0.5});
        let init = json!({"type": "system", "subtype": "init", "session_id": id});
        let message = json!({"type": "assistant", "session_id": id, "message":
            {"id": "m", "model": "x", "content": [{"type": "text", "text": text}]}});
        let array = json!([init, message, result]);
        let content = ["content", "text"][keys];
        let flat_init = json!({"type": "init", "session_id": id});
        let flat_message = json!({"type": "message", "role": "assistant", content: text, "session_id": id});
        let flat_result = json!({"type": "result", "session_id": id});
        let flat_text = json!({"type": "result", "session_id": id, content: text});
        let tool = json!({"type": "tool_use", "tool": "Bash", "input": {"command": "ls"}});
        let tool_end = json!({"type": "tool_result", "output": "a.txt"});
        for (shape, output) in [
            ("array", array.to_string()),
            ("pretty array", serde_json::to_string_pretty(&array).unwrap()),
            ("object", result.to_string()),
            ("pretty object", serde_json::to_string_pretty(&result).unwrap()),
            ("lines", format!("{init}\n{message}\n{result}")),
            ("banner", format!("Welcome!\n\n[note] hi\n{result}\nbye")),
            ("flat lines", format!("{flat_init}\n{tool}\n{tool_end}\n{flat_message}\n{flat_result}")),
            ("flat result", format!("{flat_init}\n{flat_text}")),
            ("flat message alone", flat_message.to_string()),
        ] {
            let actions = read_text(&output);
            prop_assert_eq!(failure_kind(&actions), None, "{}", shape);
            prop_assert_eq!(end_of(&actions).text.as_deref(), Some(text.as_str()), "{}", shape);
            prop_assert_eq!(sessions(&actions), [id.as_str()], "{}", shape);
        }
    }

    // Property 8: a non-zero exit gives the fixed text
    #[test]
    fn a_non_zero_exit_is_a_failure_with_the_fixed_text(
        code in 1..=255i32, stderr in any::<String>(), format in 0..3usize
    ) {
        let options = with_format([Format::StreamJson, Format::Json, Format::Text][format]);
        let actions = read(&options, &Open::New, [], &exit(code, &stderr));
        let failure = end_of(&actions).failure.clone().unwrap().with_exit(&SPEC.title, code, &stderr);
        let start: String = stderr.chars().take(500).collect();
        let start = if start.is_empty() { "unknown error" } else { &start };
        prop_assert_eq!(failure.response_text(), format!("Claude CLI error (exit {code}): {start}"));
        prop_assert!(!failure.message.is_empty());
    }

    #[test]
    fn no_output_panics_and_every_turn_ends_once(
        lines in prop::collection::vec(any_line(), 0..12), code in -1..3i32, format in 0..2usize
    ) {
        let options = with_format([Format::StreamJson, Format::Text][format]);
        let lines = lines.iter().map(Vec::as_slice);
        let actions = read(&options, &resume("an-id"), lines, &exit(code, ""));
        prop_assert_eq!(play::n_ends(&actions), 1);
    }

    #[test]
    fn every_kind_of_line_may_have_fields_of_any_type(
        kind in prop::sample::select(KINDS), value in any_value(KEYS), key in prop::sample::select(KEYS)
    ) {
        let mut line = json!({
            "type": kind.0,
            "subtype": kind.1,
            "event": {"type": kind.1, key: value},
            "message": {"id": "m", key: value},
        });
        line[key] = value;
        let text = line.to_string();
        let actions = read_text(&format!("{text}\n{text}\nend"));
        prop_assert_eq!(play::n_ends(&actions), 1);
    }

    #[test]
    fn pieces_and_whole_show_the_text_once(pieces in prop::collection::vec(".{0,6}", 0..8)) {
        let mut lines = vec![json!({"type": "stream_event",
            "event": {"type": "message_start", "message": {"id": "m"}}})];
        for piece in &pieces {
            lines.push(json!({"type": "stream_event", "event": {"type": "content_block_delta",
                "index": 0, "delta": {"type": "text_delta", "text": piece}}}));
        }
        let text = pieces.concat();
        lines.push(json!({"type": "assistant",
            "message": {"id": "m", "content": [{"type": "text", "text": text}]}}));
        let output: Vec<_> = lines.iter().map(ToString::to_string).collect();
        prop_assert_eq!(shown(&read_text(&output.join("\n"))), text);
    }
}

const KINDS: &[(&str, &str)] = &[
    ("system", "init"),
    ("system", "api_retry"),
    ("system", "permission_denied"),
    ("system", "informational"),
    ("system", "compact_boundary"),
    ("assistant", ""),
    ("user", ""),
    ("stream_event", "message_start"),
    ("stream_event", "content_block_start"),
    ("stream_event", "content_block_delta"),
    ("stream_event", "message_delta"),
    ("stream_event", "message_stop"),
    ("result", "success"),
    ("result", "error_during_execution"),
    ("rate_limit_event", ""),
    ("conversation_reset", ""),
    ("init", ""),
    ("message", ""),
    ("tool_use", ""),
    ("tool_result", ""),
];

const KEYS: &[&str] = &[
    "abandoned_blocks",
    "api_error_status",
    "content",
    "content_block",
    "delta",
    "error",
    "errors",
    "event",
    "id",
    "index",
    "input",
    "is_error",
    "message",
    "model",
    "modelUsage",
    "model_usage_since_last_result",
    "num_turns",
    "output",
    "parent_tool_use_id",
    "rate_limit_info",
    "result",
    "retry_delay_ms",
    "session_id",
    "stop_reason",
    "text",
    "tool_use_result",
    "total_cost_usd",
    "type",
    "usage",
];

fn any_line() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        any::<Vec<u8>>(),
        any_value(KEYS).prop_map(|value| value.to_string().into_bytes()),
        (prop::sample::select(KINDS), any_value(KEYS)).prop_map(|((kind, subtype), message)| {
            let line = json!({"type": kind, "subtype": subtype, "message": message,
                "event": {"type": subtype, "message": message, "delta": message}});
            line.to_string().into_bytes()
        }),
    ]
}
