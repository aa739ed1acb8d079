//! Hooks as they are configured, right and wrong.

use super::{super::tests::load, *};

/// Reads a file with one hook.
fn hook(text: &str) -> Result<Hook, String> {
    let loaded = load(&format!("{{\n  hooks: {{\n    one: {{ {text} }}\n  }}\n}}"))?;
    Ok(loaded.config.hooks.iter().next().unwrap().clone())
}

#[test]
fn the_words_are_those_of_the_events() {
    for word in EVENTS {
        let event: HookEvent = serde_json::from_value(json!(word)).unwrap();
        assert_eq!(event.word(), *word);
    }
}

#[test]
fn hooks_are_read_in_the_order_of_the_file() {
    let file = "{ hooks: {
        'tell-me': { on: 'error', url: 'http://127.0.0.1:9/x' },
        log: { on: ['before_turn', 'after_turn'], command: ['/usr/bin/logger', '-t', 'o'],
               timeout: '2m', channels: ['local'] },
        greet: { on: 'start', instruction: 'Say hi.', conversation: 'local:main' },
    } }";
    let loaded = load(file).unwrap();
    let all: Vec<_> = loaded.config.hooks.iter().cloned().collect();
    let names: Vec<_> = all.iter().map(|hook| hook.name.as_str()).collect();
    assert_eq!(names, ["tell-me", "log", "greet"]);
    assert_eq!((all[0].timeout, all[0].on_failure), (DEFAULT_TIMEOUT, OnFailure::Ignore));
    assert_eq!(all[1].on, [HookEvent::BeforeTurn, HookEvent::AfterTurn]);
    assert_eq!(all[1].timeout, Duration::from_secs(120));
    assert_eq!(all[2].conversation.as_ref().unwrap().to_string(), "local:main");
}

#[test]
fn a_program_is_seen_from_the_file() {
    let hook = hook("on: 'stop', command: ['./bin/bye', './x']").unwrap();
    let HookAction::Command(words) = hook.action else { panic!() };
    assert!(words[0].starts_with('/') && words[0].ends_with("/./bin/bye"), "{words:?}");
    assert_eq!(words[1], "./x");
}

#[test]
fn what_does_not_belong_together_is_told_with_key_and_place() {
    let command = "command: ['x']";
    for (text, place, words) in [
        (command.to_owned(), "3:10: hooks.one", "missing key `on`"),
        ("on: 'error'".to_owned(), "3:16: hooks.one", "does nothing"),
        (format!("on: 'error', {command}, url: 'http://h'"), "hooks.one:", "one of instruction"),
        (format!("on: 'never', {command}"), "3:16: hooks.one.on", "\"never\" is none of start"),
        (format!("on: ['error', 'never'], {command}"), "hooks.one.on[1]", "none of start"),
        (format!("on: [], {command}"), "hooks.one.on", "it is empty"),
        (format!("on: 5, {command}"), "hooks.one.on", "expected one or several of start"),
        (format!("on: ['error', 'error'], {command}"), "hooks.one.on", "error is there twice"),
        ("on: 'error', comand: ['x']".to_owned(), "3:25: hooks.one.comand", "`command`"),
        ("on: 'error', url: 'ftp://h/'".to_owned(), "3:30: hooks.one.url", "http"),
        ("on: 'error', url: 'http://u:p@h/'".to_owned(), "hooks.one.url", "password"),
        (format!("on: 'error', {command}, timeout: '11m'"), "hooks.one.timeout", "10m at most"),
        (
            format!("on: 'error', {command}, on_failure: 'fail'"),
            "3:53: hooks.one.on_failure",
            "not error",
        ),
        (format!("on: ['start', 'stop'], {command}, on_failure: 'fail'"), "on_failure", "not stop"),
        (
            format!("on: 'error', {command}, on_failure: 'stop'"),
            "on_failure",
            "none of ignore, fail",
        ),
        (
            format!("on: 'stop', {command}, channels: ['local']"),
            "hooks.one.channels",
            "stop happens in no",
        ),
        (
            format!("on: 'stop', {command}, conversation: 'local:main'"),
            "hooks.one.conversation",
            "only an instruction",
        ),
        ("on: 'error', instruction: ' '".to_owned(), "hooks.one.instruction", "empty"),
        (
            "on: 'error', instruction: 'x', timeout: 5".to_owned(),
            "hooks.one.timeout",
            "agent.timeout",
        ),
        (
            "on: 'before_turn', instruction: 'x', on_failure: 'fail'".to_owned(),
            "on_failure",
            "cannot fail",
        ),
        ("on: 'start', instruction: 'x'".to_owned(), "hooks.one:", "needs the key `conversation`"),
        (
            "on: ['before_turn'], instruction: 'x', conversation: 'local:a'".to_owned(),
            "hooks.one.conversation",
            "nowhere else",
        ),
        (
            "on: 'start', instruction: 'x', conversation: 'main'".to_owned(),
            "hooks.one.conversation",
            "such as local:main",
        ),
        (
            "on: 'start', instruction: 'x', conversation: 'webhook:x'".to_owned(),
            "hooks.one.conversation",
            "not a URL",
        ),
    ] {
        let said = hook(&text).expect_err(&text);
        assert!(said.contains(place) && said.contains(words), "{text}\n  {said}");
        assert!(said.starts_with("ostler.json5:") && said.lines().count() == 1, "{said}");
    }
    for (file, place, words) in [
        ("{ hooks: { One: {} } }", "1:12: hooks.One", "no name for a hook"),
        ("{ hooks: [] }", "1:10: hooks", "expected an object with hooks by name"),
        ("{ hooks: { one: 5 } }", "hooks.one", "expected an object with on, instruction"),
    ] {
        let said = load(file).unwrap_err();
        assert!(said.contains(place) && said.contains(words), "{file}\n  {said}");
    }
    // Unlike an agent, a hook can have any name.
    assert!(load("{ hooks: { claude: { on: 'error', command: ['x'] } } }").is_ok());
}
