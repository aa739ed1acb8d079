//! What holds for every request and every output.

use proptest::{collection::vec, option, prelude::*};
use serde_json::{Value, json};

use super::*;
use crate::{
    agent::gemini::prompt::as_plain_text,
    request::{PromptCommands, Thinking},
};

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        Just("--resume".to_owned()),
        Just("--output-format".to_owned()),
        "[a-z0-9 /@.\\\\-]{1,20}",
    ]
}

prop_compose! {
    fn any_options()(
        model in option::of("[a-z0-9.-]{1,12}"),
        system_prompt in option::of(any_text()),
        allowed_tools in option::of(vec("[a-z_]{1,8}(\\([a-z\" ]{1,5}\\))?", 0..3)),
        max_turns in option::of(1u32..100),
        thinking in option::of(prop_oneof![Just(Thinking::Off), Just(Thinking::High)]),
        commands in prop_oneof![Just(PromptCommands::Off), Just(PromptCommands::On)],
    ) -> Options {
        Options {
            model, system_prompt, allowed_tools, max_turns, thinking,
            prompt_commands: commands, ..options()
        }
    }
}

fn any_open() -> impl Strategy<Value = Open> {
    option::of("[a-zA-Z0-9_é-]{1,36}").prop_map(|id| id.map_or(Open::New, |id| resume(&id)))
}

/// The arguments that are flags, without their values and the prompt.
fn flags(line: &CommandLine) -> Vec<&str> {
    let args = argv(line);
    let mut flags = Vec::new();
    let mut at = usize::from(line.stdin == Stdin::Null);
    while let Some(arg) = args.get(at) {
        flags.push(*arg);
        at += if *arg == "--skip-trust" { 1 } else { 2 };
    }
    flags
}

fn value<'a>(line: &'a CommandLine, flag: &str) -> Option<&'a str> {
    let skipped = usize::from(line.stdin == Stdin::Null);
    let args = argv(line);
    let at = args.iter().skip(skipped).position(|arg| *arg == flag)? + skipped;
    args.get(at + 1).copied()
}

/// Names of fields that the reader knows.
const NAMES: &[&str] = &["type", "message", "models", "code"];

fn any_line() -> impl Strategy<Value = Vec<u8>> {
    let kinds = prop::sample::select(vec![
        "init",
        "message",
        "tool_use",
        "tool_result",
        "error",
        "result",
        "news",
    ]);
    let words = prop::sample::select(vec!["assistant", "user", "success", "error", "warning"]);
    let typed = (kinds, words, any_value(NAMES), any_value(NAMES), any::<bool>()).prop_map(
        |(kind, word, first, second, plain)| {
            let mut line = json!({
                "type": kind, "role": word, "status": word, "severity": word,
                "session_id": first, "model": second, "content": first, "delta": second,
                "tool_id": "t", "tool_name": first, "parameters": second, "output": first,
                "error": second, "message": first, "stats": second, "warnings": first,
            });
            if plain {
                line["content"] = "text".into();
                line["tool_name"] = "tool".into();
                line["message"] = "text".into();
            }
            line.to_string().into_bytes()
        },
    );
    let stderr = prop::sample::select(vec![
        "Attempt 1 failed with status 500. Retrying with backoff... E: x",
        "Attempt 2 failed: why",
        "so. Retrying after 3ms...",
        "so. Max attempts reached",
        "Error when talking to Gemini API Full report available at: /x.json E: y",
        "    at somewhere {",
        "  status: 429,",
        "}",
        "{",
        "  \"error\": { \"message\": \"m\", \"code\": 401 }",
        "[ERROR] {",
    ]);
    prop_oneof![
        4 => typed,
        2 => stderr.prop_map(|line| line.as_bytes().to_vec()),
        1 => any_value(NAMES).prop_map(|value| value.to_string().into_bytes()),
        1 => vec(any::<u8>(), 0..100),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    // Property 3: Gemini's argv has the prompt, `--output-format json` and `--approval-mode yolo`
    #[test]
    fn the_literal_line_has_its_flags_and_its_prompt(
        options in any_options(), open in any_open(), prompt in any_text(),
    ) {
        let options = Options { format: Format::Json, permissions: Permissions::Bypass, ..options };
        let line = command_line(&options, &open, &prompt);
        prop_assert_eq!(value(&line, "--output-format"), Some("json"));
        prop_assert_eq!(value(&line, "--approval-mode"), Some("yolo"));
        prop_assert_eq!(value(&line, "--model"), options.model.as_deref());
        let expected = match options.prompt_commands {
            PromptCommands::On => prompt,
            PromptCommands::Off => as_plain_text(&prompt).trim_start_matches(' ').to_owned(),
        };
        let sent = stdin(&line).unwrap_or_else(|| argv(&line)[0]);
        prop_assert!(sent.contains(&expected), "{:?} in {:?}", expected, sent);
    }

    // Property 5: session flags exactly when a session id is given
    #[test]
    fn resume_stands_before_its_id_exactly_when_there_is_a_session(
        options in any_options(), open in any_open(), prompt in any_text(),
        format in prop::sample::select(vec![Format::Json, Format::StreamJson, Format::Text]),
        permissions in prop::sample::select(vec![Permissions::Bypass, Permissions::ReadOnly]),
    ) {
        let options = Options { format, permissions, ..options };
        let line = command_line(&options, &open, &prompt);
        let n_resumed = flags(&line).iter().filter(|flag| **flag == "--resume").count();
        prop_assert_eq!(n_resumed, usize::from(open.memo().is_some()));
        prop_assert!(!flags(&line).contains(&"--session-id"));
        if let Some(memo) = open.memo() {
            prop_assert_eq!(value(&line, "--resume"), Some(memo.id.as_str()));
        }
    }

    // Property 6: the parser extracts text and session id from every shape
    #[test]
    fn text_and_session_are_read_from_every_shape(
        text in any::<String>(), before in ".{1,9}", id in "[a-z0-9-]{1,20}",
        banner in "[a-zA-Z !]{0,20}", shape in 0..4_u8,
    ) {
        let object = json!({"session_id": id, "response": text, "stats": {}});
        let piece = |text: &str| {
            json!({"type":"message","role":"assistant","content":text,"delta":true})
        };
        let stdout = match shape {
            0 => object.to_string(),
            1 => serde_json::to_string_pretty(&object).unwrap(),
            2 => json!({"response": text, "session_id": id}).to_string(),
            _ => {
                let half = text.char_indices().nth(text.chars().count() / 2).map_or(0, |(at, _)| at);
                let lines = [
                    json!({"type":"init","session_id":id,"model":"m"}),
                    json!({"type":"news","field":1}),
                    piece(&before),
                    json!({"type":"tool_use","tool_name":"glob","tool_id":"t","parameters":{}}),
                    json!({"type":"tool_result","tool_id":"t","status":"success"}),
                    piece(&text[..half]),
                    piece(&text[half..]),
                    json!({"type":"result","status":"success","stats":{}}),
                ];
                lines.iter().map(Value::to_string).collect::<Vec<_>>().join("\n")
            }
        };
        let actions = play_new(&format!("{banner}\n\n{stdout}\n"), exit(0, ""));
        prop_assert_eq!(opened(&actions), Some(id.as_str()));
        let expected = if shape == 3 && text.is_empty() { &before } else { &text };
        prop_assert_eq!(end_of(&actions).text.as_ref(), Some(expected));
        prop_assert!(end_of(&actions).failure.is_none());
    }

    // Property 6: plain text is the answer, exact but for the last line end
    #[test]
    fn plain_text_is_read_as_it_is(lines in vec("[^\\r\\n]{0,20}", 1..5)) {
        let options = Options { format: Format::Text, ..options() };
        let text = lines.join("\n");
        let actions = play(&options, &format!("{text}\n"), exit(0, ""));
        prop_assert_eq!(end_of(&actions).text.as_ref(), Some(&text));
        prop_assert_eq!(shown(&actions), text);
    }

    // Property 8: a non-zero exit gives the fixed text
    #[test]
    fn a_non_zero_exit_is_a_failure_with_the_fixed_text(
        code in 1i32..256, stderr in any::<String>(), answered in any::<bool>(),
    ) {
        let stdout = if answered { r#"{"response":"x","session_id":"s"}"# } else { "" };
        let actions = play_new(stdout, exit(code, &stderr));
        let failure = end_of(&actions).failure.clone();
        prop_assert_eq!(failure.is_none(), answered);
        let failure = failure.unwrap_or_else(crate::failure::Failure::unreadable);
        let shown: String = stderr.chars().take(500).collect();
        let shown = if stderr.is_empty() { "unknown error".to_owned() } else { shown };
        let failure = failure.with_exit(&SPEC.title, code, &stderr);
        prop_assert_eq!(
            failure.response_text(),
            format!("Gemini CLI error (exit {code}): {shown}")
        );
    }

    #[test]
    fn no_output_panics_and_each_turn_ends_once(
        lines in any_lines(any_line(), 14),
        code in option::of(0i32..256), stderr in any::<String>(), open in any_open(),
        format in prop::sample::select(vec![Format::StreamJson, Format::Text]),
        max_turns in option::of(0u32..3),
    ) {
        let options = Options { format, max_turns, ..options() };
        let signal = code.is_none().then_some(9);
        let out = play_any(&SPEC, &options, &open, &lines, &Exit { code, signal, stderr });
        prop_assert_eq!(play::n_ends(&out), 1);
        prop_assert!(sessions(&out).len() <= 1);
    }

    /// What the CLI would take for a reference, by the rule of its own parser.
    #[test]
    fn no_reference_and_no_command_is_left_in_a_plain_text(text in "[@a./ \\\\,\\n\"é]{0,12}") {
        let plain = as_plain_text(&text);
        prop_assert!(!plain.starts_with('/'));
        let chars: Vec<char> = plain.chars().collect();
        for (at, c) in chars.iter().enumerate() {
            let escaped = at > 0 && chars[at - 1] == '\\';
            let ends = matches!(chars.get(at + 1), None | Some(' ' | ',' | '\n'));
            let dot = chars.get(at + 1) == Some(&'.')
                && matches!(chars.get(at + 2), None | Some(' ' | '\n'));
            prop_assert!(*c != '@' || escaped || ends || dot, "{:?}", plain);
        }
        let unescaped = plain.strip_prefix(' ').filter(|_| text.starts_with('/')).unwrap_or(&plain);
        prop_assert_eq!(unescaped.replace("\\@", "@"), text.replace("\\@", "@"));
    }
}
