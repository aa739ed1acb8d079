//! What Gemini is started with.

use super::*;
use crate::{
    agent::Stdout,
    request::{ProjectSettings, RequestError, SessionArgs, Template, Thinking},
};

/// The rules that a line comes with.
fn rules(line: &CommandLine) -> Option<&str> {
    let path = Path::new(RUN_DIR).join("policy.toml");
    let (_, content) = line.files.iter().find(|(known, _)| *known == path)?;
    std::str::from_utf8(content).ok()
}

#[test]
fn bypass_with_format_json_gives_the_literal_line() {
    let line = command_line(&literal(), &Open::New, "do it");
    let start = ["do it", "--output-format", "json", "--approval-mode", "yolo", "--skip-trust"];
    assert_eq!(argv(&line), start);
    assert_eq!(line.stdin, Stdin::Null);
    let options = Options { model: Some("flash".into()), ..literal() };
    let line = command_line(&options, &resume(SESSION), "do it");
    assert_eq!(argv(&line)[..6], start);
    assert_eq!(argv(&line)[6..], ["--model", "flash", "--resume", SESSION]);
    assert!(line.files.is_empty() && line.warnings.is_empty());
}

#[test]
fn the_default_form_is_read_only_and_has_the_prompt_on_standard_input() {
    let line = command_line(&options(), &Open::New, "--help");
    assert_eq!(
        argv(&line),
        [
            "--output-format",
            "stream-json",
            "--approval-mode",
            "plan",
            "--skip-trust",
            "--policy",
            "/run/turn/policy.toml",
        ]
    );
    assert_eq!(stdin(&line), Some("--help"));
    assert!(line.warnings.is_empty(), "{:?}", line.warnings);
}

#[test]
fn trap_a_pipe_would_cut_the_output_so_it_goes_to_a_file() {
    for format in [Format::StreamJson, Format::Json, Format::Text] {
        let line = command_line(&Options { format, ..bypass() }, &Open::New, "hi");
        assert_eq!(line.stdout, Stdout::File);
    }
}

#[test]
fn trap_the_launcher_swallows_signals_so_it_runs_in_one_process() {
    let line = command_line(&options(), &Open::New, "hi");
    assert_eq!(variable(&line, "GEMINI_CLI_NO_RELAUNCH"), Some("true"));
}

#[test]
fn trap_plan_mode_can_be_left_so_rules_deny_whatever_is_not_looking() {
    for permissions in [Permissions::ReadOnly, Permissions::Ask] {
        let line = command_line(&Options { permissions, ..options() }, &Open::New, "hi");
        let rules = rules(&line).unwrap();
        let deny_all = "[[rule]]\ntoolName = \"*\"\ndecision = \"deny\"\npriority = 998\n";
        assert!(rules.starts_with(deny_all), "{rules}");
        for tool in ["exit_plan_mode", "write_file", "replace", "run_shell_command", "web_fetch"] {
            assert!(!rules.contains(tool), "{tool}");
        }
        let read = "[[rule]]\ntoolName = \"read_file\"\ndecision = \"allow\"\npriority = 999\n";
        assert!(rules.contains(read), "{rules}");
    }
    assert_eq!(rules(&command_line(&bypass(), &Open::New, "hi")), None);
}

#[test]
fn allowed_tools_are_the_only_ones_and_a_shell_command_can_be_named() {
    let tools = ["read_file", "run_shell_command(git \"log\")", "glob(x)"];
    let allowed_tools = Some(tools.map(str::to_owned).to_vec());
    for format in [Format::StreamJson, Format::Json] {
        let options = Options { allowed_tools: allowed_tools.clone(), format, ..bypass() };
        let line = command_line(&options, &Open::New, "hi");
        let shell = "toolName = \"run_shell_command\"\ncommandPrefix = \"git \\\"log\\\"\"\n";
        assert!(rules(&line).unwrap().contains(shell));
        assert_eq!(rules(&line).unwrap().matches("[[rule]]").count(), 4);
        assert_eq!(line.warnings, ["glob(x): the whole tool is allowed"]);
        assert!(argv(&line).windows(2).any(|pair| pair == ["--policy", "/run/turn/policy.toml"]));
    }
    let options = Options { allowed_tools, ..options() };
    let line = command_line(&options, &Open::New, "hi");
    assert_eq!(rules(&line).unwrap().matches("[[rule]]").count(), 2);
    assert!(line.warnings[0].contains("run_shell_command"), "{:?}", line.warnings);
}

#[test]
fn trap_a_repository_is_trusted_only_when_the_operator_says_so() {
    let line = command_line(&options(), &Open::New, "hi");
    assert!(argv(&line).contains(&"--skip-trust"));
    assert_eq!(variable(&line, "GEMINI_CLI_TRUST_WORKSPACE"), None);
    let options = Options { project_settings: ProjectSettings::Trusted, ..options() };
    let line = command_line(&options, &Open::New, "hi");
    assert!(!argv(&line).contains(&"--skip-trust"));
    assert_eq!(variable(&line, "GEMINI_CLI_TRUST_WORKSPACE"), Some("true"));
    assert_eq!(variable(&line, "GOOGLE_GEMINI_BASE_URL"), None);
}

#[test]
fn trap_a_dot_env_cannot_lead_the_key_elsewhere() {
    let line = command_line(&options(), &Open::New, "hi");
    for name in ["GOOGLE_GEMINI_BASE_URL", "GOOGLE_VERTEX_BASE_URL", "GEMINI_CLI_CUSTOM_HEADERS"] {
        assert_eq!(variable(&line, name), Some(""), "{name}");
        assert!(!SPEC.env.contains(name), "what is inherited would be overridden: {name}");
    }
    assert_eq!(variable(&line, "NODE_TLS_REJECT_UNAUTHORIZED"), Some("1"));
}

#[test]
fn a_home_of_its_own_is_complete_and_brings_its_settings() {
    let options = Options { home: Some("/iso".into()), ..options() };
    let line = command_line(&options, &Open::New, "hi");
    for name in ["HOME", "GEMINI_CLI_HOME"] {
        assert_eq!(variable(&line, name), Some("/iso"));
    }
    let [(path, content)] = line.home_files.as_slice() else {
        panic!("{:?}", line.home_files);
    };
    assert_eq!(path, Path::new(".gemini/settings.json"));
    let settings: serde_json::Value = serde_json::from_slice(content).unwrap();
    assert_eq!(settings["general"]["sessionRetention"]["enabled"], false);
    assert_eq!(settings["general"]["maxAttempts"], 2);
    assert_eq!(settings["security"]["auth"]["useExternal"], true);
    assert_eq!(settings["privacy"]["usageStatisticsEnabled"], false);
    assert!(command_line(&super::options(), &Open::New, "hi").home_files.is_empty());
}

#[test]
fn trap_a_session_that_would_be_taken_for_a_place_in_a_list_is_refused() {
    for id in [SESSION, "my_thread-42", "1a"] {
        assert_eq!((SPEC.check_session)(id), Ok(()), "{id}");
    }
    for id in ["1", "007", "latest", "a/b", "a.b", "é", "", "-x"] {
        let error = (SPEC.check_session)(id).unwrap_err();
        assert!(matches!(error, RequestError::BadSession { .. }), "{id:?}");
    }
}

#[test]
fn nobody_to_ask_and_thinking_that_cannot_be_less_are_warned_about() {
    let options = Options {
        permissions: Permissions::Ask,
        thinking: Some(Thinking::Off),
        max_turns: Some(3),
        ..options()
    };
    let line = command_line(&options, &Open::New, "hi");
    assert_eq!(line.warnings.len(), 2, "{:?}", line.warnings);
    assert!(line.warnings[0].contains("read-only") && line.warnings[1].contains("think less"));
}

#[test]
fn the_operators_own_arguments_stand_before_the_session() {
    let options = Options { extra_args: vec!["--debug".into()], ..bypass() };
    let line = command_line(&options, &resume(SESSION), "hi");
    let args = argv(&line);
    assert_eq!(args[args.len() - 3..], ["--debug", "--resume", SESSION]);
}

#[test]
fn a_template_of_gemini_gets_the_rules_and_a_careful_prompt() {
    let template = Template {
        command: ["gemini", "-p", "{{Body}}", "-o", "json"].map(str::to_owned).to_vec(),
        format: Some(Format::Json),
        session: SessionArgs::default(),
        ..Template::default()
    };
    let options = Options { template: Some(template), ..options() };
    let line = command_line(&options, &Open::New, "see @a");
    assert_eq!(
        argv(&line),
        [
            "--approval-mode",
            "plan",
            "--skip-trust",
            "--policy",
            "/run/turn/policy.toml",
            "-p",
            "see \\@a",
            "-o",
            "json"
        ]
    );
    assert!(rules(&line).is_some());
    assert_eq!(line.stdout, Stdout::File);
}

#[test]
fn another_system_prompt_for_a_session_that_has_one_is_warned_about() {
    let with = |text: &str| Options { system_prompt: Some(text.into()), ..options() };
    let mut memo = crate::memo::Memo::of_id("gemini", SESSION);
    memo.system_sent = true;
    memo.system_hash = Some(crate::memo::hash("Be brief."));
    let open = Open::Resume(Box::new(memo));
    let warns = |text| {
        let line = command_line(&with(text), &open, "hi");
        line.warnings.iter().any(|warning| warning.contains("when a session begins"))
    };
    assert!(!warns("Be brief."));
    assert!(warns("Be long."));
}
