//! An agent of somebody's own.

use super::*;

fn named(name: &str) -> AcpAgent {
    let command = vec!["my-agent".to_owned(), "acp".to_owned()];
    AcpAgent { name: name.to_owned(), command, ..AcpAgent::default() }
}

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
