//! `ostler doctor --live` with CLIs that were deliberately replaced by others,
//! and with the real ones.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use ostler_core::agent::{AGENTS, AgentSpec};
use serde_json::{Value, json};

use super::{Said, doctor, fix, message, tested};
use crate::support::{Outcome, Place, is_live, signal, until};

/// Puts the one program that scripts need into PATH.
fn provide_sleep(place: &Place) {
    place.program("sleep", "#!/bin/sh\nexec /bin/sleep \"$@\"\n");
}

/// Puts a program in the place of an agent's CLI: it tells a version, and plays
/// these steps for anything else.
fn replace(place: &Place, spec: &AgentSpec, version: &str, steps: &Value) -> PathBuf {
    let script = place.script(steps);
    let own = place.path(&format!("{}.steps", spec.name));
    fs::rename(script, &own).unwrap();
    let text = format!(
        "#!/bin/sh\n[ \"$1\" = --version ] && echo {version} && exit\nexec {} \"$@\"\n",
        own.display()
    );
    place.program(&spec.program, &text)
}

#[test]
fn a_cli_that_refuses_a_flag_is_found_with_its_own_words() {
    let place = Place::new();
    let steps = json!([{ "do": "exit", "code": 2, "stderr": "error: unknown option '--fine'\n" }]);
    for spec in AGENTS {
        replace(&place, spec, "9999.0.0", &steps);
    }
    let said = Said::by(&place, &["--live"]);
    assert_eq!(said.code, Some(1));
    for spec in AGENTS {
        let found = said.about("live", Some(&spec.name));
        assert_eq!(found.len(), 1, "one cause, one finding: {found:?}");
        assert_eq!(found[0]["level"], "error");
        let message = message(found[0]);
        assert!(message.starts_with("a flag was refused: "), "{message}");
        assert!(message.contains("unknown option '--fine'"), "{message}");
        assert!(fix(found[0]).contains(tested(spec)), "{}", found[0]);
        let kept = place.path(&format!("data/doctor/{}-1.jsonl", spec.name));
        assert!(fix(found[0]).contains(kept.to_str().unwrap()), "{}", found[0]);
        assert!(fs::read_to_string(kept).unwrap().contains("--fine"));
    }
    assert!(place.is_swept());
}

#[test]
fn a_cli_with_other_output_is_found_and_its_lines_are_shown() {
    let place = Place::new();
    let steps = json!([
        { "do": "line", "text": r#"{"type":"brand_new","text":"Hello in another way."}"# },
        { "do": "line", "text": r#"{"type":"brand_new_end","ok":true}"# },
    ]);
    for spec in AGENTS {
        replace(&place, spec, "9999.0.0", &steps);
    }
    let said = Said::by(&place, &["--live"]);
    assert_eq!(said.code, Some(1));
    for spec in AGENTS {
        let live = said.live(spec);
        assert!(live.contains(r#"unknown line: {"type":"brand_new","#), "{live}");
        assert!(said.about("live", Some(&spec.name)).iter().any(|one| one["level"] == "error"));
    }
}

#[test]
fn a_cli_that_hangs_ends_with_everything_it_started() {
    let place = Place::new();
    let spec = AGENTS.first().unwrap();
    provide_sleep(&place);
    let pid_file = place.path("pid");
    let steps = json!([
        { "do": "spawn", "kind": "own_session", "sleep_s": 600, "pid_file": pid_file },
        { "do": "hang" },
    ]);
    replace(&place, spec, tested(spec), &steps);
    let said = Said::by(&place, &["--live", "--timeout", "1s"]);
    assert_eq!(said.code, Some(1));
    let live = said.live(spec);
    assert!(live.starts_with("no end in time and never asked the model"), "{live}");
    let pid = fs::read_to_string(pid_file).unwrap().trim().parse().unwrap();
    assert!(!is_live(pid));
    assert!(place.is_swept());
}

#[test]
fn a_cli_that_answers_from_elsewhere_is_found() {
    let place = Place::new();
    let spec = AGENTS.first().unwrap();
    replace(&place, spec, tested(spec), &json!([{ "do": "agent", "name": spec.name }]));
    let said = Said::by(&place, &["--live"]);
    let live = said.live(spec);
    assert!(live.contains("it answered without asking the simulated model"), "{live}");
    assert!(live.contains("no tool_use event\nno tool_result event"), "{live}");
}

#[test]
fn no_key_proxy_or_folder_of_the_user_reaches_a_live_turn() {
    let place = Place::new();
    for spec in AGENTS {
        let report = place.path(&format!("{}.json", spec.name));
        replace(&place, spec, tested(spec), &json!([{ "do": "report", "path": report }]));
    }
    let mut command = doctor(&place, &["--live"]);
    for name in AGENTS.iter().flat_map(|spec| spec.env.iter()).chain(["HTTPS_PROXY", "http_proxy"])
    {
        command.env(name, "mine-alone");
    }
    Said::of(command);
    let home = place.path("home").display().to_string();
    for spec in AGENTS {
        let report = fs::read_to_string(place.path(&format!("{}.json", spec.name))).unwrap();
        let report: Value = serde_json::from_str(&report).unwrap();
        let environment = report["env"].to_string();
        assert!(!environment.contains("mine-alone"), "{}: {environment}", spec.name);
        assert!(!environment.contains(&home), "{}: {environment}", spec.name);
    }
}

#[test]
fn ctrl_c_ends_a_live_turn_and_what_it_started() {
    let place = Place::new();
    let spec = AGENTS.first().unwrap();
    provide_sleep(&place);
    let pid_file = place.path("pid");
    let steps = json!([
        { "do": "spawn", "kind": "own_session", "sleep_s": 600, "pid_file": pid_file },
        { "do": "hang" },
    ]);
    replace(&place, spec, tested(spec), &steps);
    let mut child = doctor(&place, &["--live"]).spawn().unwrap();
    let read = || fs::read_to_string(&pid_file).ok()?.trim().parse().ok();
    let pid: u32 = until("the agent runs", read);
    signal(child.id(), "INT");
    let status = until("the doctor ends", || child.try_wait().unwrap());
    assert_eq!(status.code(), Some(130));
    until("the agent's tool is gone", || (!is_live(pid)).then_some(()));
}

/// The folder of the real CLIs; `None`, with a word about it, where there is none.
fn real_clis() -> Option<PathBuf> {
    let clis = std::env::var_os("OSTLER_TEST_CLIS");
    if clis.is_none() {
        eprintln!("skipped: OSTLER_TEST_CLIS does not say where the real CLIs are");
    }
    Some(Path::new(&clis?).join("node_modules/.bin"))
}

#[test]
fn the_real_clis_do_what_they_must() {
    let Some(bin) = real_clis() else { return };
    let place = Place::new();
    let mut command = doctor(&place, &["--live"]);
    command.env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
    let said = Said::of(command);
    for spec in AGENTS {
        let live = said.about("live", Some(&spec.name));
        assert_eq!(live.len(), 1, "{live:?}");
        assert_eq!(live[0]["level"], "ok", "{live:?}");
        assert_eq!(said.only("version", Some(&spec.name))["level"], "ok");
    }
    assert_eq!(said.code, Some(0), "{}", said.whole);
    assert!(place.is_swept());
    assert_eq!(fs::read_dir(place.path("home")).unwrap().count(), 0);
    assert!(!place.path("data/doctor").exists());
}

#[test]
fn a_real_cli_whose_events_were_renamed_is_found() {
    let Some(bin) = real_clis() else { return };
    let place = Place::new();
    let path = format!("{}:{}:/usr/bin:/bin", place.path("bin").display(), bin.display());
    let with_path = |mut command: Command| {
        command.env("PATH", &path);
        command
    };
    let agents = place.ostler(&["agents", "--output", "json"]);
    let agents = Outcome::of_input(with_path(agents), None).json();
    for (spec, row) in AGENTS.iter().zip(agents.as_array().unwrap()) {
        let real = row["path"].as_str().unwrap();
        let text = format!(
            "#!/bin/sh\n[ \"$1\" = --version ] && echo 9999.0.0 && exit\n\
             {real} \"$@\" | sed 's/\"type\":\"/\"type\":\"new_/'\n"
        );
        place.program(&spec.program, &text);
    }
    let said = Said::of(with_path(doctor(&place, &["--live"])));
    assert_eq!(said.code, Some(1));
    for spec in AGENTS {
        let live = said.live(spec);
        assert!(live.contains(r#"unknown line"#), "{}: {live}", spec.name);
        assert!(live.contains(r#""type":"new_"#), "{}: {live}", spec.name);
        assert_eq!(said.only("version", Some(&spec.name))["level"], "warning");
    }
    assert!(place.is_swept());
}
