//! The command line of a process that is kept.

use std::ffi::OsString;

use super::*;
use crate::{
    agent::{WarmLaunch, testing::warm_launch_of},
    request::ProjectSettings,
};

fn line_of(options: &Options, variables: &[(&str, &str)]) -> CommandLine {
    let variables: Vec<(OsString, OsString)> =
        variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
    let run_dir = Path::new(RUN_DIR);
    let launch = warm_launch_of(&SPEC, options, &Open::New);
    (WARM.launch)(&WarmLaunch { variables: &variables, run_dir, ..launch }).unwrap()
}

fn rules(line: &CommandLine) -> &str {
    line.files.first().map_or("", |(_, rules)| std::str::from_utf8(rules).unwrap())
}

#[test]
fn what_a_session_can_change_is_not_in_the_line() {
    let mut other = bypass();
    other.model = Some("pro".to_owned());
    other.system_prompt = Some("Be brief.".to_owned());
    other.cwd = "/elsewhere".into();
    assert_eq!(line_of(&bypass(), &[]), line_of(&other, &[]));
}

#[test]
fn a_directory_is_trusted_only_if_the_operator_says_so() {
    let trust = |project_settings| {
        let line = line_of(&Options { project_settings, ..bypass() }, &[]);
        assert!(!argv(&line).contains(&"--skip-trust"), "that would trust every directory");
        variable(&line, "GEMINI_CLI_TRUST_WORKSPACE").unwrap().to_owned()
    };
    assert_eq!(trust(ProjectSettings::Ignored), "false");
    assert_eq!(trust(ProjectSettings::Trusted), "true");
}

#[test]
fn rules_say_what_may_happen() {
    let line = line_of(&bypass(), &[]);
    assert_eq!(
        argv(&line),
        ["--acp", "--approval-mode", "default", "--policy", "/run/turn/policy.toml"]
    );
    assert!(rules(&line).contains("decision = \"allow\"") && !rules(&line).contains("deny"));
    assert!(rules(&line).contains("allowRedirection = true"));
    let line = line_of(&options(), &[]);
    assert!(rules(&line).contains("toolName = \"*\"\ndecision = \"deny\""));
    assert!(!rules(&line).contains("run_shell_command"));
    assert_eq!(rules(&line_of(&asking(), &[])), "", "the CLI asks by itself");
}

#[test]
fn of_the_allowed_tools_those_that_only_look_are_not_asked_about() {
    let allowed_tools = Some(vec!["read_file".to_owned(), "run_shell_command(git)".to_owned()]);
    let line = line_of(&Options { allowed_tools, ..asking() }, &[]);
    let rules = rules(&line);
    assert!(rules.contains("toolName = \"*\"\ndecision = \"deny\""), "{rules}");
    assert!(rules.contains("toolName = \"read_file\"\ndecision = \"allow\""), "{rules}");
    assert!(rules.contains("commandPrefix = \"git\"\ndecision = \"ask_user\""), "{rules}");
}

#[test]
fn a_key_alone_comes_with_the_address_that_it_is_for() {
    let name = "GOOGLE_GEMINI_BASE_URL";
    let url = |variables: &[(&str, &str)]| {
        let line = line_of(&Options { home: Some("/h".into()), ..bypass() }, variables);
        variable(&line, name).map(str::to_owned)
    };
    let key = ("GEMINI_API_KEY", "k");
    let default = "https://generativelanguage.googleapis.com";
    assert_eq!(url(&[key]).as_deref(), Some(default));
    assert_eq!(url(&[key, (name, "http://127.0.0.1:1")]), None, "the operator's counts");
    assert_eq!(url(&[]), None);
    assert_eq!(url(&[key, ("GOOGLE_GENAI_USE_VERTEXAI", "true")]), None);
}

#[test]
fn what_cannot_be_done_is_warned_about() {
    let line = line_of(&Options { max_turns: Some(3), ..bypass() }, &[]);
    assert_eq!(line.warnings.len(), 1);
    assert_eq!(line_of(&bypass(), &[]).warnings, Vec::<String>::new());
}
