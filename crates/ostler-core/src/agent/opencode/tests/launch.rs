//! What OpenCode is started with.

use super::*;
use crate::request::{ProjectSettings, PromptCommands, Template, Thinking};

#[test]
fn bypass_with_format_json_gives_the_literal_line() {
    let mut options = bypass(Format::Json);
    let line = command_line(&options, &Open::New, "hello");
    assert_eq!(argv(&line), ["run", "hello", "--format", "json"]);
    assert_eq!(line.stdin, Stdin::Null);
    options.model = Some("stub/stub-1".into());
    let line = command_line(&options, &resume(SESSION), "hello");
    assert_eq!(
        argv(&line),
        [
            "run",
            "hello",
            "--format",
            "json",
            "--session",
            SESSION,
            "--continue",
            "--model",
            "stub/stub-1",
            "--dir",
            "/w"
        ]
    );
    // No flag of the literal line says that everything is allowed.
    assert_eq!(variable(&line, "OPENCODE_PERMISSION").as_deref(), Some(r#"{"*":"allow"}"#));
}

#[test]
fn the_default_line_shows_thoughts_and_saves_the_call_for_a_title() {
    let line = command_line(&bypass(Format::StreamJson), &Open::New, "do it");
    assert_eq!(argv(&line), ["run", "--format", "json", "--thinking", "--auto", "--title", ""]);
    assert_eq!(stdin(&line), "do it");
    let line = command_line(&bypass(Format::StreamJson), &resume(SESSION), "do it");
    assert_eq!(
        argv(&line),
        [
            "run",
            "--format",
            "json",
            "--thinking",
            "--auto",
            "--session",
            SESSION,
            "--continue",
            "--dir",
            "/w"
        ]
    );
    assert!(line.warnings.is_empty(), "{:?}", line.warnings);
}

#[test]
fn plain_text_is_asked_for_and_known_to_tell_no_session() {
    let line = command_line(&bypass(Format::Text), &Open::New, "do it");
    assert_eq!(argv(&line), ["run", "--format", "default", "--auto", "--title", ""]);
    assert!(line.warnings[0].contains("cannot be resumed"), "{:?}", line.warnings);
}

#[test]
fn trap_a_prompt_that_the_cli_would_change_or_misread_goes_to_stdin() {
    let long = "x".repeat(64 * 1024 + 1);
    let prompts = [
        "two words",
        "tab\there",
        "line\nbreak",
        "no\u{a0}break",
        "-x",
        "--help",
        "42",
        "0x10",
        ".5",
        "+1",
        "a\0b",
        "\u{7f}",
        &long,
    ];
    for prompt in prompts {
        let line = command_line(&bypass(Format::Json), &Open::New, prompt);
        assert_eq!(argv(&line), ["run", "--format", "json"], "{prompt:?}");
        assert_eq!(stdin(&line), prompt);
    }
    for prompt in ["@file", "/init", "é🚀", "a=b", "say\"hi\"", "true"] {
        let line = command_line(&bypass(Format::Json), &Open::New, prompt);
        assert_eq!(argv(&line)[1], prompt);
    }
}

#[test]
fn trap_a_session_is_resumed_in_the_directory_where_it_began() {
    let memo = Memo { cwd: Some("/first".into()), ..Memo::of_id("opencode", SESSION) };
    let open = Open::Resume(Box::new(memo));
    for format in [Format::Json, Format::StreamJson, Format::Text] {
        let line = command_line(&bypass(format), &open, "hi");
        assert_eq!(argv(&line).last(), Some(&"/first"));
        let warnings = line.warnings.join(" ");
        assert!(warnings.contains("goes on in /first"), "{warnings}");
    }
}

#[test]
fn trap_errors_and_retries_are_only_told_in_the_log() {
    for format in [Format::Json, Format::StreamJson, Format::Text] {
        let line = command_line(&bypass(format), &Open::New, "hi");
        assert_eq!(variable(&line, "OPENCODE_PRINT_LOGS").as_deref(), Some("1"));
        assert_eq!(variable(&line, "OPENCODE_LOG_LEVEL").as_deref(), Some("ERROR"));
    }
}

#[test]
fn trap_a_repository_says_nothing_unless_it_is_trusted() {
    let names = ["OPENCODE_DISABLE_PROJECT_CONFIG", "OPENCODE_DISABLE_EXTERNAL_SKILLS"];
    for format in [Format::Json, Format::StreamJson, Format::Text] {
        let mut options = bypass(format);
        let line = command_line(&options, &Open::New, "hi");
        assert!(names.iter().all(|name| variable(&line, name).as_deref() == Some("1")));
        options.project_settings = ProjectSettings::Trusted;
        let line = command_line(&options, &Open::New, "hi");
        assert!(names.iter().all(|name| variable(&line, name).is_none()));
    }
}

#[test]
fn a_home_of_its_own_holds_everything_and_downloads_nothing() {
    let mut options = bypass(Format::StreamJson);
    options.home = Some("/iso".into());
    let line = command_line(&options, &Open::New, "hi");
    for (name, value) in [
        ("HOME", "/iso"),
        ("XDG_CONFIG_HOME", "/iso/.config"),
        ("XDG_DATA_HOME", "/iso/.local/share"),
        ("XDG_CACHE_HOME", "/iso/.cache"),
        ("XDG_STATE_HOME", "/iso/.local/state"),
        ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
        ("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1"),
    ] {
        assert_eq!(variable(&line, name).as_deref(), Some(value), "{name}");
    }
    let line = command_line(&bypass(Format::StreamJson), &Open::New, "hi");
    assert_eq!(variable(&line, "HOME"), None);
    // The user's own logins come with the plugins.
    assert_eq!(variable(&line, "OPENCODE_DISABLE_DEFAULT_PLUGINS"), None);
}

#[test]
fn options_that_the_agent_lacks_are_warned_about_and_only_those() {
    let plain = command_line(&Options::new("/w"), &Open::New, "hi");
    assert!(plain.warnings.is_empty(), "{:?}", plain.warnings);
    let mut options = Options::new("/w");
    options.permissions = Permissions::Ask;
    options.thinking = Some(Thinking::Off);
    options.prompt_commands = PromptCommands::On;
    options.model = Some("gpt-5".into());
    let line = command_line(&options, &Open::New, "hi");
    assert_eq!(line.warnings.len(), 4, "{:?}", line.warnings);
    assert!(line.warnings[0].contains("read-only"));
    options.max_turns = Some(3);
    options.allowed_tools = Some(vec!["Read".into()]);
    assert_eq!(command_line(&options, &Open::New, "hi").warnings.len(), 4);
}

#[test]
fn the_thinking_level_is_a_variant_of_the_model() {
    for (level, word) in [
        (Thinking::Off, "none"),
        (Thinking::Minimal, "minimal"),
        (Thinking::Low, "low"),
        (Thinking::Medium, "medium"),
        (Thinking::High, "high"),
    ] {
        let options = Options { thinking: Some(level), ..bypass(Format::StreamJson) };
        let line = command_line(&options, &Open::New, "hi");
        let args = argv(&line);
        let at = args.iter().position(|arg| *arg == "--variant").unwrap();
        assert_eq!(args[at + 1], word);
    }
}

#[test]
fn the_operators_arguments_come_before_the_session() {
    let mut options = bypass(Format::StreamJson);
    options.extra_args = vec!["--agent".into(), "plan".into()];
    let line = command_line(&options, &resume(SESSION), "hi");
    let args = argv(&line);
    let at = |word: &str| args.iter().position(|arg| *arg == word).unwrap();
    assert!(at("plan") < at("--session"));
}

#[test]
fn a_template_gets_what_it_lacks_and_no_id_for_a_new_session() {
    let template = |words: &[&str], format| {
        let command = words.iter().map(|word| (*word).to_owned()).collect();
        let mut template = Template { command, format, ..Template::default() };
        template.variables.insert("SessionId".into(), "new-id".into());
        template
    };
    let mut options = bypass(Format::StreamJson);
    options.template = Some(template(&["opencode", "{{Body}}"], Some(Format::Json)));
    let line = command_line(&options, &Open::New, "hello");
    assert_eq!(argv(&line), ["run", "--format", "json", "--auto", "hello"]);
    let line = command_line(&options, &resume(SESSION), "hello");
    assert_eq!(
        argv(&line),
        ["run", "--format", "json", "--auto", "--dir", "/w", "--session", SESSION, "hello"]
    );
    options.permissions = Permissions::ReadOnly;
    options.template = Some(template(&["opencode", "run", "-m", "a/b", "{{Body}}"], None));
    options.model = Some("c/d".into());
    let line = command_line(&options, &Open::New, "two words");
    assert_eq!(argv(&line), ["run", "--agent", "ostler", "-m", "a/b"]);
    assert_eq!(stdin(&line), "two words");
}

#[test]
fn the_native_program_is_looked_for_beside_the_npm_command() {
    if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        let expected = "../../opencode-linux-x64-baseline/bin/opencode";
        let musl = SPEC.natives.iter().position(|path| path.contains("musl")).unwrap();
        let found = SPEC.natives.iter().position(|path| *path == expected).unwrap();
        assert!(musl < found);
    }
}
