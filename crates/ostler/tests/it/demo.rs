//! `ostler demo` on a machine with nothing but the program.

use crate::support::Place;

#[test]
fn without_any_cli_the_scripted_agent_plays_all_and_says_so() {
    let place = Place::new();
    let outcome = place.run(&["demo"]);
    assert_eq!(outcome.code, Some(0), "{}{}", outcome.stdout, outcome.stderr);
    for agent in ["Claude", "Codex", "Gemini", "OpenCode", "Pi"] {
        assert!(outcome.stdout.contains(&format!("{agent} (scripted:")), "{}", outcome.stdout);
    }
    let (tour, table) = outcome.stdout.split_once("first text").unwrap();
    assert!(tour.contains("so far: 2"), "the second prompt resumed: {tour}");
    assert_eq!(table.matches("scripted").count(), 10, "{table}");
    assert!(place.is_swept());
    assert_eq!(std::fs::read_dir(place.path("data")).unwrap().count(), 0, "a throw-away store");
}

#[test]
fn an_unknown_agent_is_refused() {
    let outcome = Place::new().run(&["demo", "--agent", "nobody"]);
    assert_eq!(outcome.code, Some(2));
    assert!(
        outcome.stderr.contains("valid agents: claude, codex, gemini, opencode, pi"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn installed_clis_are_toured_for_real() {
    let Some(clis) = std::env::var_os("OSTLER_TEST_CLIS") else {
        eprintln!("skipped: OSTLER_TEST_CLIS does not say where the real CLIs are");
        return;
    };
    let place = Place::new();
    let mut command = place.ostler(&["demo"]);
    let bin = std::path::Path::new(&clis).join("node_modules/.bin");
    command.env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
    let outcome = crate::support::Outcome::of_input(command, None);
    assert_eq!(outcome.code, Some(0), "{}{}", outcome.stdout, outcome.stderr);
    for agent in ["Claude", "Codex", "Gemini", "OpenCode", "Pi"] {
        assert!(outcome.stdout.contains(&format!("{agent} (real: version")), "{}", outcome.stdout);
    }
    assert!(outcome.stdout.contains("looks after the horses"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("I remember 2 prompts"), "{}", outcome.stdout);
    assert_eq!(std::fs::read_dir(place.path("home")).unwrap().count(), 0);
}
