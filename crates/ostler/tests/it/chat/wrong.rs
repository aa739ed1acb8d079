//! What is not understood gets an error, and nothing else happens.

use super::{Held, message, player, say, sort};
use crate::support::Place;

#[test]
fn every_wrong_line_gets_one_error_and_the_conversation_goes_on() {
    let place = Place::new();
    let program = player(&place, Held::No);
    let lines: &[(&[u8], &str)] = &[
        (b"hello", "not JSON"),
        (b"", "not JSON"),
        (b"{\"type\":\"prompt\",", "not JSON"),
        (b"[]", "not a JSON object"),
        (b"{}", "unknown type"),
        (br#"{"type":"dance"}"#, "unknown type \"dance\""),
        (br#"{"type":"prompt"}"#, "prompt needs \"text\""),
        (br#"{"type":"prompt","text":"  "}"#, "the text is empty"),
        (br#"{"type":"steer","text":"left"}"#, "nothing runs"),
        (br#"{"type":"answer","request":"r","decision":"allow"}"#, "no permission request \"r\""),
        (br#"{"type":"answer","request":"r","decision":"perhaps"}"#, "unknown decision"),
        (b"{\"type\":\"prompt\",\"text\":\"caf\xe9\"}", "not valid UTF-8 (at byte 28)"),
    ];
    let mut input: Vec<u8> = lines.iter().flat_map(|(line, _)| [*line, b"\n"].concat()).collect();
    input.extend(message("hi").as_bytes());
    let outcome = say(&place, &["--cold", "--bin", &program], &input);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let (asides, turns) = sort(&outcome);
    assert_eq!(asides.len(), lines.len(), "{asides:?}");
    for (aside, (_, says)) in asides.iter().zip(lines) {
        assert_eq!((&aside["type"], &aside["kind"]), (&"error".into(), &"invalid_request".into()));
        assert!(aside["message"].as_str().unwrap().contains(says), "{says}: {aside}");
    }
    assert_eq!(turns.len(), 1);
    assert_eq!(turns[0].last()["is_error"], false);
}

#[test]
fn a_line_without_end_is_dropped_and_not_kept() {
    let place = Place::new();
    let program = player(&place, Held::No);
    let mut input = vec![b'x'; 17 * 1024 * 1024];
    input.push(b'\n');
    input.extend(message("hi").as_bytes());
    let outcome = say(&place, &["--cold", "--bin", &program], &input);
    let (asides, turns) = sort(&outcome);
    assert!(asides[0]["message"].as_str().unwrap().contains("longer than 16 MiB"), "{asides:?}");
    assert_eq!((asides.len(), turns.len()), (1, 1));
}

#[test]
fn a_prompt_that_the_agent_cannot_take_fails_alone() {
    let place = Place::new();
    let program = place.script(&serde_json::json!([]));
    let args = ["--agent", "codex", "--cold", "--bin", program.to_str().unwrap()];
    let outcome = say(&place, &args, message(&"x".repeat(1_100_000)).as_bytes());
    let (asides, turns) = sort(&outcome);
    assert_eq!((outcome.code, asides.len(), turns.len()), (Some(0), 0, 1));
    assert_eq!(turns[0].last()["error"]["kind"], "invalid_request");
}

#[test]
fn what_would_be_wrong_with_every_prompt_ends_it_at_once() {
    for (args, code, says) in [
        (&["--bin", "/no/such/claude"][..], 3, "claude: program \"/no/such/claude\""),
        (&["--agent", "gpt"], 2, "valid agents: claude"),
        (&["--cwd", "/no/such/dir", "--bin", "/bin/true"], 2, "does not exist"),
        (&["--session", "a b", "--bin", "/bin/true"], 2, "invalid session id"),
        (&["--when-busy", "dance"], 2, "interrupt"),
        (&["--ask-timeout", "0"], 2, "invalid timeout"),
    ] {
        let place = Place::new();
        let outcome = say(&place, args, message("hi").as_bytes());
        assert_eq!(outcome.code, Some(code), "{args:?}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(says), "{says:?} is not in: {}", outcome.stderr);
    }
}
