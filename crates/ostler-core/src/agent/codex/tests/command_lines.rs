//! What Codex is started with.

use std::path::PathBuf;

use super::*;
use crate::{
    agent::Stdin,
    request::{Format, Permissions, ProjectSettings, PromptCommands, RequestError, Thinking},
};

fn literal() -> Options {
    let mut options = Options::new("/w");
    options.format = Format::Json;
    options.permissions = Permissions::Bypass;
    options
}

fn values_of<'a>(args: &[&'a str], flag: &str) -> Vec<&'a str> {
    args.windows(2).filter(|pair| pair[0] == flag).map(|pair| pair[1]).collect()
}

#[test]
fn bypass_with_format_json_gives_the_literal_line() {
    let line = command_line(&literal(), &Open::New, "do it");
    assert_eq!(
        argv(&line),
        [
            "exec",
            "--json",
            "--skip-git-repo-check",
            "--dangerously-bypass-approvals-and-sandbox",
            "--cd",
            "/w",
            "do it"
        ]
    );
    let mut options = literal();
    options.model = Some("gpt-5.5".into());
    options.system_prompt = Some("Be \"brief\".\n".into());
    options.thinking = Some(Thinking::High);
    let line = command_line(&options, &Open::New, "do it");
    assert_eq!(
        argv(&line)[6..],
        [
            "--model",
            "gpt-5.5",
            "-c",
            "developer_instructions=\"Be \\\"brief\\\".\\n\"",
            "-c",
            "model_reasoning_effort=\"high\"",
            "do it"
        ]
    );
    let line = command_line(&literal(), &resume(SESSION), "do it");
    assert_eq!(argv(&line)[6..], ["resume", SESSION, "do it"]);
}

#[test]
fn trap_an_open_stdin_hangs_so_it_is_always_the_null_device_or_ends() {
    let argument = command_line(&literal(), &Open::New, "do it");
    assert_eq!(argument.stdin, Stdin::Null);
    let default = command_line(&Options::new("/w"), &Open::New, "do it");
    assert_eq!(default.stdin, Stdin::Bytes(b"do it".to_vec()));
    assert_eq!(argv(&default).last(), Some(&"-"));
}

#[test]
fn trap_a_prompt_that_the_cli_would_misread_goes_to_stdin() {
    let long = "x".repeat(64 * 1024 + 1);
    let misread = ["-", "-x", "--help", "resume", "fork", "review", "help", "a\0b", &long];
    for prompt in misread {
        let line = command_line(&literal(), &Open::New, prompt);
        assert_eq!(argv(&line).last(), Some(&"-"), "{prompt:?}");
        assert_eq!(line.stdin, Stdin::Bytes(prompt.as_bytes().to_vec()));
    }
    for prompt in ["@/etc/hostname", "/help", "resume it", "res", "!ls", "é\n🚀"] {
        let line = command_line(&literal(), &Open::New, prompt);
        assert_eq!(argv(&line).last(), Some(&prompt));
    }
}

#[test]
fn the_default_form_is_read_only_and_bounded_and_keeps_keys_from_tools() {
    let line = command_line(&Options::new("/w"), &Open::New, "do it");
    assert_eq!(
        argv(&line),
        [
            "exec",
            "--json",
            "--skip-git-repo-check",
            "--sandbox",
            "read-only",
            "--cd",
            "/w",
            "-c",
            "features.unbounded_connection_retries=false",
            "-c",
            "shell_environment_policy.ignore_default_excludes=false",
            "-c",
            "analytics.enabled=false",
            "-c",
            "check_for_update_on_startup=false",
            "-c",
            "project_root_markers=[]",
            "-c",
            "projects={\"/w\"={trust_level=\"untrusted\"}}",
            "-",
        ]
    );
    assert!(line.warnings.is_empty(), "{:?}", line.warnings);
    assert!(line.env.is_empty());
}

#[test]
fn trap_endless_retries_are_switched_off_in_every_form_but_the_literal_one() {
    let setting = "features.unbounded_connection_retries=false";
    for (format, permissions) in [
        (Format::StreamJson, Permissions::Bypass),
        (Format::Text, Permissions::Bypass),
        (Format::Json, Permissions::ReadOnly),
    ] {
        let mut options = Options::new("/w");
        options.format = format;
        options.permissions = permissions;
        let line = command_line(&options, &resume(SESSION), "hi");
        assert!(argv(&line).contains(&setting), "{format:?}");
    }
    assert!(!argv(&command_line(&literal(), &Open::New, "hi")).contains(&setting));
}

#[test]
fn trap_a_repository_is_never_trusted_by_accident() {
    let mut options = Options::new("/w/my \"repo\".git");
    options.permissions = Permissions::Bypass;
    let line = command_line(&options, &Open::New, "hi");
    let settings = values_of(&argv(&line), "-c").join(" ");
    assert!(
        settings.contains("projects={\"/w/my \\\"repo\\\".git\"={trust_level=\"untrusted\"}}"),
        "{settings}"
    );
    options.project_settings = ProjectSettings::Trusted;
    let line = command_line(&options, &Open::New, "hi");
    let settings = values_of(&argv(&line), "-c").join(" ");
    assert!(settings.contains("={trust_level=\"trusted\"}}"), "{settings}");
    assert!(!settings.contains("project_root_markers"), "{settings}");
}

#[test]
fn retries_are_bounded_for_a_provider_that_the_operator_defines() {
    let mut options = Options::new("/w");
    options.extra_args = ["-c", "model_provider=sim", "-c", "model_providers.sim={name=\"sim\"}"]
        .map(str::to_owned)
        .to_vec();
    let line = command_line(&options, &resume(SESSION), "hi");
    let args = argv(&line);
    assert_eq!(
        args[args.len() - 11..],
        [
            "-c",
            "model_provider=sim",
            "-c",
            "model_providers.sim={name=\"sim\"}",
            "-c",
            "model_providers.sim.request_max_retries=2",
            "-c",
            "model_providers.sim.stream_max_retries=2",
            "resume",
            SESSION,
            "-"
        ]
    );
    options.extra_args[3] = "model_providers.sim={name=\"sim\",stream_max_retries=9}".into();
    let line = command_line(&options, &Open::New, "hi");
    let settings = argv(&line).join(" ");
    assert!(settings.contains("sim.request_max_retries=2"), "{settings}");
    assert!(!settings.contains("stream_max_retries=2"), "{settings}");
}

#[test]
fn what_codex_cannot_do_is_warned_about_only_when_it_was_asked_for() {
    let mut options = Options::new("/w");
    options.allowed_tools = Some(vec!["shell".into()]);
    options.max_turns = Some(3);
    options.permissions = Permissions::Ask;
    options.thinking = Some(Thinking::Off);
    options.prompt_commands = PromptCommands::On;
    let line = command_line(&options, &Open::New, "hi");
    assert_eq!(line.warnings.len(), 5, "{:?}", line.warnings);
    assert_eq!(values_of(&argv(&line), "--sandbox"), ["read-only"]);
    assert!(values_of(&argv(&line), "-c").contains(&"model_reasoning_effort=\"low\""));
}

#[test]
fn a_system_prompt_belongs_to_the_first_turn() {
    let mut options = Options::new("/w");
    options.system_prompt = Some("be brief".into());
    let setting = "developer_instructions=\"be brief\"";
    let line = command_line(&options, &Open::New, "hi");
    assert!(argv(&line).contains(&setting));
    assert!(line.warnings.is_empty());

    let line = command_line(&options, &resume(SESSION), "hi");
    assert!(!argv(&line).contains(&setting));
    assert!(line.warnings[0].contains("when a session begins"));

    let began_with = Some(crate::memo::hash("be brief"));
    let memo = Memo { system_hash: began_with, ..Memo::of_id("codex", SESSION) };
    let line = command_line(&options, &Open::Resume(Box::new(memo)), "hi");
    assert!(line.warnings.is_empty(), "{:?}", line.warnings);
}

#[test]
fn a_system_prompt_too_long_for_an_argument_goes_before_the_prompt() {
    let mut options = Options::new("/w");
    options.system_prompt = Some("\n".repeat(70 * 1024));
    let line = command_line(&options, &Open::New, "hi");
    assert!(line.args.iter().all(|arg| arg.len() < 128 * 1024));
    let expected = format!("{}\n\nhi", "\n".repeat(70 * 1024));
    assert_eq!(line.stdin, Stdin::Bytes(expected.into_bytes()));
    assert_eq!(line.warnings.len(), 1);
}

#[test]
fn a_home_of_its_own_is_complete_and_without_plugins() {
    let mut options = Options::new("/w");
    options.home = Some(PathBuf::from("/iso"));
    let line = command_line(&options, &Open::New, "hi");
    for name in ["HOME", "CODEX_HOME"] {
        assert!(line.env.contains(&(name.into(), "/iso".into())), "{name}");
    }
    assert!(argv(&line).contains(&"features.plugins=false"));
}

#[test]
fn plain_text_is_asked_for_by_leaving_json_out() {
    let mut options = Options::new("/w");
    options.format = Format::Text;
    let line = command_line(&options, &Open::New, "hi");
    assert!(!argv(&line).contains(&"--json"));
}

#[test]
fn trap_a_session_that_is_no_uuid_is_refused() {
    assert_eq!((SPEC.check_session)(SESSION), Ok(()));
    let upper = SESSION.to_uppercase();
    for id in ["no-such-session", "last", "", "-x", &upper, &SESSION.replace('-', "")] {
        let error = (SPEC.check_session)(id).unwrap_err();
        assert!(matches!(error, RequestError::BadSession { .. }), "{id:?}");
    }
    let error = (SPEC.check_session)("yesterday").unwrap_err().to_string();
    assert!(error.contains("UUID"), "{error}");
}

#[test]
fn the_native_program_is_looked_for_beside_the_launcher() {
    if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        let tail = "codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex";
        assert_eq!(SPEC.natives[0], format!("../../{tail}"));
        assert_eq!(SPEC.natives[1], format!("../node_modules/@openai/{tail}"));
    }
}
