//! What Pi is started with.

use std::path::PathBuf;

use super::*;
use crate::{
    agent::Stdin,
    request::{Format, Permissions, ProjectSettings, PromptCommands, RequestError, Thinking},
};

pub(super) fn literal() -> Options {
    let mut options = Options::new("/w");
    options.format = Format::Json;
    options.permissions = Permissions::Bypass;
    options
}

fn stdin_text(line: &CommandLine) -> &str {
    let Stdin::Bytes(bytes) = &line.stdin else { panic!("no standard input: {line:?}") };
    std::str::from_utf8(bytes).unwrap()
}

fn value_of<'a>(args: &[&'a str], flag: &str) -> Option<&'a str> {
    let at = args.iter().position(|arg| *arg == flag)?;
    Some(args[at + 1])
}

#[test]
fn bypass_with_format_json_gives_the_literal_line() {
    let line = command_line(&literal(), &Open::New, "do it");
    assert_eq!(argv(&line), ["-p", "--mode", "json"]);
    assert_eq!(stdin_text(&line), "do it");

    let mut options = literal();
    options.model = Some("anthropic/claude-opus-5-5".into());
    options.thinking = Some(Thinking::High);
    options.system_prompt = Some("Be brief.".into());
    options.allowed_tools = Some(vec!["Read".into(), "Bash".into()]);
    let line = command_line(&options, &resume(SESSION), "do it");
    assert_eq!(
        argv(&line),
        [
            "-p",
            "--mode",
            "json",
            "--provider",
            "anthropic",
            "--model",
            "claude-opus-5-5",
            "--session",
            SESSION,
            "--continue",
            "--thinking",
            "high",
            "--append-system-prompt",
            "/run/system-prompt.md",
            "--tools",
            "read,bash",
        ]
    );
    assert!(line.warnings.is_empty(), "{:?}", line.warnings);
}

#[test]
fn the_default_form_is_read_only_and_takes_nothing_from_the_directory() {
    let line = command_line(&Options::new("/w"), &Open::New, "do it");
    assert_eq!(
        argv(&line),
        [
            "-p",
            "--mode",
            "json",
            "--tools",
            "read,grep,find,ls",
            "--no-extensions",
            "--no-prompt-templates",
            "--no-skills",
            "--no-context-files",
            "--no-approve",
        ]
    );
    assert_eq!(stdin_text(&line), "do it");
    assert!(line.warnings.is_empty(), "{:?}", line.warnings);
    for (name, value) in
        [("PI_OFFLINE", "1"), ("PI_SKIP_VERSION_CHECK", "1"), ("PI_TELEMETRY", "0")]
    {
        assert_eq!(variable(&line, name), Some(value));
    }
}

#[test]
fn a_trusted_directory_is_read_as_pi_would() {
    let mut options = Options::new("/w");
    options.project_settings = ProjectSettings::Trusted;
    let line = command_line(&options, &Open::New, "do it");
    assert_eq!(argv(&line).last(), Some(&"--approve"));
    assert!(!argv(&line).contains(&"--no-context-files"));
    assert_eq!(variable(&line, "PI_CODING_AGENT_SESSION_DIR"), None);
}

#[test]
fn trap_a_repository_cannot_say_where_sessions_are_kept() {
    let folder = |options: &Options| {
        let line = command_line(options, &Open::New, "hi");
        variable(&line, "PI_CODING_AGENT_SESSION_DIR").map(str::to_owned)
    };
    let mut options = Options::new("/home/me/my: repo");
    let default = "~/.pi/agent/sessions/--home-me-my- repo--";
    assert_eq!(folder(&options).as_deref(), Some(default));
    options.home = Some(PathBuf::from("/iso"));
    let isolated = "/iso/.pi/agent/sessions/--home-me-my- repo--";
    assert_eq!(folder(&options).as_deref(), Some(isolated));
    options.env = vec![("PI_CODING_AGENT_DIR".into(), Some("/mine".into()))];
    let named = "/mine/sessions/--home-me-my- repo--";
    assert_eq!(folder(&options).as_deref(), Some(named));
    options.env = vec![("PI_CODING_AGENT_DIR".into(), None)];
    assert_eq!(folder(&options), None);
    options = literal();
    assert!(folder(&options).is_some());
}

#[test]
fn a_home_of_its_own_holds_everything() {
    let mut options = Options::new("/w");
    options.home = Some(PathBuf::from("/iso"));
    let line = command_line(&options, &Open::New, "hi");
    assert_eq!(variable(&line, "PI_CODING_AGENT_DIR"), Some("/iso/.pi/agent"));
    assert_eq!(variable(&line, "NODE_COMPILE_CACHE"), Some("/iso/.cache/node-compile-cache"));
    let line = command_line(&Options::new("/w"), &Open::New, "hi");
    assert_eq!(variable(&line, "PI_CODING_AGENT_DIR"), None);
    assert_eq!(variable(&line, "NODE_DISABLE_COMPILE_CACHE"), Some("1"));
}

#[test]
fn trap_an_open_stdin_hangs_so_it_is_always_the_null_device_or_ends() {
    for options in [literal(), Options::new("/w")] {
        for prompt in ["do it", "/llama x", "/other"] {
            let line = command_line(&options, &Open::New, prompt);
            assert!(matches!(line.stdin, Stdin::Bytes(_) | Stdin::Null));
        }
    }
}

#[test]
fn trap_prompts_that_look_like_options_files_and_subcommands_go_to_stdin() {
    let long = "x".repeat(200_000);
    for options in [literal(), Options::new("/w")] {
        for prompt in ["-", "-x", "--help", "@/etc/passwd", "list", "install", "a\0b", &long] {
            let line = command_line(&options, &Open::New, prompt);
            assert_eq!(stdin_text(&line), prompt);
            assert!(!argv(&line).contains(&prompt));
        }
    }
}

#[test]
fn trap_white_space_at_the_end_is_kept_and_at_the_start_warned_about() {
    let line = command_line(&Options::new("/w"), &Open::New, "hi \u{2028}\n\n");
    assert_eq!(stdin_text(&line), "hi");
    assert_eq!(argv(&line).last(), Some(&" \u{2028}\n\n"));
    assert!(line.warnings.is_empty());

    let line = command_line(&Options::new("/w"), &Open::New, "\u{feff} hi\u{85}");
    assert_eq!(stdin_text(&line), "\u{feff} hi\u{85}");
    assert!(line.warnings[0].contains("white space"), "{:?}", line.warnings);
}

#[test]
fn trap_a_slash_is_text_unless_commands_are_on() {
    // The usual form has the arguments against it.
    let line = command_line(&Options::new("/w"), &Open::New, "/skill:x y");
    assert_eq!(stdin_text(&line), "/skill:x y");

    // The literal line and a built-in command need white space before the slash.
    for (options, prompt) in [(literal(), "/skill:x y"), (Options::new("/w"), "/llama y")] {
        let line = command_line(&options, &Open::New, prompt);
        assert_eq!(line.stdin, Stdin::Null);
        assert_eq!(argv(&line).last(), Some(&format!(" {prompt}").as_str()));
    }
    let line = command_line(&literal(), &Open::New, "\n/skill:x y");
    assert_eq!(argv(&line).last(), Some(&"\n/skill:x y"));
    let line = command_line(&literal(), &Open::New, &format!("/{}", "x".repeat(70_000)));
    assert!(line.warnings[0].contains("slash command"), "{:?}", line.warnings);

    let mut options = Options::new("/w");
    options.prompt_commands = PromptCommands::On;
    let line = command_line(&options, &Open::New, "/llama y");
    assert_eq!(stdin_text(&line), "/llama y");
    assert!(!argv(&line).contains(&"--no-skills"));
    // Extensions are programs; a read-only turn has none.
    assert!(argv(&line).contains(&"--no-extensions"));
    options.permissions = Permissions::Bypass;
    assert!(!argv(&command_line(&options, &Open::New, "x")).contains(&"--no-extensions"));
}

#[test]
fn trap_tools_have_pis_own_names_and_unknown_ones_are_warned_about() {
    let mut options = Options::new("/w");
    options.permissions = Permissions::Bypass;
    options.allowed_tools =
        Some(["Read", "Glob", "Bash(git:*)", "bash", "WebFetch"].map(str::to_owned).to_vec());
    let line = command_line(&options, &Open::New, "hi");
    assert_eq!(value_of(&argv(&line), "--tools"), Some("read,find,bash"));
    assert_eq!(line.warnings.len(), 2, "{:?}", line.warnings);
    assert!(line.warnings[1].contains("no tool \"WebFetch\""), "{:?}", line.warnings);

    options.allowed_tools = Some(vec!["WebFetch".into()]);
    let line = command_line(&options, &Open::New, "hi");
    assert!(argv(&line).contains(&"--no-tools"));

    // An extension may have a tool of any name.
    options.prompt_commands = PromptCommands::On;
    let line = command_line(&options, &Open::New, "hi");
    assert_eq!(value_of(&argv(&line), "--tools"), Some("WebFetch"));
    assert_eq!(line.warnings.len(), 1);
}

#[test]
fn a_read_only_turn_allows_none_but_the_reading_tools() {
    let mut options = Options::new("/w");
    options.allowed_tools = Some(vec!["Read".into(), "Write".into()]);
    let line = command_line(&options, &Open::New, "hi");
    assert_eq!(value_of(&argv(&line), "--tools"), Some("read"));
    assert!(line.warnings[0].contains("read-only"), "{:?}", line.warnings);

    options.allowed_tools = None;
    options.permissions = Permissions::Ask;
    let line = command_line(&options, &Open::New, "hi");
    assert_eq!(value_of(&argv(&line), "--tools"), Some("read,grep,find,ls"));
    assert!(line.warnings[0].contains("read-only"), "{:?}", line.warnings);
}

#[test]
fn trap_a_resumed_session_does_not_keep_the_tools_of_a_read_only_turn() {
    let mut options = Options::new("/w");
    options.permissions = Permissions::Bypass;
    assert_eq!(value_of(&argv(&command_line(&options, &Open::New, "hi")), "--tools"), None);
    let line = command_line(&options, &resume(SESSION), "hi");
    assert_eq!(value_of(&argv(&line), "--tools"), Some("read,bash,edit,write"));
}

#[test]
fn trap_a_system_prompt_is_a_file_because_its_text_could_be_the_name_of_one() {
    let mut options = Options::new("/w");
    options.system_prompt = Some("README.md".into());
    let line = command_line(&options, &resume(SESSION), "hi");
    assert_eq!(value_of(&argv(&line), "--append-system-prompt"), Some("/run/system-prompt.md"));
    assert_eq!(line.files, [(PathBuf::from("/run/system-prompt.md"), b"README.md".to_vec())]);
}

#[test]
fn a_model_without_a_provider_is_passed_on_as_it_is() {
    let mut options = Options::new("/w");
    for (name, expected) in [
        ("sonnet:high", "--model sonnet:high"),
        ("openrouter/anthropic/x", "--provider openrouter --model anthropic/x"),
        ("/x", "--model /x"),
    ] {
        options.model = Some(name.into());
        let line = command_line(&options, &Open::New, "hi");
        assert!(argv(&line).join(" ").contains(expected), "{:?}", line.args);
    }
}

#[test]
fn the_operators_arguments_come_first_so_that_options_win() {
    let mut options = literal();
    options.model = Some("m".into());
    options.extra_args = ["--provider", "sim", "--model", "other"].map(str::to_owned).to_vec();
    let line = command_line(&options, &Open::New, "hi");
    assert_eq!(
        argv(&line),
        ["-p", "--mode", "json", "--provider", "sim", "--model", "other", "--model", "m"]
    );
}

#[test]
fn plain_text_is_asked_for_by_leaving_the_mode_out() {
    let mut options = Options::new("/w");
    options.format = Format::Text;
    options.max_turns = Some(3);
    let line = command_line(&options, &Open::New, "hi");
    assert!(!argv(&line).contains(&"--mode"));
    assert!(argv(&line).contains(&"--no-approve"));
    assert!(line.warnings[0].contains("max turns"), "{:?}", line.warnings);
    options.format = Format::StreamJson;
    assert!(command_line(&options, &Open::New, "hi").warnings.is_empty());
}

#[test]
fn trap_a_session_that_pi_would_take_for_a_path_is_refused() {
    for id in [SESSION, "a", "gw-own.id_42"] {
        assert_eq!((SPEC.check_session)(id), Ok(()), "{id}");
    }
    for id in ["", "-x", "/tmp/x.jsonl", "a/b", "a\\b", "x.jsonl", "a.", "_a", "é", "a b"] {
        let error = (SPEC.check_session)(id).unwrap_err();
        assert!(matches!(error, RequestError::BadSession { .. }), "{id:?}");
    }
}
