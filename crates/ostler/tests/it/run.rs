//! What `ostler run` promises, with the scripted agent as the CLI.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Outcome, Place};

/// Writes an agent that plays Claude or Codex with sessions that last.
fn player(place: &Place, name: &str) -> String {
    let program = place.script(&json!([{ "do": "agent", "name": name }]));
    program.to_str().unwrap().to_owned()
}

#[test]
fn a_mock_cli_goes_through_configuration_registry_agent_and_parser() {
    for name in ["claude", "codex"] {
        let place = Place::new();
        let program = player(&place, name);
        let mut command = place.ostler(&["run", "--output", "json", "hello"]);
        command.env("AGENT_BACKEND", name).env("BACKEND_CLI_PATH", &program);
        let outcome = Outcome::of_input(command, None);
        assert_eq!(outcome.code, Some(0), "{}{}", outcome.stdout, outcome.stderr);
        let object = outcome.json();
        assert_eq!(object["agent"], name);
        assert!(object["response_text"].as_str().unwrap().contains("scripted agent"));
    }
}

#[test]
fn the_first_event_is_started_and_the_last_is_complete() {
    let place = Place::new();
    let program = player(&place, "claude");
    let args = ["run", "--bin", &program, "--permissions", "read-only", "--output", "stream-json"];
    let events = place.run_with_input(&args, b"sim:tool").events();
    let started = events.of_type("started").next().unwrap();
    assert_eq!(started["seq"], 1);
    for (key, value) in [
        ("agent", json!("claude")),
        ("mode", json!("one_shot")),
        ("session_id", Value::Null),
        ("resumed", json!(false)),
        ("attempt", json!(1)),
        ("trigger", json!("prompt")),
    ] {
        assert_eq!(started[key], value, "{key}");
    }
    let turn = started["turn"].as_str().unwrap();
    assert!(turn.starts_with("trn_"), "{turn}");
    assert_eq!(events.of_type("tool_use").count(), 1);
    assert_eq!(events.of_type("tool_result").count(), 1);
}

#[test]
fn sessions_go_on_by_id_and_by_continue() {
    for name in ["claude", "codex"] {
        let place = Place::new();
        let program = player(&place, name);
        let run = |args: &[&str]| {
            let mut all = vec!["run", "--agent", name, "--bin", &program, "--output", "json"];
            all.extend(args);
            place.run(&all).json()
        };
        let first = run(&["one"]);
        let session = first["session_id"].as_str().unwrap();
        let second = run(&["--session", session, "sim:history"]);
        let third = run(&["--continue", "sim:history"]);
        for (object, count) in [(&second, 2), (&third, 3)] {
            assert_eq!(object["session_id"], session);
            let text = object["response_text"].as_str().unwrap();
            assert!(text.contains(&format!("so far: {count}")), "{text}");
            assert_eq!(object["usage"], first["usage"], "each turn counts itself");
        }
    }
}

#[test]
fn dry_run_prints_the_plan_and_starts_nothing() {
    let place = Place::new();
    let program = place.script(&json!([{ "do": "report", "path": "started" }]));
    let bin = program.to_str().unwrap();
    let args =
        ["run", "--bin", bin, "--dry-run", "--env", "KEY=secret-value", "--system", "Be kind."];
    let mut json_args = args.to_vec();
    json_args.extend(["--output", "json", "hello"]);
    let plan = place.run(&json_args).json();
    assert_eq!(plan["argv"][0], bin);
    assert!(plan["environment"].as_array().unwrap().contains(&json!("KEY")));
    assert!(plan["stdin"].as_str().unwrap().contains("hello"));
    assert_eq!(plan["files"][0]["text"], "Be kind.");
    assert_eq!(plan["stop"][0], "SIGTERM 5s");
    assert!(!plan.to_string().contains("secret-value"), "{plan}");
    let mut text_args = args.to_vec();
    text_args.push("hello");
    let text = place.run(&text_args);
    assert_eq!(text.code, Some(0));
    assert!(text.stdout.starts_with("command "), "{}", text.stdout);
    assert!(!place.path("started").exists());
    assert!(place.is_swept());
}

#[test]
fn the_literal_lines_of_json_and_bypass_are_word_for_word() {
    let place = Place::new();
    let bin = player(&place, "claude");
    let work = place.work().canonicalize().unwrap().display().to_string();
    let argv = |args: &[&str]| -> Vec<String> {
        let mut all = vec!["run", "--bin", &bin, "--format", "json", "--permissions", "bypass"];
        all.extend(["--dry-run", "--output", "json"]);
        all.extend(args);
        let plan = place.run(&all).json();
        let words = plan["argv"].as_array().unwrap().iter().skip(1);
        words.map(|word| word.as_str().unwrap().to_owned()).collect()
    };
    let id = "11111111-2222-4333-8444-555555555555";
    let mut claude = argv(&[
        "--max-turns",
        "7",
        "--allow-tool",
        "Bash",
        "--allow-tool",
        "Read",
        "--model",
        "opus",
        "--session",
        id,
        "--system",
        "x",
        "hello",
    ]);
    let file = claude.iter().position(|word| word == "--append-system-prompt-file").unwrap() + 1;
    claude[file] = "FILE".to_owned();
    let line = claude.join(" ");
    assert!(
        line.starts_with(
            "-p hello --output-format json --dangerously-skip-permissions \
        --append-system-prompt-file FILE --max-turns 7 --allowedTools Bash --allowedTools Read"
        ),
        "{line}"
    );
    assert!(line.ends_with(&format!("--model opus --resume {id}")), "{line}");
    assert!(line.contains("--tools Bash,Read"), "{line}");
    let codex = argv(&["--agent", "codex", "--model", "m", "--session", id, "hello"]);
    let expected = format!(
        "exec --json --skip-git-repo-check \
        --dangerously-bypass-approvals-and-sandbox --cd {work} --model m resume {id} hello"
    );
    assert_eq!(codex.join(" "), expected);
}

#[test]
fn the_agent_gets_a_clean_environment_and_a_private_folder() {
    let place = Place::new();
    let report = place.path("report.json");
    let program = place.script(&json!([{ "do": "report", "path": report, "stdin": "read" }]));
    let mut command =
        place.ostler(&["run", "--bin", program.to_str().unwrap(), "--env", "GIVEN", "hi"]);
    command.env("GIVEN", "by name").env("OSTLER_DATABASE_URL", "secret").env("UNRELATED", "x");
    Outcome::of_input(command, None);
    let report: Value = serde_json::from_str(&fs::read_to_string(report).unwrap()).unwrap();
    let environment = report["env"].as_object().unwrap();
    assert_eq!(environment["GIVEN"], "by name");
    assert!(environment["OSTLER_TURN"].as_str().unwrap().starts_with("trn_"));
    let folder = environment["TMPDIR"].as_str().unwrap();
    assert!(folder.starts_with(place.path("tmp").to_str().unwrap()), "{folder}");
    assert!(!fs::exists(folder).unwrap(), "the folder is gone with the turn");
    for name in ["OSTLER_DATABASE_URL", "UNRELATED", "OSTLER_DATA_DIR"] {
        assert!(!environment.contains_key(name), "{name}");
    }
}

#[test]
fn a_reader_that_goes_away_ends_the_turn() {
    let place = Place::new();
    let pid_file = place.path("pid");
    let program = place.script(&json!([
        { "do": "spawn", "kind": "own_session", "sleep_s": 600, "pid_file": pid_file },
        { "do": "line", "text": "first" },
        { "do": "wait_for", "path": "go" },
        { "do": "flood", "bytes": 1_000_000 },
        { "do": "hang" },
    ]));
    let args = ["run", "--bin", program.to_str().unwrap(), "--output", "stream-json", "hi"];
    let mut child = place.ostler(&args).spawn().unwrap();
    let mut stdout = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("first") {
        line.clear();
        std::io::BufRead::read_line(&mut stdout, &mut line).unwrap();
    }
    drop(stdout);
    fs::write(place.path("go"), "").unwrap();
    let status = crate::support::until("it ends", || child.try_wait().unwrap());
    assert_eq!(status.code(), Some(130));
    let pid = fs::read_to_string(pid_file).unwrap().trim().parse().unwrap();
    assert!(!crate::support::is_live(pid));
}

#[test]
fn warnings_about_the_environment_go_to_standard_error() {
    let place = Place::new();
    let program = player(&place, "claude");
    let mut command = place.ostler(&["run", "--bin", &program, "--output", "json", "hi"]);
    command.env("BACKEND_MAX_TURNS", "lots");
    let outcome = Outcome::of_input(command, None);
    assert_eq!(outcome.code, Some(0));
    assert!(outcome.stderr.contains("BACKEND_MAX_TURNS"), "{}", outcome.stderr);
}

#[test]
fn on_a_terminal_the_answer_streams_and_tools_are_shown_beside_it() {
    let place = Place::new();
    let program = player(&place, "claude");
    let own = env!("CARGO_BIN_EXE_ostler");
    let line = format!("{own} run --bin {program} --permissions read-only 'sim:tool'");
    let mut command = std::process::Command::new("script");
    command
        .args(["-qec", &line, "/dev/null"])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", place.path("home"))
        .env("OSTLER_DATA_DIR", place.path("data"))
        .env("TMPDIR", place.path("tmp"))
        .current_dir(place.work())
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let outcome = Outcome::of_input(command, None);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stdout);
    let shown = outcome.stdout.replace("\r\n", "\n");
    let (before, after) = shown.split_once("→ Bash: echo hi\n").expect("the tool is shown");
    assert!(!before.contains("This is Ostler's scripted agent"), "{shown}");
    assert!(after.starts_with("This is Ostler's scripted agent playing claude"), "{shown}");
    assert_eq!(after.matches("This is Ostler's scripted agent").count(), 1, "{shown}");
}

#[test]
fn an_answer_cannot_control_the_terminal() {
    let place = Place::new();
    let text = "before \u{1b}]52;c;ZXZpbA==\u{7} after";
    let result = json!({ "type": "result", "is_error": false, "result": text, "session_id": "s" });
    let program = place.script(&json!([{ "do": "json", "value": result }]));
    let ostler = env!("CARGO_BIN_EXE_ostler");
    let line = format!("{ostler} run --permissions bypass --bin {} hi", program.display());
    let mut command = std::process::Command::new("script");
    command
        .args(["-qec", &line, "/dev/null"])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", place.path("home"))
        .env("TMPDIR", place.path("tmp"))
        .current_dir(place.work())
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let shown = Outcome::of_input(command, None).stdout;
    assert!(shown.contains("before") && shown.contains("after"), "{shown:?}");
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
}

#[test]
fn a_refused_request_also_ends_with_the_object_of_the_contract() {
    let place = Place::new();
    let program = player(&place, "codex");
    let args = ["run", "--agent", "codex", "--bin", &program, "--session", "no-uuid"];
    let json = place.run(&[&args[..], &["--output", "json", "hi"]].concat());
    assert_eq!((json.code, &json.json()["error"]["kind"]), (Some(2), &"invalid_request".into()));
    let events = place.run(&[&args[..], &["--output", "stream-json", "hi"]].concat());
    assert_eq!(events.events().last()["error"]["kind"], "invalid_request");
}
