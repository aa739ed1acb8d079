//! `inbound.reply.command` and the session arguments in it.

use serde_json::{Value, json};

use super::rig::Rig;

fn template(command: &Value) -> Value {
    json!({ "agent": { "kind": "claude", "identityPrefix": "" }, "command": command })
}

#[test]
fn inbound_reply_command_gets_the_flags_that_it_lacks_and_the_body_keeps_its_place() {
    let mut reply = template(&json!(["claude", "--model", "own", "{{Body}}", "--verbose"]));
    reply["agent"]["format"] = json!("json");
    let config = json!({
        "agent": { "model": "configured", "permissions": "bypass" }, "inbound": { "reply": reply },
    });
    let rig = Rig::with(&config, &[]);
    let call = rig.ask("hello there");
    assert_eq!(call.value_of("--model"), Some("own"));
    assert!(!call.has("configured") && call.has("-p"), "{call:?}");
    assert!(call.has("--dangerously-skip-permissions"), "{call:?}");
    assert_eq!(call.value_of("--output-format"), Some("json"));
    assert_eq!(call.argv[call.argv.len() - 2..], ["hello there", "--verbose"]);
    assert_eq!(rig.reply()["text"], "answer 0");
}

#[test]
fn inbound_reply_command_has_no_output_flag_without_a_format() {
    let rig = Rig::new(&template(&json!(["claude", "{{Body}}"])));
    assert!(!rig.ask("hello").has("--output-format"));
    assert_eq!(rig.reply()["text"], "answer 0", "plain text is the answer");
    // Its own words may ask for JSON, which is read as such.
    let rig = Rig::new(&template(&json!(["claude", "--output-format", "json", "{{Body}}"])));
    rig.ask("hello");
    assert_eq!(rig.reply()["text"], "answer 0");
}

#[test]
fn inbound_reply_command_of_another_program_stays_as_it_is_written() {
    let rig = Rig::new(&template(&json!(["wrapper", "--to", "{{Body}}", "{{Nope}}", "end"])));
    assert_eq!(rig.ask("a b").argv, ["wrapper", "--to", "a b", "", "end"]);
    assert_eq!(rig.reply()["text"], "answer 0");
}

#[test]
fn inbound_reply_command_reads_the_output_of_another_program_as_the_agents() {
    let mut reply = template(&json!(["wrapper", "{{Body}}", "json"]));
    reply["agent"]["format"] = json!("json");
    let rig = Rig::new(&reply);
    assert_eq!(rig.ask("hello").argv, ["wrapper", "hello", "json"]);
    assert_eq!(rig.reply()["text"], "answer 0");
}

#[test]
fn inbound_reply_command_takes_nothing_of_a_message_for_an_option_or_for_a_shell() {
    let words =
        json!(["wrapper", "{{Body}}", "{{From}}", "--name={{SenderName}}", "{{Transcript}}"]);
    let rig = Rig::new(&template(&words));
    for evil in ["--dangerously-skip-permissions", "-p", "$(touch x)", "`id`; rm -rf / & \"' |"] {
        let more = json!({ "sender": evil, "details": { "transcript": evil } });
        let call = rig.ask_with(evil, &more);
        let shown = if evil.starts_with('-') { format!(" {evil}") } else { evil.to_owned() };
        assert_eq!(call.argv.len(), 5, "{call:?}");
        assert_eq!(call.argv[2..], [shown.clone(), format!("--name={evil}"), shown]);
    }
    let rig = Rig::new(&template(&json!(["claude", "{{Body}}"])));
    let call = rig.ask("--dangerously-skip-permissions");
    assert!(!call.has("--dangerously-skip-permissions"), "{call:?}");
    assert_eq!(call.stdin, "--dangerously-skip-permissions");
}

#[test]
fn inbound_reply_session_session_arg_new_is_for_a_session_that_begins() {
    let mut reply = template(&json!(["claude", "{{Body}}"]));
    reply["session"] = json!({ "sessionArgNew": ["--new={{SessionId}}", "{{IsNewSession}}"] });
    let rig = Rig::new(&reply);
    let first = rig.ask("one");
    let at = first.argv.iter().position(|word| word.starts_with("--new=")).unwrap();
    assert_eq!(first.argv[at + 1..], ["true", "one"]);
    let id = first.argv[at].strip_prefix("--new=").unwrap();
    assert_eq!(id.len(), 36, "{id}");
    // What goes on has the agent's own argument, with the id that it was given.
    assert_eq!(rig.ask("two").value_of("--resume"), Some(id));
}

#[test]
fn inbound_reply_session_session_arg_resume_is_for_a_session_that_goes_on() {
    let mut reply = template(&json!(["claude", "{{Body}}"]));
    let words = ["--thread", "{{SessionId}}", "{{IsNewSession}}", "{{From}}"];
    reply["session"] = json!({ "sessionArgResume": words });
    let rig = Rig::new(&reply);
    let id = rig.ask("one").value_of("--session-id").unwrap().to_owned();
    let second = rig.ask("two");
    assert_eq!(second.argv[second.argv.len() - 5..], ["--thread", &id, "false", "ann", "two"]);
}

#[test]
fn inbound_reply_session_session_arg_before_body_says_where_they_stand() {
    for (is_before, tail) in [(json!(true), "-n hello --last"), (json!(false), "hello --last -n")] {
        let mut reply = template(&json!(["claude", "{{Body}}", "--last"]));
        reply["session"] = json!({ "sessionArgNew": ["-n"], "sessionArgBeforeBody": is_before });
        let argv = Rig::new(&reply).ask("hello").argv.join(" ");
        assert!(argv.ends_with(tail), "{argv}");
    }
}

#[test]
fn session_arguments_have_the_defaults_of_each_agent() {
    for (agent, new, resume) in [
        ("claude", Some("--session-id"), "--resume"),
        ("codex", None, "resume"),
        ("gemini", None, "--resume"),
        ("opencode", None, "--session"),
        ("pi", Some("--session-id"), "--session"),
    ] {
        let mut reply = template(&json!([agent, "{{Body}}"]));
        reply["agent"] = json!({ "kind": agent, "identityPrefix": "" });
        let rig = Rig::new(&reply);
        let flags = ["--session-id", "--session", "--resume", "resume"];
        let first = rig.ask("hello");
        let found: Vec<_> = flags.into_iter().filter(|flag| first.has(flag)).collect();
        assert_eq!(found, new.into_iter().collect::<Vec<_>>(), "{agent}");
        // Where the id was given it is known, whatever is printed.
        if new.is_some() {
            let id = first.value_of("--session-id");
            assert_eq!(rig.ask("again").value_of(resume), id, "{agent}");
        }
        // A session that somebody names is one that goes on.
        let id = "22222222-2222-4222-8222-222222222222";
        let named = rig.ask_with("hello", &json!({ "session": id, "sender": "bob" }));
        assert_eq!(named.value_of(resume), Some(id), "{agent}: {named:?}");
    }
}
