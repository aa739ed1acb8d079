//! What holds for every request and every output.

use proptest::{collection::vec, option, prelude::*};
use serde_json::{Value, json};

use super::*;
use crate::{
    agent::Stdin,
    request::{Format, Permissions, Thinking},
};

const CASES: u32 = 256;

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        Just("--resume".to_owned()),
        Just("resume".to_owned()),
        Just("--json".to_owned()),
        "[a-z /@-]{1,20}",
    ]
}

prop_compose! {
    fn any_options()(
        cwd in "/[a-zA-Z0-9_. é\"-]{1,30}",
        model in option::of("[a-z0-9.-]{1,12}"),
        system_prompt in option::of(any_text()),
        tools in option::of(vec("[A-Za-z]{1,8}", 0..3)),
        max_turns in option::of(1u32..100),
        thinking in option::of(prop_oneof![Just(Thinking::Off), Just(Thinking::High)]),
    ) -> Options {
        let mut options = Options::new(cwd);
        options.model = model;
        options.system_prompt = system_prompt;
        options.allowed_tools = tools;
        options.max_turns = max_turns;
        options.thinking = thinking;
        options
    }
}

fn any_open() -> impl Strategy<Value = Open> {
    option::of(any::<u128>()).prop_map(|id| match id {
        Some(id) => resume(&uuid::Uuid::from_u128(id).to_string()),
        None => Open::New,
    })
}

/// The arguments that are flags or subcommands: values and the prompt left out.
fn words<'a>(args: &[&'a str]) -> Vec<&'a str> {
    let mut words = Vec::new();
    let mut at = 0;
    let end = args.len() - 1;
    while at < end {
        words.push(args[at]);
        let has_value =
            matches!(args[at], "--cd" | "--model" | "-c" | "--sandbox" | "--color" | "resume");
        at += if has_value { 2 } else { 1 };
    }
    words
}

/// Names of fields that the reader knows.
const NAMES: &[&str] = &["type", "text", "message", "items"];

fn any_line() -> impl Strategy<Value = Vec<u8>> {
    let kinds = prop_oneof![
        Just("thread.started"),
        Just("turn.started"),
        Just("item.started"),
        Just("item.updated"),
        Just("item.completed"),
        Just("error"),
        Just("turn.completed"),
        Just("turn.failed"),
        Just("message"),
    ];
    let items = prop_oneof![
        Just("agent_message"),
        Just("reasoning"),
        Just("error"),
        Just("command_execution"),
        Just("file_change"),
        Just("mcp_tool_call"),
        Just("web_search"),
        Just("todo_list"),
        Just("collab_tool_call"),
        Just("news_from_the_future"),
    ];
    let typed = (kinds, items, any_value(NAMES), any_value(NAMES), any_value(NAMES)).prop_map(
        |(kind, item, first, second, third)| {
            let line = json!({
                "type": kind,
                "role": "assistant",
                "content": first,
                "thread_id": first,
                "session_id": second,
                "message": second,
                "usage": third,
                "error": third,
                "item": {
                    "id": first, "type": item, "text": second, "message": third,
                    "command": first, "aggregated_output": second, "exit_code": third,
                    "status": first, "changes": second, "result": third, "error": first,
                    "arguments": second, "items": third, "query": first,
                    "agents_states": second, "server": third, "tool": first,
                },
            });
            line.to_string().into_bytes()
        },
    );
    prop_oneof![
        3 => typed,
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

    // Property 2: Codex's argv always has its flags
    #[test]
    fn the_literal_line_has_its_flags_whatever_is_asked(
        mut options in any_options(), open in any_open(), prompt in any_text(),
    ) {
        options.format = Format::Json;
        options.permissions = Permissions::Bypass;
        let line = command_line(&options, &open, &prompt);
        let args = argv(&line);
        let words = words(&args);
        prop_assert_eq!(words[0], "exec");
        prop_assert!(words.contains(&"--json"));
        prop_assert!(words.contains(&"--dangerously-bypass-approvals-and-sandbox"));
        let cd = args.iter().position(|arg| *arg == "--cd").unwrap();
        prop_assert_eq!(args[cd + 1], options.cwd.to_str().unwrap());
        match &line.stdin {
            Stdin::Null | Stdin::Open => prop_assert_eq!(*args.last().unwrap(), prompt.as_str()),
            Stdin::Bytes(bytes) => {
                prop_assert_eq!(*args.last().unwrap(), "-");
                prop_assert_eq!(bytes.as_slice(), prompt.as_bytes());
            }
        }
    }

    // Property 5: session flags exactly when a session id is given
    #[test]
    fn resume_stands_before_its_id_exactly_when_there_is_a_session(
        mut options in any_options(), open in any_open(), prompt in any_text(),
        format in prop_oneof![Just(Format::Json), Just(Format::StreamJson), Just(Format::Text)],
        permissions in prop_oneof![Just(Permissions::Bypass), Just(Permissions::ReadOnly)],
    ) {
        options.format = format;
        options.permissions = permissions;
        let line = command_line(&options, &open, &prompt);
        let args = argv(&line);
        let has_resume = words(&args).contains(&"resume");
        prop_assert_eq!(has_resume, open.memo().is_some());
        if let Some(memo) = open.memo() {
            let tail = &args[args.len() - 3..];
            prop_assert_eq!(&tail[..2], &["resume", memo.id.as_str()][..]);
        }
    }

    // Property 6: the parser extracts text and session id from every shape
    #[test]
    fn text_and_session_are_read_from_every_shape(
        text in any::<String>(), before in any::<String>(), id in any::<u128>(),
        banner in "[a-zA-Z !]{0,20}", is_older in any::<bool>(),
    ) {
        let id = uuid::Uuid::from_u128(id).to_string();
        let lines = if is_older {
            vec![json!({"type":"message","role":"assistant","content":text,"session_id":id})]
        } else {
            let item = |text: &str, n: u32| json!({
                "type":"item.completed",
                "item":{"id":format!("item_{n}"),"type":"agent_message","text":text},
            });
            vec![
                json!({"type":"thread.started","thread_id":id}),
                json!({"type":"something.new","field":1}),
                item(&before, 0),
                item(&text, 1),
                json!({"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":2}}),
            ]
        };
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
        exit in any_exit(), open in any_open(), is_text in any::<bool>(),
    ) {
        let mut options = Options::new("/workspace");
        if is_text {
            options.format = Format::Text;
        }
        let out = play_any(&SPEC, &options, &open, &lines, &exit);
        prop_assert_eq!(play::n_ends(&out), 1);
        prop_assert!(sessions(&out).len() <= 1);
    }

    #[test]
    fn blocks_of_text_never_share_a_name(ids in vec(prop_oneof![Just(""), Just("a"), Just("a-2")], 0..6)) {
        let lines: Vec<String> = ids
            .iter()
            .map(|id| json!({
                "type":"item.completed","item":{"id":id,"type":"agent_message","text":"t"},
            }).to_string())
            .collect();
        let actions = play_new(&lines.join("\n"), exit(0, ""));
        let blocks = outputs(&actions).into_iter().map(|(block, _)| block);
        let distinct: std::collections::BTreeSet<_> = blocks.collect();
        prop_assert_eq!(distinct.len(), ids.len());
    }
}
