//! Requests and the command lines that they become.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::*;
use crate::request::{Permissions, ProjectSettings, PromptCommands, Template, Thinking};

const ISOLATED: [&str; 3] = ["--setting-sources", "user", "--strict-mcp-config"];

fn env<'a>(line: &'a CommandLine, name: &str) -> Option<&'a str> {
    let (_, value) = line.env.iter().find(|(known, _)| known == name)?;
    value.to_str()
}

fn value_of<'a>(line: &'a CommandLine, flag: &str) -> Option<&'a str> {
    let args = argv(line);
    let at = args.iter().position(|arg| *arg == flag)?;
    args.get(at + 1).copied()
}

fn full(format: Format) -> Options {
    Options {
        model: Some("claude-sonnet-5-5".into()),
        system_prompt: Some("Be brief.".into()),
        allowed_tools: Some(vec!["Bash".into(), "Read".into()]),
        max_turns: Some(7),
        permissions: Permissions::Bypass,
        ..with_format(format)
    }
}

#[test]
fn the_usual_line_streams_both_ways_and_ignores_the_repository() {
    let line = command_line(&options(), &Open::New, "hello");
    let stream = "-p --input-format stream-json --output-format stream-json --verbose \
                  --include-partial-messages --tools Read,Grep,Glob";
    let expected: Vec<&str> = stream.split_whitespace().chain(ISOLATED).collect();
    assert_eq!(argv(&line), expected);
    let message: Value = serde_json::from_str(stdin(&line)).unwrap();
    assert_eq!(
        message,
        json!({
            "type": "user",
            "message": {"role": "user", "content": "hello"},
            "parent_tool_use_id": null,
        })
    );
    assert_eq!(stdin(&line).matches('\n').count(), 1);
    assert_eq!((line.files, line.warnings), (vec![], vec![]));
}

#[test]
fn every_option_has_its_flag() {
    let options = Options {
        thinking: Some(Thinking::High),
        extra_args: vec!["--add-dir".into(), "/data".into()],
        ..full(Format::StreamJson)
    };
    let line = command_line(&options, &resume("an-id"), "hello");
    let tail = "--dangerously-skip-permissions \
                --append-system-prompt-file /run/turn/system-prompt.md --max-turns 7 \
                --allowedTools Bash --allowedTools Read --tools Bash,Read \
                --model claude-sonnet-5-5 --effort high \
                --setting-sources user --strict-mcp-config --add-dir /data --resume an-id";
    let tail: Vec<&str> = tail.split_whitespace().collect();
    assert_eq!(argv(&line)[7..], tail);
    let file = (PathBuf::from("/run/turn/system-prompt.md"), b"Be brief.".to_vec());
    assert_eq!(line.files, [file]);
}

#[test]
fn the_literal_line_is_there_word_for_word() {
    let (options, open) = (full(Format::Json), resume("an-id"));
    let launch = Launch { version: Some("2.1.197"), ..a_launch(&options, &open, "say hello") };
    let line = (SPEC.launch)(&launch).unwrap();
    let expected = "-p|say hello|--output-format|json|--dangerously-skip-permissions|\
                    --append-system-prompt-file|/run/turn/system-prompt.md|--max-turns|7|\
                    --allowedTools|Bash|--allowedTools|Read|--tools|Bash,Read|\
                    --model|claude-sonnet-5-5|--resume|an-id";
    assert_eq!(argv(&line), expected.split('|').collect::<Vec<_>>());
    assert!(line.warnings.is_empty());
}

#[test]
fn trap_a_template_with_a_system_prompt_of_its_own_gets_no_second_one() {
    let filled = |flag: &str| {
        let command = ["claude", flag, "Be kind.", "{{Body}}"].map(str::to_owned).to_vec();
        let template = Some(Template { command, ..Template::default() });
        let line =
            command_line(&Options { template, ..full(Format::Json) }, &Open::New, "say hello");
        let is_one = |word: &&&str| word.starts_with("--append-system-prompt");
        (argv(&line).iter().filter(is_one).count(), line.warnings)
    };
    let warning =
        "the command line has a system prompt of its own; the configured one is not given";
    for flag in ["--append-system-prompt", "--append-system-prompt-file"] {
        assert_eq!(filled(flag), (1, vec![warning.to_owned()]), "{flag}");
    }
    assert_eq!(filled("--name"), (1, vec![]));
}

#[test]
fn trap_standard_input_is_never_left_open() {
    let with_argument = command_line(&full(Format::Json), &Open::New, "hello");
    assert_eq!(with_argument.stdin, Stdin::Null);
    for format in [Format::StreamJson, Format::Text] {
        let line = command_line(&full(format), &Open::New, "hello");
        assert!(stdin(&line).contains("hello"));
    }
}

#[test]
fn the_literal_line_has_a_system_prompt_file_and_a_turn_limit_even_unasked() {
    let options = Options { permissions: Permissions::Bypass, ..with_format(Format::Json) };
    let line = command_line(&options, &Open::New, "hi");
    let expected = "-p hi --output-format json --dangerously-skip-permissions \
                    --append-system-prompt-file /run/turn/system-prompt.md --max-turns 25";
    assert_eq!(argv(&line), expected.split_whitespace().collect::<Vec<_>>());
    let file = (PathBuf::from("/run/turn/system-prompt.md"), vec![]);
    assert_eq!(line.files, [file]);
}

#[test]
fn trap_a_prompt_that_could_be_misread_goes_to_standard_input() {
    let long = "y".repeat(64 * 1024 + 1);
    for prompt in ["--help", "-x", "@/etc/hostname", "a\0b", &long] {
        let line = command_line(&full(Format::Json), &Open::New, prompt);
        assert!(!argv(&line).contains(&prompt), "{prompt:.20}");
        assert_eq!(stdin(&line), prompt);
    }
    let longest = "y".repeat(64 * 1024);
    for prompt in ["hello", "doctor", " /cost", "a --help b", "emoji 🦀\nline", &longest] {
        let line = command_line(&full(Format::Json), &Open::New, prompt);
        assert_eq!(argv(&line)[1], prompt);
    }
}

#[test]
fn trap_a_leading_slash_is_no_command_of_the_cli() {
    let line = command_line(&full(Format::Json), &Open::New, "/help");
    assert_eq!(stdin(&line), "\n/help");
    let line = command_line(&options(), &Open::New, "/help");
    let message: Value = serde_json::from_str(stdin(&line)).unwrap();
    assert_eq!(message["client_composed"], json!(true));
    assert_eq!(message["message"]["content"], json!("/help"));
}

#[test]
fn slash_commands_and_file_mentions_work_when_asked_for() {
    let on = |format| Options { prompt_commands: PromptCommands::On, ..with_format(format) };
    let line = command_line(&on(Format::Json), &Open::New, "/help");
    assert_eq!(stdin(&line), "/help");
    let line = command_line(&on(Format::StreamJson), &Open::New, "/help");
    assert!(!stdin(&line).contains("client_composed"));
    assert_eq!(env(&line, "CLAUDE_CODE_DISABLE_FILE_MENTIONS"), None);
    let line = command_line(&options(), &Open::New, "/help");
    assert_eq!(env(&line, "CLAUDE_CODE_DISABLE_FILE_MENTIONS"), Some("1"));
}

#[test]
fn trap_a_flag_with_several_values_is_never_followed_by_the_prompt() {
    for format in [Format::StreamJson, Format::Json, Format::Text] {
        let line = command_line(&full(format), &Open::New, "hello");
        let args = argv(&line);
        for (at, _) in args
            .iter()
            .enumerate()
            .filter(|(_, arg)| ["--allowedTools", "--tools", "--add-dir"].contains(arg))
        {
            let after = args.get(at + 2).copied().unwrap_or("--");
            assert!(after.starts_with("--"), "{args:?}");
        }
    }
}

#[test]
fn trap_the_settings_of_a_repository_are_obeyed_only_when_trusted() {
    let mut options = options();
    for format in [Format::StreamJson, Format::Json, Format::Text] {
        options.format = format;
        options.project_settings = ProjectSettings::Ignored;
        let line = command_line(&options, &Open::New, "hi");
        let isolated = |line: &CommandLine| argv(line).windows(3).any(|args| args == ISOLATED);
        assert!(isolated(&line), "{format:?}");
        options.project_settings = ProjectSettings::Trusted;
        assert!(!isolated(&command_line(&options, &Open::New, "hi")));
    }
}

#[test]
fn read_only_keeps_what_looks_of_the_tools_that_were_asked_for() {
    let mut options =
        Options { allowed_tools: Some(vec!["Bash".into(), "Read".into()]), ..options() };
    let line = command_line(&options, &Open::New, "hi");
    assert_eq!(value_of(&line, "--tools"), Some("Read"));
    assert_eq!(line.warnings, ["not allowed, because the turn is read-only: Bash"]);
    options.allowed_tools = Some(vec!["Bash".into()]);
    let line = command_line(&options, &Open::New, "hi");
    assert_eq!(value_of(&line, "--tools"), Some(""));
    assert!(!argv(&line).contains(&"--dangerously-skip-permissions"));
}

#[test]
fn trap_read_only_approves_nothing_beforehand() {
    let options =
        Options { allowed_tools: Some(vec!["Read(//**)".into(), "Grep".into()]), ..options() };
    let asking = Options { permissions: Permissions::Ask, ..options.clone() };
    for options in [options, asking] {
        for format in [Format::StreamJson, Format::Json, Format::Text] {
            let options = Options { format, ..options.clone() };
            let line = command_line(&options, &Open::New, "hi");
            assert_eq!(value_of(&line, "--tools"), Some("Read,Grep"));
            assert!(!argv(&line).contains(&"--allowedTools"), "{line:?}");
            let warning = "Read(//**): the whole tool is allowed, inside the working directory";
            assert!(line.warnings.iter().any(|said| said == warning), "{line:?}");
        }
    }
}

#[test]
fn a_rule_restricts_by_its_tool_and_says_that_bypass_weakens_it() {
    let options = Options {
        allowed_tools: Some(vec!["Bash(git log:*)".into(), "Bash(ls)".into()]),
        permissions: Permissions::Bypass,
        ..options()
    };
    let line = command_line(&options, &Open::New, "hi");
    assert_eq!(value_of(&line, "--tools"), Some("Bash"));
    assert_eq!(value_of(&line, "--allowedTools"), Some("Bash(git log:*)"));
    assert_eq!(
        line.warnings,
        ["Bash(git log:*): permissions are bypassed, so the whole tool is allowed"]
    );
}

#[test]
fn asking_is_read_only_when_nobody_can_be_asked() {
    let options = Options { permissions: Permissions::Ask, ..options() };
    let line = command_line(&options, &Open::New, "hi");
    assert_eq!(value_of(&line, "--tools"), Some("Read,Grep,Glob"));
    assert_eq!(line.warnings, ["nobody can be asked in a one-shot turn; running read-only"]);
}

#[test]
fn trap_a_new_system_prompt_counts_on_resume_where_the_version_can() {
    let options = full(Format::StreamJson);
    let flag = "--system-prompt-snapshot";
    let launched = |version: Option<&str>, memo: Option<&str>| {
        let open = Open::Resume(Box::new(Memo {
            version: memo.map(str::to_owned),
            ..Memo::of_id("claude", "an-id")
        }));
        let launch = Launch { version, ..a_launch(&options, &open, "hi") };
        (SPEC.launch)(&launch).unwrap()
    };
    for (version, memo) in [
        (Some("2.1.325 (Claude Code)"), None),
        (None, Some("2.1.325")),
        (Some("2.2.0"), Some("2.1.197")),
    ] {
        let line = launched(version, memo);
        assert_eq!(value_of(&line, flag), Some("off"), "{version:?} {memo:?}");
        assert!(line.warnings.is_empty());
    }
    let old = launched(Some("2.1.197"), None);
    assert_eq!((value_of(&old, flag), old.warnings.len()), (None, 0));
    for version in [None, Some("2.1.250"), Some("what?")] {
        let unknown = launched(version, None);
        assert_eq!((value_of(&unknown, flag), unknown.warnings.len()), (None, 1));
    }
    let first = command_line(&options, &Open::New, "hi");
    assert_eq!((value_of(&first, flag), first.warnings.len()), (None, 0));
}

#[test]
fn thinking_levels_become_flags() {
    for (level, expected) in [
        (Thinking::Off, ["--thinking", "disabled"]),
        (Thinking::Minimal, ["--effort", "low"]),
        (Thinking::Low, ["--effort", "low"]),
        (Thinking::Medium, ["--effort", "medium"]),
        (Thinking::High, ["--effort", "high"]),
    ] {
        let options = Options { thinking: Some(level), ..options() };
        let line = command_line(&options, &Open::New, "hi");
        assert!(argv(&line).windows(2).any(|args| args == expected));
    }
}

#[test]
fn trap_retries_background_tasks_and_foreign_connections_are_bounded() {
    let line = command_line(&options(), &Open::New, "hi");
    for (name, value) in [
        ("CLAUDE_CODE_MAX_RETRIES", "3"),
        ("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1"),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("CLAUDE_CODE_STARTUP_FAILURE_RESULTS", "1"),
        ("DISABLE_AUTOUPDATER", "1"),
        ("DISABLE_ERROR_REPORTING", "1"),
        ("DISABLE_TELEMETRY", "1"),
    ] {
        assert_eq!(env(&line, name), Some(value), "{name}");
    }
    assert_eq!(env(&line, "IS_SANDBOX"), None);
    assert_eq!(env(&line, "CLAUDE_CONFIG_DIR"), None);
}

#[test]
fn a_home_of_its_own_is_not_left_through_the_users_setting() {
    let options = Options { home: Some("/isolated".into()), ..options() };
    let line = command_line(&options, &Open::New, "hi");
    assert_eq!(env(&line, "CLAUDE_CONFIG_DIR"), Some("/isolated/.claude"));
}

#[test]
fn plain_text_is_asked_for_with_the_prompt_on_standard_input() {
    let line = command_line(&with_format(Format::Text), &resume("an-id"), "hello");
    let expected = "-p --output-format text --tools Read,Grep,Glob \
                    --setting-sources user --strict-mcp-config --resume an-id";
    assert_eq!(argv(&line), expected.split_whitespace().collect::<Vec<_>>());
    assert_eq!(stdin(&line), "hello");
}

#[test]
fn the_native_program_is_looked_for_beside_and_below_the_launcher() {
    let names = SPEC.natives;
    if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        assert_eq!(
            names[..2],
            [
                "../../claude-code-linux-x64/claude",
                "../node_modules/@anthropic-ai/claude-code-linux-x64/claude"
            ]
        );
    }
    assert!(names.iter().all(|name| name.starts_with("../")));
}
