//! `ostler doctor` on machines that lack something.

mod live;

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    process::{Command, Stdio},
};

use ostler_core::agent::{AGENTS, AgentSpec};
use serde_json::{Value, json};

use crate::support::{Outcome, Place, Running, is_live};

/// What the doctor said.
struct Said {
    code: Option<i32>,
    whole: Value,
}

impl Said {
    /// Runs `ostler doctor` with nothing in PATH but the place's programs.
    fn by(place: &Place, args: &[&str]) -> Self {
        Self::of(doctor(place, args))
    }

    fn of(command: Command) -> Self {
        let outcome = Outcome::of_input(command, None);
        Self { code: outcome.code, whole: outcome.json() }
    }

    fn findings(&self) -> Vec<&Value> {
        self.whole["findings"].as_array().unwrap().iter().collect()
    }

    /// Returns the findings of an area, about an agent or about none.
    fn about(&self, area: &str, agent: Option<&str>) -> Vec<&Value> {
        let is_it = |finding: &&Value| finding["area"] == area && finding["agent"] == json!(agent);
        self.findings().into_iter().filter(is_it).collect()
    }

    fn only(&self, area: &str, agent: Option<&str>) -> &Value {
        match self.about(area, agent).as_slice() {
            [one] => one,
            other => panic!("{area} of {agent:?}: {other:?}"),
        }
    }

    /// Returns the messages of the live turns of an agent, put together.
    fn live(&self, spec: &AgentSpec) -> String {
        let findings = self.about("live", Some(&spec.name)).into_iter();
        findings.map(|finding| format!("{}\n", message(finding))).collect()
    }
}

fn message(finding: &Value) -> &str {
    finding["message"].as_str().unwrap()
}

fn fix(finding: &Value) -> &str {
    finding["fix"].as_str().unwrap()
}

fn doctor(place: &Place, args: &[&str]) -> Command {
    let mut all = vec!["doctor", "--output", "json"];
    all.extend(args);
    let mut command = place.ostler(&all);
    command.env("PATH", place.path("bin"));
    command
}

fn tested(spec: &AgentSpec) -> &'static str {
    spec.tested_versions.first().unwrap()
}

#[test]
fn an_empty_machine_is_no_error_and_every_finding_has_the_documented_shape() {
    let place = Place::new();
    let said = Said::by(&place, &["--live"]);
    assert_eq!(said.code, Some(0), "{}", said.whole);
    let keys: Vec<_> = said.whole.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["findings", "ok"]);
    assert_eq!(said.whole["ok"], true);
    for finding in said.findings() {
        let keys: Vec<_> = finding.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["agent", "area", "fix", "level", "message"]);
        let level = finding["level"].as_str().unwrap();
        assert!(["ok", "info", "warning", "error"].contains(&level), "{finding}");
        assert!(level == "ok" || finding["fix"].is_string(), "what to do about it: {finding}");
    }
    for spec in AGENTS {
        let missing = said.only("binary", Some(&spec.name));
        assert_eq!(missing["level"], "info");
        assert_eq!(missing["fix"], spec.install_hint);
    }
    assert_eq!(message(said.only("binary", None)), "no agent is installed");
    assert!(place.is_swept());
}

#[test]
fn people_get_a_line_for_each_finding_with_the_fix_below() {
    let place = Place::new();
    let mut command = place.ostler(&["doctor"]);
    command.env("PATH", "/nowhere");
    let outcome = Outcome::of_input(command, None);
    assert_eq!(outcome.code, Some(0));
    let spec = AGENTS.first().unwrap();
    let line = format!("· {:<9} `{}` is not installed\n", spec.name, spec.program);
    let fixed = format!("{line}            → {}\n", spec.install_hint);
    assert!(outcome.stdout.contains(&fixed), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("\n\nNothing is broken; "), "{}", outcome.stdout);
}

#[test]
fn a_chosen_backend_that_is_missing_or_no_program_is_an_error() {
    let place = Place::new();
    let spec = AGENTS.first().unwrap();
    let mut command = doctor(&place, &[]);
    command.env("AGENT_BACKEND", &*spec.name);
    let said = Said::of(command);
    assert_eq!(said.code, Some(1));
    assert_eq!(said.whole["ok"], false);
    assert_eq!(said.only("binary", Some(&spec.name))["level"], "error");
    let program = place.program("own", "#!/bin/sh\n");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o644)).unwrap();
    for (path, words) in [(program, "is not executable"), (place.path("gone"), "does not exist")] {
        let mut command = doctor(&place, &[]);
        command.env("AGENT_BACKEND", &*spec.name).env("BACKEND_CLI_PATH", &path);
        let said = Said::of(command);
        let found = said.only("binary", Some(&spec.name));
        assert_eq!((said.code, &found["level"]), (Some(1), &json!("error")));
        assert!(message(found).contains(words), "{found}");
    }
}

#[test]
fn versions_are_tested_newer_older_or_unreadable() {
    for spec in AGENTS {
        for (version, level, words) in [
            (tested(spec), "ok", "is tested"),
            ("9999.0.0", "warning", "newer than what was tested"),
            ("0.0.1", "warning", "older than what was tested"),
            ("unspoken", "warning", "could not be read"),
        ] {
            let place = Place::new();
            place.program(&spec.program, &format!("#!/bin/sh\necho {version}\n"));
            let said = Said::by(&place, &[]);
            assert_eq!(said.code, Some(0), "a version alone breaks nothing: {}", said.whole);
            let found = said.only("version", Some(&spec.name));
            assert_eq!(found["level"], level, "{found}");
            assert!(message(found).contains(words), "{found}");
        }
    }
}

#[test]
fn a_script_of_nodes_without_node_is_an_error() {
    let place = Place::new();
    let spec = AGENTS.first().unwrap();
    place.program(&spec.program, "#!/usr/bin/env node\n");
    let said = Said::by(&place, &[]);
    assert_eq!(said.code, Some(1));
    assert!(message(said.only("node", Some(&spec.name))).contains("no `node` in PATH"));
    place.program("node", "#!/bin/sh\necho v99.1.2\n");
    let said = Said::by(&place, &[]);
    let found = said.only("node", Some(&spec.name));
    assert_eq!(found["level"], "ok");
    assert!(message(found).contains("Node 99.1.2"), "{found}");
}

#[test]
fn folders_that_cannot_be_used_are_errors_with_the_variable_to_set() {
    let place = Place::new();
    fs::write(place.path("file"), "").unwrap();
    let mut command = doctor(&place, &["--live"]);
    command.env("OSTLER_DATA_DIR", place.path("file/data")).env("TMPDIR", place.path("file/tmp"));
    let said = Said::of(command);
    assert_eq!(said.code, Some(1));
    for (area, variable) in [("data_dir", "OSTLER_DATA_DIR"), ("run_dir", "TMPDIR")] {
        let found = said.only(area, None);
        assert_eq!(found["level"], "error");
        assert!(fix(found).contains(variable), "{found}");
    }
    assert!(message(said.only("live", None)).contains("no turn could be tried"));
}

#[test]
fn a_long_path_for_temporary_files_is_a_warning() {
    let place = Place::new();
    let long = place.path(&"long".repeat(20));
    fs::create_dir(&long).unwrap();
    let mut command = doctor(&place, &[]);
    command.env("TMPDIR", &long);
    let said = Said::of(command);
    assert_eq!((said.code, &said.only("run_dir", None)["level"]), (Some(0), &json!("warning")));
}

#[test]
fn what_killed_turns_left_is_removed_and_counted() {
    let place = Place::new();
    // The first run makes the user's folder as it must be.
    Said::by(&place, &[]);
    let folder = fs::read_dir(place.path("tmp")).unwrap().next().unwrap().unwrap().path();
    fs::create_dir(folder.join("0123abcd")).unwrap();
    let said = Said::by(&place, &[]);
    let found = said.about("run_dir", None);
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(
        (&found[0]["level"], message(found[0])),
        (&json!("info"), "removed 1 folder that killed turns had left")
    );
    assert!(place.is_swept());
}

#[test]
fn a_login_is_seen_without_being_read_and_no_value_is_ever_printed() {
    let place = Place::new();
    for spec in AGENTS {
        place.program(&spec.program, &format!("#!/bin/sh\necho {}\n", tested(spec)));
    }
    let said = Said::by(&place, &[]);
    for spec in AGENTS {
        let found = said.only("login", Some(&spec.name));
        assert_eq!(found["level"], "warning");
        assert!(!fix(found).is_empty());
    }
    let mut command = doctor(&place, &[]);
    for name in AGENTS.iter().flat_map(|spec| spec.env.iter()) {
        command.env(name, "secret-value");
    }
    let said = Said::of(command);
    for spec in AGENTS {
        let found = said.only("login", Some(&spec.name));
        assert_eq!(found["level"], "ok");
        assert!(message(found).ends_with(" is set"), "{found}");
    }
    assert!(!said.whole.to_string().contains("secret-value"), "{}", said.whole);
}

#[test]
fn a_process_that_outlived_its_turn_is_told_with_its_pid_and_left_alone() {
    if std::env::var_os("OSTLER_TURN").is_some() {
        eprintln!("skipped: these tests are part of a turn themselves, and have a keeper");
        return;
    }
    let place = Place::new();
    let mut stray = Command::new("/bin/sleep")
        .arg("600")
        .env("OSTLER_TURN", "trn_left_behind")
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let pid = stray.id();
    let said = Said::by(&place, &[]);
    let was_live = is_live(pid);
    stray.kill().unwrap();
    stray.wait().unwrap();
    assert!(was_live, "the doctor ends nothing");
    let found = said.about("processes", None);
    let found = found.iter().find(|finding| fix(finding) == format!("kill {pid}")).unwrap();
    assert_eq!(found["level"], "warning");
    assert!(message(found).contains("trn_left_behind: /bin/sleep 600"), "{found}");
    assert_eq!(said.code, Some(0));
}

#[test]
fn a_running_turn_is_not_called_stray() {
    let place = Place::new();
    let pid_file = place.path("pid");
    let program = place.script(&json!([
        { "do": "spawn", "kind": "own_session", "sleep_s": 600, "pid_file": pid_file },
        { "do": "line", "text": "ready" },
        { "do": "hang" },
    ]));
    let args = ["run", "--bin", program.to_str().unwrap(), "--output", "stream-json", "hi"];
    let mut running = Running::start(place.ostler(&args));
    running.wait_for(|event| event["type"] == "unknown");
    let pid: u32 = fs::read_to_string(pid_file).unwrap().trim().parse().unwrap();
    assert!(is_live(pid));
    let said = Said::by(&place, &[]);
    let kill = json!(format!("kill {pid}"));
    assert!(said.about("processes", None).iter().all(|finding| finding["fix"] != kill));
    running.signal("TERM");
    running.wait();
}
