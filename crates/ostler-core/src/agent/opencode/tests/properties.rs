//! What holds for every request and every output.

use proptest::{collection::vec, option, prelude::*};
use serde_json::{Value, json};

use super::*;
use crate::request::{ProjectSettings, Thinking};

const CASES: u32 = 256;

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        Just("--session".to_owned()),
        Just("--continue".to_owned()),
        Just("--model".to_owned()),
        Just("run".to_owned()),
        "[a-z/@-]{1,20}",
        "[a-z /@-]{1,20}",
    ]
}

prop_compose! {
    fn any_options()(
        cwd in "/[a-zA-Z0-9_. é\"-]{1,30}",
        model in option::of("[a-z0-9.-]{1,12}/[a-z0-9.-]{1,12}"),
        system_prompt in option::of(any_text()),
        tools in option::of(vec("[A-Za-z]{1,8}", 0..3)),
        max_turns in option::of(1u32..100),
        thinking in option::of(prop_oneof![Just(Thinking::Off), Just(Thinking::High)]),
        format in prop_oneof![Just(Format::Json), Just(Format::StreamJson)],
        permissions in prop_oneof![
            Just(Permissions::Bypass), Just(Permissions::Ask), Just(Permissions::ReadOnly)
        ],
        is_trusted in any::<bool>(),
        is_isolated in any::<bool>(),
        is_named in any::<bool>(),
    ) -> Options {
        let mut options = Options::new(cwd);
        options.model = model;
        options.system_prompt = system_prompt;
        options.allowed_tools = tools;
        options.max_turns = max_turns;
        options.thinking = thinking;
        options.format = format;
        options.permissions = permissions;
        if is_trusted {
            options.project_settings = ProjectSettings::Trusted;
        }
        options.home = is_isolated.then(|| "/iso".into());
        if is_named {
            options.env = vec![("OPENCODE_CONFIG_CONTENT".to_owned(), Some("{}".to_owned()))];
        }
        options
    }
}

fn any_open() -> impl Strategy<Value = Open> {
    option::of("[a-zA-Z0-9_]{1,30}").prop_map(|id| match id {
        Some(id) => resume(&id),
        None => Open::New,
    })
}

/// The arguments that are flags or subcommands: values and the prompt left out.
fn words<'a>(args: &[&'a str], prompt_is_argument: bool) -> Vec<&'a str> {
    const WITH_VALUE: [&str; 7] =
        ["--format", "--session", "--model", "--dir", "--agent", "--title", "--variant"];
    let mut words = vec![args[0]];
    let mut at = if prompt_is_argument { 2 } else { 1 };
    while at < args.len() {
        words.push(args[at]);
        at += if WITH_VALUE.contains(&args[at]) { 2 } else { 1 };
    }
    words
}

fn value_of<'a>(args: &[&'a str], flag: &str) -> Option<&'a str> {
    args.windows(2).skip(1).find(|pair| pair[0] == flag).map(|pair| pair[1])
}

/// JSON of any shape, and lines of the known types with fields of any type.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        prop::sample::select(vec!["m1", "m2", "stop", "tool-calls", "unknown", "error", "invalid"])
            .prop_map(Value::from),
    ];
    let key = prop::sample::select(vec![
        "id",
        "messageID",
        "callID",
        "text",
        "type",
        "tool",
        "state",
        "status",
        "input",
        "output",
        "error",
        "metadata",
        "exit",
        "reason",
        "tokens",
        "cache",
        "read",
        "cost",
        "name",
        "data",
        "message",
        "statusCode",
        "time",
        "compacted",
        "synthetic",
        "title",
    ]);
    leaf.prop_recursive(4, 24, 5, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::hash_map(key.clone(), inner, 0..6).prop_map(|map| {
                Value::Object(map.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
            }),
        ]
    })
}

fn any_line() -> impl Strategy<Value = Vec<u8>> {
    let kinds = prop::sample::select(vec![
        "step_start",
        "text",
        "reasoning",
        "tool_use",
        "step_finish",
        "error",
        "result",
        "new",
    ]);
    let typed =
        (kinds, any_value(), option::of("[a-z]{0,3}")).prop_map(|(kind, value, session)| {
            let line =
                json!({"type":kind,"sessionID":session,"part":value,"error":value,"text":value});
            line.to_string().into_bytes()
        });
    let notices = prop::sample::select(vec![
        super::stderr::FAILED,
        "! permission requested: bash (*); auto-rejecting",
        "\u{1b}[91m\u{1b}[1mError: \u{1b}[0mSession not found",
        "> build · stub-1",
        "timestamp=x level=ERROR message=\"unfinished",
    ]);
    prop_oneof![
        4 => typed,
        1 => any_value().prop_map(|value| value.to_string().into_bytes()),
        1 => any::<Vec<u8>>(),
        1 => notices.prop_map(|line| line.as_bytes().to_vec()),
    ]
}

fn any_exit() -> impl Strategy<Value = Exit> {
    (option::of(0i32..4), any::<String>()).prop_map(|(code, stderr)| Exit {
        code,
        signal: code.is_none().then_some(15),
        stderr,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    // Property 4: OpenCode's argv has run, --format json, and --model when one is set
    #[test]
    fn the_command_line_always_has_what_it_needs(
        options in any_options(), open in any_open(), prompt in any_text(),
    ) {
        let line = command_line(&options, &open, &prompt);
        let args = argv(&line);
        let is_argument = line.stdin == Stdin::Null;
        prop_assert_eq!(args[0], "run");
        let words = words(&args, is_argument);
        prop_assert!(words.contains(&"--format"));
        prop_assert_eq!(value_of(&args, "--format"), Some("json"));
        prop_assert_eq!(words.contains(&"--model"), options.model.is_some());
        if let Some(model) = &options.model {
            prop_assert!(args.windows(2).any(|pair| pair == ["--model", model.as_str()]));
        }
        if is_argument {
            prop_assert_eq!(args[1], prompt.as_str());
            prop_assert_eq!(options.format, Format::Json);
            prop_assert!(!prompt.chars().any(char::is_whitespace));
        } else {
            prop_assert_eq!(stdin(&line), prompt.as_str());
        }
    }

    // Property 5: session flags exactly when a session id is given
    #[test]
    fn the_session_stands_after_its_flag_exactly_when_there_is_one(
        options in any_options(), open in any_open(), prompt in any_text(),
    ) {
        let line = command_line(&options, &open, &prompt);
        let args = argv(&line);
        let words = words(&args, line.stdin == Stdin::Null);
        let has = |flag: &str| words.iter().filter(|word| **word == flag).count();
        let expected = usize::from(open.memo().is_some());
        prop_assert_eq!(has("--session"), expected);
        prop_assert_eq!(has("--continue"), expected);
        prop_assert_eq!(has("--dir"), expected);
        if let Some(memo) = open.memo() {
            let session = ["--session", memo.id.as_str(), "--continue"];
            prop_assert!(args.windows(3).any(|three| three == session));
        }
    }

    #[test]
    fn whoever_may_not_do_everything_runs_as_our_own_agent(
        options in any_options(), open in any_open(),
    ) {
        let line = command_line(&options, &open, "hi");
        let is_free =
            options.permissions == Permissions::Bypass && options.allowed_tools.is_none();
        prop_assert_eq!(argv(&line).contains(&"--agent"), !is_free);
        let settings = variable(&line, "OPENCODE_CONFIG_CONTENT")
            .or_else(|| file(&line, "/run/opencode.json"))
            .unwrap_or_default();
        prop_assert_eq!(settings.contains(r#""ostler":"#), !is_free);
        // What the operator names is never touched.
        for (name, _) in &options.env {
            prop_assert_eq!(variable(&line, name), None);
        }
    }

    // Property 6: the parser extracts text and session id from every shape
    #[test]
    fn text_and_session_are_read_from_every_shape(
        text in any::<String>(), before in any::<String>(), id in "[a-zA-Z0-9_]{1,30}",
        banner in "[a-zA-Z !]{0,20}", is_older in any::<bool>(),
    ) {
        let line = |kind: &str, part: Value| json!({
            "type":kind,"timestamp":1,"sessionID":id,"part":part,
        });
        let lines = if is_older {
            vec![json!({"type":"result","text":text,"session_id":id})]
        } else {
            vec![
                line("step_start", json!({"messageID":"m1"})),
                line("text", json!({"messageID":"m1","id":"p1","text":before})),
                line("something_new", json!({"field":1})),
                line("step_finish", json!({"messageID":"m1","reason":"tool-calls"})),
                line("step_start", json!({"messageID":"m2"})),
                line("text", json!({"messageID":"m2","id":"p2","text":text})),
                line("step_finish", json!({"messageID":"m2","reason":"stop"})),
            ]
        };
        let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
        let stdout = format!("{banner}\n\n{}\n", lines.join("\n"));
        let actions = play_lines(&stdout, exit(0, ""));
        prop_assert_eq!(sessions(&actions), [id.as_str()]);
        prop_assert_eq!(end_of(&actions).text.as_ref(), Some(&text));
        prop_assert!(end_of(&actions).failure.is_none());
    }

    #[test]
    fn no_output_panics_and_each_turn_ends_once(
        lines in any_lines(any_line(), 16),
        exit in any_exit(), open in any_open(), is_text in any::<bool>(),
        max_turns in option::of(1u32..4),
    ) {
        let mut options = Options::new("/workspace");
        options.max_turns = max_turns;
        if is_text {
            options.format = Format::Text;
        }
        let out = play_any(&SPEC, &options, &open, &lines, &exit);
        prop_assert_eq!(play::n_ends(&out), 1);
        prop_assert!(sessions(&out).len() <= 1);
    }

    #[test]
    fn texts_and_calls_never_share_a_name(
        ids in vec((prop_oneof![Just(""), Just("a"), Just("a-2")], any::<bool>()), 0..8),
    ) {
        let line = |(n, (id, is_tool)): (usize, &(&str, bool))| {
            let line = if *is_tool {
                let state = json!({"status":"completed"});
                json!({"type":"tool_use","part":{"id":format!("t{n}"),"callID":id,"state":state}})
            } else {
                json!({"type":"text","part":{"id":id,"messageID":"m","text":n.to_string()}})
            };
            line.to_string()
        };
        let lines: Vec<String> = ids.iter().enumerate().map(line).collect();
        let actions = play_lines(&lines.join("\n"), exit(0, ""));
        let names: Vec<&String> = events(&actions)
            .into_iter()
            .filter_map(|event| {
                let (EventBody::Output { block: name, .. } | EventBody::ToolUse { id: name, .. }) =
                    event
                else {
                    return None;
                };
                Some(name)
            })
            .collect();
        let distinct: std::collections::BTreeSet<_> = names.iter().collect();
        prop_assert_eq!(distinct.len(), ids.len());
    }
}
