//! `ostler config`, and what other commands take from the configuration.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Outcome, Place};

fn with_file(text: &str) -> Place {
    let place = Place::new();
    fs::write(place.work().join("ostler.json5"), text).unwrap();
    place
}

/// Returns what would be run, and what was said besides.
fn planned(place: &Place, args: &[&str], env: &[(&str, &str)]) -> (Value, String) {
    let program = place.program("codex", "#!/bin/sh\n");
    let folder = program.parent().unwrap().display().to_string();
    let mut command =
        place.ostler(&[&["run", "--dry-run", "--output", "json"], args, &["hi"]].concat());
    command.env("PATH", format!("{folder}:/usr/bin:/bin")).envs(env.iter().copied());
    let outcome = Outcome::of_input(command, None);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    (outcome.json(), outcome.stderr)
}

#[test]
fn every_mistake_is_told_and_the_exit_code_is_2() {
    let place = with_file("{\n  agent: { modle: 'x' },\n  gateway: { max_queue_depth: 0 },\n}");
    let mut command = place.ostler(&["config", "check"]);
    command.env("QUERY_TIMEOUT_MS", "soon");
    let outcome = Outcome::of_input(command, None);
    assert_eq!(outcome.code, Some(2));
    for line in [
        "ostler: ostler.json5:2:12: agent.modle: unknown key; did you mean `model`?\n",
        "ostler: ostler.json5:3:31: gateway.max_queue_depth: 0 is not a whole number",
        "ostler: QUERY_TIMEOUT_MS: invalid timeout \"soon\"",
    ] {
        assert!(outcome.stderr.contains(line), "{}", outcome.stderr);
    }
    let outcome = place.run(&["config", "check", "--output", "json"]);
    let object = outcome.json();
    assert_eq!((outcome.code, &object["ok"]), (Some(2), &json!(false)));
    assert_eq!(object["errors"].as_array().unwrap().len(), 2);
    let first = &object["errors"][0];
    assert_eq!((&first["line"], &first["column"]), (&json!(2), &json!(12)));
    assert_eq!((&first["key"], &first["source"]), (&json!("agent.modle"), &json!("ostler.json5")));
    assert_eq!(place.run(&["run", "hi"]).code, Some(2), "nothing runs");
}

#[test]
fn what_is_no_configuration_file_is_refused() {
    let place = Place::new();
    let check = |path: &str| {
        let outcome = place.run(&["config", "check", path]);
        assert_eq!(outcome.code, Some(2), "{path}");
        assert!(!outcome.stderr.contains("panicked"), "{}", outcome.stderr);
        outcome.stderr
    };
    assert!(check(".").contains("is a directory"));
    assert!(check("none.json5").contains("could not be read"));
    let write = |bytes: &[u8]| fs::write(place.work().join("x"), bytes).unwrap();
    write(b"\x7fELF\x02\x01\x00\xff");
    assert!(check("x").contains("UTF-8"));
    write("{ a: ".repeat(50_000).as_bytes());
    assert!(check("x").contains("too deeply"));
    fs::File::create(place.work().join("x")).unwrap().set_len(50 << 20).unwrap();
    assert!(check("x").contains("larger than 1 MiB"));
    write("\u{feff}{ busy: 'steer' }".as_bytes());
    assert_eq!(place.run(&["config", "check", "x"]).code, Some(0));
}

#[test]
fn the_default_file_can_be_used_as_it_is_printed() {
    let place = Place::new();
    let printed = place.run(&["config", "default"]);
    fs::write(place.work().join("own.json5"), &printed.stdout).unwrap();
    let outcome = place.run(&["config", "check", "own.json5"]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), "own.json5: all is well.\n"));
    let schema = place.run(&["config", "schema"]).json();
    assert_eq!(schema["properties"]["busy"]["default"], "queue");
}

#[test]
fn a_value_is_shown_with_its_source_and_a_secret_is_not_shown() {
    let place = with_file("{ opencode: { password: 'very-secret' }, busy: 'steer' }");
    for form in ["text", "json"] {
        let mut command = place.ostler(&["config", "show", "--output", form]);
        command.env("BACKEND_MODEL", "m").env("DISCORD_BOT_TOKEN", "very-secret");
        command.env("TWILIO_AUTH_TOKEN", "very-secret").env("WOODPECKER_API_TOKEN", "very-secret");
        command.env("OSTLER_DATABASE_URL", "postgres://me:very-secret@host/db");
        let outcome = Outcome::of_input(command, None);
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        let all = format!("{}{}", outcome.stdout, outcome.stderr);
        assert!(!all.contains("very-secret"), "{all}");
        if form == "text" {
            assert!(all.contains("busy = \"steer\"  (ostler.json5:1:48)\n"), "{all}");
            assert!(all.contains("agent.model = \"m\"  (BACKEND_MODEL)\n"), "{all}");
            let hidden = "twilio.auth_token = \"(hidden)\"  (TWILIO_AUTH_TOKEN)\n";
            assert!(all.contains(hidden), "{all}");
            assert!(all.contains("WOODPECKER_API_TOKEN  (set, but not used yet)\n"), "{all}");
        } else {
            assert_eq!(outcome.json()["unused"], json!(["WOODPECKER_API_TOKEN"]));
        }
    }
}

#[test]
fn what_needs_a_restart_is_told_of_two_files() {
    let place = with_file("{ gateway: { listen: '127.0.0.1:1' }, busy: 'steer' }");
    fs::write(place.work().join("old.json5"), "{}").unwrap();
    let outcome = place.run(&["config", "check", "--compare", "old.json5", "--output", "json"]);
    let expected = json!([
        { "key": "gateway.listen", "effect": "restart" },
        { "key": "busy", "effect": "live" },
    ]);
    assert_eq!(outcome.json()["changes"], expected, "{}", outcome.stderr);
}

#[test]
fn a_run_takes_its_defaults_from_the_file_and_the_flag_wins() {
    let place = with_file("{ agent: { default: 'codex', model: 'from-file' } }");
    let (plan, _) = planned(&place, &[], &[]);
    assert_eq!(plan["agent"], "codex");
    assert!(plan["argv"].to_string().contains("from-file"), "{plan}");
    let (plan, _) = planned(&place, &[], &[("BACKEND_MODEL", "from-env")]);
    assert!(plan["argv"].to_string().contains("from-env"), "{plan}");
    let flags = ["--model", "from-flag"];
    let (plan, _) = planned(&place, &flags, &[("BACKEND_MODEL", "from-env")]);
    assert!(plan["argv"].to_string().contains("from-flag"), "{plan}");
}

#[test]
fn a_strangers_directory_allows_nothing_until_it_is_trusted() {
    let place = with_file("{ agent: { default: 'codex', permissions: 'bypass' } }");
    fs::write(place.work().join(".env"), "BACKEND_CLI_PATH=./evil\n").unwrap();
    let bypass = "--dangerously-bypass-approvals-and-sandbox";
    let (plan, said) = planned(&place, &[], &[]);
    assert!(!plan.to_string().contains(bypass) && !plan.to_string().contains("evil"), "{plan}");
    assert!(said.contains("agent.permissions is not used from here"), "{said}");
    assert!(said.contains(".env:1: BACKEND_CLI_PATH: agent.path is not used"), "{said}");
    place.program("evil", "#!/bin/sh\n");
    fs::rename(place.path("bin/evil"), place.work().join("evil")).unwrap();
    let (plan, said) = planned(&place, &["--trust-project"], &[]);
    assert!(plan.to_string().contains(bypass) && plan.to_string().contains("evil"), "{plan}");
    assert!(!said.contains("not used"), "{said}");
    fs::remove_file(place.work().join(".env")).unwrap();
    let (plan, _) = planned(&place, &["--config", "ostler.json5"], &[]);
    assert!(plan.to_string().contains(bypass), "{plan}");
}
