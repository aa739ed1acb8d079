//! `ostler init`: templates of prompt files, and nothing lost by them.

use std::fs;

use serde_json::{Value, json};

use super::support::Place;

const FILES: [&str; 9] = [
    "IDENTITY.md",
    "SOUL.md",
    "USER.md",
    "TOOLS.md",
    "AGENTS.md",
    "MEMORY.md",
    "BOOT.md",
    "HEARTBEAT.md",
    "skills/example/SKILL.md",
];

#[test]
fn templates_are_written_once_and_never_over_anything() {
    let place = Place::new();
    let first = place.run(&["init", "--output", "json"]);
    assert_eq!((first.code, first.stderr.as_str()), (Some(0), ""));
    let folder = place.path("data/prompt");
    let report: Value = serde_json::from_str(&first.stdout).unwrap();
    let dir = folder.to_str().unwrap();
    assert_eq!(report, json!({ "dir": dir, "written": FILES, "kept": [] }));
    fs::write(folder.join("SOUL.md"), "mine").unwrap();
    fs::remove_file(folder.join("USER.md")).unwrap();
    let again = place.run(&["init"]);
    assert_eq!(again.code, Some(0));
    assert!(again.stdout.contains("  USER.md: written\n"), "{}", again.stdout);
    assert!(again.stdout.contains("  SOUL.md: was there and stays as it is\n"), "{}", again.stdout);
    assert_eq!(fs::read_to_string(folder.join("SOUL.md")).unwrap(), "mine");
    assert!(fs::read_to_string(folder.join("USER.md")).unwrap().starts_with("<!--"));
}

#[test]
fn the_folder_is_the_one_that_is_named_or_configured() {
    let place = Place::new();
    let mut command = place.ostler(&["init"]);
    command.env("CONFIG_DIR", "me");
    assert!(command.status().unwrap().success());
    assert!(place.work().join("me/IDENTITY.md").is_file());
    let mut command = place.ostler(&["init", "--dir", "deep/other"]);
    command.env("CONFIG_DIR", "me");
    assert!(command.status().unwrap().success());
    assert!(place.work().join("deep/other/skills/example/SKILL.md").is_file());
    assert!(!place.path("data/prompt").exists());
}

#[test]
fn a_folder_that_cannot_be_one_is_a_failure_that_names_it() {
    let place = Place::new();
    fs::write(place.work().join("file"), "mine").unwrap();
    for dir in ["file", "file/below"] {
        let outcome = place.run(&["init", "--dir", dir, "--output", "json"]);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""));
        assert!(outcome.stderr.contains("could not make the folder "), "{}", outcome.stderr);
        assert!(outcome.stderr.contains(dir), "{}", outcome.stderr);
    }
    assert_eq!(fs::read_to_string(place.work().join("file")).unwrap(), "mine");
    let wrong = place.run(&["init", "--config", "file"]);
    assert_eq!(wrong.code, Some(2));
}
