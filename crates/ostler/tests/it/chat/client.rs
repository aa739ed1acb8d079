//! The client in the documentation works.

use std::{
    fs,
    process::{Command, Stdio},
};

use super::{Held, player_of};
use crate::support::{Outcome, Place};

/// Returns the first block of a language on a page.
fn block<'a>(page: &'a str, language: &str) -> &'a str {
    let (_, rest) = page.split_once(&format!("```{language}\n")).expect("the page has a block");
    rest.split_once("\n```").expect("the block ends").0
}

/// Returns the interpreter itself, not what chooses one by the environment.
fn python() -> String {
    let asked = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
    let asked = asked.expect("this test needs python3");
    String::from_utf8(asked.stdout).unwrap().trim().to_owned()
}

#[test]
fn the_python_client_of_the_page_holds_a_conversation() {
    let page = include_str!("../../../../../docs/chat.md");
    let client = block(page, "python");
    assert!(client.lines().count() <= 12, "it is to be short:\n{client}");
    let place = Place::new();
    // With a process for each turn, so that any program can play the agent.
    let cold = client.replace(r#""chat", "#, r#""chat", "--cold", "#);
    assert_ne!(cold, client, "the client does not start a conversation");
    let program = player_of("gemini", &place, Held::No);
    fs::write(place.path("client.py"), cold).unwrap();
    let bin = std::path::Path::new(env!("CARGO_BIN_EXE_ostler")).parent().unwrap();
    let mut command = Command::new(python());
    command
        .arg(place.path("client.py"))
        .env_clear()
        .env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display()))
        .env("HOME", place.path("home"))
        .env("OSTLER_DATA_DIR", place.path("data"))
        .env("TMPDIR", place.path("tmp"))
        .env("AGENT_BACKEND", "gemini")
        .env("BACKEND_CLI_PATH", program)
        .current_dir(place.work())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let outcome = Outcome::of_input(command, None);
    assert_eq!(outcome.code, Some(0), "{}{}", outcome.stdout, outcome.stderr);
    assert_eq!(outcome.stdout.matches("scripted agent").count(), 2, "{}", outcome.stdout);
}
