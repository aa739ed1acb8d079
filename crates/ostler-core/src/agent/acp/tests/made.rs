//! What an agent is made of, and its command line.

use super::*;
use crate::agent::{
    Stdin, Stdout,
    testing::{argv, launch_of, variable},
};

#[test]
fn names_are_plain_words_that_no_other_agent_has() {
    for name in ["goose", "a", "my-agent-2"] {
        assert_eq!(named(name).spec().unwrap().name, name);
    }
    for name in ["", "Goose", "2x", "-x", "a_b", "a b", "ä", "a/b", "a\n"] {
        let bad = CustomError::BadName { name: name.to_owned() };
        assert_eq!(named(name).spec().unwrap_err(), bad, "{name:?}");
    }
    for name in ["claude", "codex", "gemini", "opencode", "pi", "claudecode"] {
        let taken = CustomError::TakenName { name: name.to_owned() };
        assert_eq!(named(name).spec().unwrap_err(), taken);
    }
}

#[test]
fn what_no_program_can_be_given_is_refused() {
    let text = |text: &str| text.to_owned();
    for (field, agent) in [
        ("command", AcpAgent { command: Vec::new(), ..named("x") }),
        ("command", AcpAgent { command: vec![text("")], ..named("x") }),
        ("command", AcpAgent { command: vec![text("a"), text("b\0")], ..named("x") }),
        ("version", AcpAgent { version: Some(Vec::new()), ..named("x") }),
        ("env", AcpAgent { env: vec![(text("A=B"), text(""))], ..named("x") }),
        ("env", AcpAgent { env: vec![(text("A"), text("\0"))], ..named("x") }),
        ("pass_env", AcpAgent { pass_env: vec![text("")], ..named("x") }),
    ] {
        let error = agent.spec().unwrap_err().to_string();
        assert!(error.starts_with(field), "{field}: {error}");
    }
}

#[test]
fn a_value_that_is_refused_is_not_shown() {
    let env = vec![("TOKEN".to_owned(), "secret\0".to_owned())];
    let error = AcpAgent { env, ..named("x") }.spec().unwrap_err().to_string();
    assert!(error.contains("TOKEN") && !error.contains("secret"), "{error}");
}

#[test]
fn the_command_line_is_the_operators_own_and_what_is_ignored_is_said() {
    let mut agent = named("own");
    agent.env = vec![("MINE".into(), "1".into()), ("HOME".into(), "/elsewhere".into())];
    agent.pass_env = vec!["KEY".into()];
    let spec = agent.spec().unwrap();
    let mut options = asking();
    options.extra_args = vec!["--more".into()];
    options.max_turns = Some(3);
    options.allowed_tools = Some(vec!["Read".into()]);
    let line = (spec.launch)(&launch_of(&spec, &options, &Open::New, "--help")).unwrap();
    assert_eq!(argv(&line), ["acp", "--more"]);
    assert_eq!((line.stdin.clone(), line.stdout), (Stdin::Open, Stdout::Pipe));
    assert_eq!(variable(&line, "MINE"), Some("1"));
    assert_eq!(variable(&line, "HOME"), Some("/elsewhere"));
    assert_eq!(line.warnings.len(), 3, "{:?}", line.warnings);
    assert!(spec.env.contains("KEY") && !spec.env.contains("KEY_2"));
    options.home = Some("/a/home".into());
    let line = (spec.launch)(&launch_of(&spec, &options, &Open::New, "hi")).unwrap();
    assert_eq!(variable(&line, "HOME"), None, "an isolated agent has another home");
}

#[test]
fn a_command_line_from_a_template_is_refused() {
    let spec = named("own").spec().unwrap();
    let mut options = asking();
    options.template = Some(crate::request::Template::default());
    assert!((spec.launch)(&launch_of(&spec, &options, &Open::New, "hi")).is_err());
}
