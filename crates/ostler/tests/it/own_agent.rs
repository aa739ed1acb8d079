//! An agent from the configuration: wherever an agent's name is taken.

mod hostile;

use std::fs;

use serde_json::json;

use crate::{
    conformance::chat::Chat,
    support::{Outcome, Place},
};

/// The command with which the scripted agent speaks ACP.
fn command() -> serde_json::Value {
    json!([env!("CARGO_BIN_EXE_ostler"), "scripted", "--as", "gemini", "--", "--acp"])
}

/// Writes a configuration with one agent, called `own`.
fn configure(place: &Place, command: serde_json::Value) {
    let version = json!([env!("CARGO_BIN_EXE_ostler"), "--version"]);
    let own = json!({ "dialect": "acp", "command": command, "env": { "MINE": "given" },
                      "pass_env": ["PASSED"], "version": version });
    fs::write(place.work().join("ostler.json5"), json!({ "agents": { "own": own } }).to_string())
        .unwrap();
}

fn configured() -> Place {
    let place = Place::new();
    configure(&place, command());
    place
}

#[test]
fn a_turn_runs_and_its_session_goes_on() {
    let place = configured();
    let run = |more: &[&str]| {
        let args = [&["run", "--agent", "own", "--permissions", "bypass"], more].concat();
        place.run(&args)
    };
    let first = run(&["--output", "json", "one sim:tool"]);
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    let report = first.json();
    assert_eq!((&report["agent"], &report["mode"]), (&json!("own"), &json!("one_shot")));
    assert!(report["response_text"].as_str().unwrap().contains("pretended to run"));
    let id = report["session_id"].as_str().unwrap().to_owned();
    let second = run(&["--output", "json", "--session", &id, "two sim:history"]);
    let report = second.json();
    assert_eq!(report["session_id"], *id);
    let text = report["response_text"].as_str().unwrap();
    assert!(text.contains("so far: 2") && !text.contains("pretended"), "{text}");
    let third = run(&["--output", "json", "--continue", "three sim:history"]);
    assert!(third.stdout.contains("so far: 3"), "{}{}", third.stdout, third.stderr);
    assert!(place.is_swept());
}

#[test]
fn the_events_of_a_turn_are_those_of_every_agent() {
    let place = configured();
    let outcome = place.run(&[
        "run",
        "--agent",
        "own",
        "--permissions",
        "bypass",
        "--output",
        "stream-json",
        "sim:tool",
    ]);
    let events = outcome.events();
    for kind in ["started", "tool_use", "tool_result", "output", "complete"] {
        assert!(events.types().contains(&kind), "{kind}: {}", outcome.stdout);
    }
}

#[test]
fn a_lost_session_and_a_wrong_name_are_told_as_such() {
    let place = configured();
    let lost =
        place.run(&["run", "--agent", "own", "--output", "json", "--session", "nobody", "hi"]);
    assert_eq!(lost.code, Some(1));
    assert_eq!(lost.json()["error"]["kind"], "session_lost");
    let wrong = place.run(&["run", "--agent", "owl", "hi"]);
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.stderr.contains("invalid agent provider") && wrong.stderr.contains("pi, own"));
    let mut command = place.ostler(&["run", "hi"]);
    command.env("AGENT_BACKEND", "own");
    let backend = Outcome::of_input(command, None);
    assert_eq!(backend.code, Some(2), "{}", backend.stderr);
    assert!(!backend.stderr.contains("pi, own"), "{}", backend.stderr);
}

#[test]
fn a_conversation_keeps_the_agent_and_asks() {
    let place = configured();
    let args = ["chat", "--agent", "own", "--permissions", "ask", "--output", "stream-json"];
    let mut chat = Chat::start(place.ostler(&args));
    for (decision, happens) in [("allow", true), ("deny", false)] {
        chat.prompt("sim:tool");
        let asked = chat.wait_for(|event| event["type"] == "permission");
        assert_eq!(asked["kind"], "command", "{asked}");
        assert!(!asked["title"].as_str().unwrap().is_empty(), "{asked}");
        chat.answer(&asked["request"], decision);
        let events = chat.finish();
        let text = events.last()["response_text"].as_str().unwrap();
        assert_eq!(text.contains("pretended to run"), happens, "{text}");
        assert_eq!(events.last()["mode"], "warm");
    }
    let text = chat.answer_to("sim:history");
    assert!(text.contains("so far: 3"), "{text}");
    chat.end();
}

#[test]
fn its_environment_has_what_was_named_and_nothing_else() {
    let place = Place::new();
    let seen = place.path("seen");
    let text = format!("#!/bin/sh\nenv > {}\n", seen.display());
    let program = place.program("own", &text);
    configure(&place, json!([program]));
    let mut command = place.ostler(&["run", "--agent", "own", "hi"]);
    command.env("PASSED", "on").env("PASSED_TOO", "no").env("ANTHROPIC_API_KEY", "secret");
    let outcome = Outcome::of_input(command, None);
    assert_eq!(outcome.code, Some(1), "{}", outcome.stderr);
    let seen = fs::read_to_string(seen).unwrap();
    assert!(seen.contains("MINE=given") && seen.contains("PASSED=on"), "{seen}");
    assert!(!seen.contains("PASSED_TOO") && !seen.contains("secret"), "{seen}");
}

#[test]
fn it_is_listed_and_examined_with_the_others() {
    let place = configured();
    let listed = |args: &[&str]| {
        let agents = place.run(&[&["agents", "--output", "json"], args].concat()).json();
        agents.as_array().unwrap().last().unwrap().clone()
    };
    let own = listed(&["--config", "ostler.json5"]);
    assert_eq!((&own["name"], &own["configured"]), (&json!("own"), &json!(true)));
    assert_eq!(own["version"], env!("CARGO_PKG_VERSION"));
    // A file that only lies there makes nothing run.
    let found = listed(&[]);
    assert_eq!((&found["name"], &found["version"]), (&json!("own"), &json!(null)));
    let doctor = place.run(&["doctor", "--live", "--output", "json"]);
    assert_eq!(doctor.code, Some(0), "{}", doctor.stdout);
    let findings = doctor.json()["findings"].take();
    let live = findings.as_array().unwrap().iter().find(|one| one["area"] == "live");
    let live = live.unwrap();
    assert_eq!((&live["agent"], &live["level"]), (&json!("own"), &json!("ok")));
    assert!(live["message"].as_str().unwrap().contains("speaks ACP"), "{live}");
}

#[test]
fn one_that_is_not_there_is_an_error_of_the_doctor_and_exit_3_of_a_run() {
    let place = Place::new();
    configure(&place, json!(["no-such-program", "acp"]));
    let run = place.run(&["run", "--agent", "own", "hi"]);
    assert_eq!(run.code, Some(3));
    assert!(run.stderr.contains("own: program `no-such-program` was not found"), "{}", run.stderr);
    assert_eq!(place.run(&["doctor"]).code, Some(1));
}

#[test]
fn the_doctor_does_not_show_the_arguments() {
    let place = Place::new();
    let program = place.program("own", "#!/bin/sh\nexit 3\n");
    configure(&place, json!([program, "--token", "secret-word"]));
    let doctor = place.run(&["doctor", "--live"]);
    assert_eq!(doctor.code, Some(1), "{}", doctor.stdout);
    assert!(doctor.stdout.contains("when it is run by hand"), "{}", doctor.stdout);
    assert!(!doctor.stdout.contains("secret-word"), "{}", doctor.stdout);
}

#[test]
fn a_broken_configuration_is_exit_2_for_every_command() {
    let place = Place::new();
    fs::write(place.path("bad.json5"), "{ agents: { own: { dialect: 'acp', comand: [] } } }")
        .unwrap();
    let path = place.path("bad.json5").display().to_string();
    for args in [&["agents"][..], &["doctor"], &["run", "hi"], &["chat"]] {
        let args = [args, &["--config", &path]].concat();
        let outcome = place.run(&args);
        assert_eq!(outcome.code, Some(2), "{args:?}");
        assert!(outcome.stderr.contains("bad.json5:1:36: agents.own"), "{}", outcome.stderr);
    }
    let mut command = place.ostler(&["agents"]);
    command.env("OSTLER_CONFIG", place.path("nothing.json5"));
    let outcome = Outcome::of_input(command, None);
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stderr.contains("nothing.json5: could not be read"), "{}", outcome.stderr);
}

#[test]
fn a_program_of_ones_own_registers_it_like_any_other() {
    use std::sync::Arc;

    use ostler_core::{
        CliAgent, Host, HostConfig, TurnRequest,
        agent::{AgentName, acp::AcpAgent},
        event::Mode,
        registry::Registry,
    };

    let place = Place::new();
    let environment = ["HOME", "TMPDIR", "OSTLER_DATA_DIR"]
        .map(|name| (name.into(), place.path("data").into_os_string()));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let host = Host::new(HostConfig::from_environment(environment.into()));
        let words = command();
        let command =
            words.as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned());
        let own =
            AcpAgent { name: "own".into(), command: command.collect(), ..AcpAgent::default() };
        let agent = CliAgent::new(own.spec().unwrap(), host.clone());
        let request = TurnRequest::new("?", place.work());
        let about = agent.handshake(&request, crate::support::LIMIT).await.unwrap();
        assert!(about.can_continue);
        let registry = Registry::new();
        registry.register(Arc::new(agent));
        assert_eq!(registry.list_available().await.len(), 1);
        let agent = registry.get(&AgentName::new("own")).unwrap();
        for mode in [Mode::OneShot, Mode::Warm] {
            let mut request = TurnRequest::new("hello", place.work());
            request.mode = mode;
            let report = agent.start(request).await.unwrap().end().await.unwrap();
            assert_eq!((report.error, report.mode), (None, mode));
            assert_eq!(report.agent, "own");
        }
        assert!(host.shutdown(crate::support::LIMIT).await);
    });
}
