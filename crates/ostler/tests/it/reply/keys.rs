//! Every key of `inbound.reply`, by what it does. Those of its session and its
//! command line are beside this.

use std::fs;

use serde_json::json;

use super::rig::Rig;
use crate::support::Place;

/// A block with all of its keys.
fn everything(place: &Place) -> serde_json::Value {
    json!({
        "mode": "command",
        "text": "not used in this mode",
        "agent": { "kind": "claude", "format": "json", "identityPrefix": "You are {{To}}." },
        "command": ["claude", "--verbose", "{{Body}}"],
        "cwd": place.path("work"),
        "timeoutSeconds": 30,
        "bodyPrefix": "{{SenderName}}: ",
        "mediaUrl": "https://example.org/stable.png",
        "mediaMaxMb": 5,
        "typingIntervalSeconds": 8,
        "heartbeatMinutes": 0,
        "session": {
            "scope": "per-group",
            "resetTriggers": ["/new", "/reset"],
            "idleMinutes": 30,
            "heartbeatIdleMinutes": 10,
            "sendSystemOnce": true,
            "sessionIntro": "Hello.",
            "sessionArgNew": ["--session-id", "{{SessionId}}"],
            "sessionArgResume": ["--resume", "{{SessionId}}"],
            "sessionArgBeforeBody": true,
        },
    })
}

#[test]
fn inbound_reply_with_all_its_keys_starts_the_gateway_and_answers() {
    let place = Place::new();
    let reply = everything(&place);
    let rig = Rig::start(place, &json!({ "inbound": { "reply": reply } }), &[]);
    let details = json!({ "details": { "sender_name": "Ann", "to": "Ostler" } });
    let first = rig.ask_with("one", &details);
    assert_eq!(first.prompt(), "You are Ostler.\n\nHello.\n\nAnn: one");
    assert_eq!(rig.reply()["text"], "answer 0");
    let second = rig.ask_with("two", &details);
    assert_eq!(second.prompt(), "two");
    assert_eq!(second.value_of("--resume"), first.value_of("--session-id"));
    assert_eq!(rig.reply()["text"], "answer 1");
}

#[test]
fn inbound_reply_mode_text_sends_a_text_and_asks_nobody() {
    let rig = Rig::new(&json!({
        "mode": "text", "text": "Dear {{SenderName}}, we are closed. {{Nope}}You said: {{Body}}",
        "agent": { "kind": "claude" },
    }));
    let job = rig.send("open?", &json!({}));
    assert_eq!(rig.end_of(&job)["state"], "done");
    assert_eq!(rig.reply()["text"], "Dear ann, we are closed. You said: open?");
    assert_eq!(rig.n_calls(), 0);
    // People on this machine are answered by the agent.
    rig.ask_with("open?", &json!({ "conversation": "local:main" }));
}

#[test]
fn inbound_reply_text_is_sent_in_the_mode_text_only() {
    let rig = Rig::new(&json!({ "text": "closed", "agent": { "kind": "claude" } }));
    rig.ask("open?");
    assert_eq!(rig.reply()["text"], "answer 0");
}

#[test]
fn inbound_reply_agent_kind_says_who_answers() {
    let rig = Rig::new(&json!({ "agent": { "kind": "pi" } }));
    assert_eq!(rig.ask("hello").argv[0], "pi");
}

#[test]
fn inbound_reply_agent_format_is_the_output_that_the_cli_is_asked_for() {
    let rig = Rig::new(&json!({ "agent": { "kind": "claude", "format": "json" } }));
    let call = rig.ask("hello");
    assert_eq!(call.value_of("--output-format"), Some("json"), "{call:?}");
    assert_eq!(rig.reply()["text"], "answer 0");
    let rig = Rig::new(&json!({ "agent": { "kind": "claude" } }));
    assert_eq!(rig.ask("hello").value_of("--output-format"), Some("stream-json"));
}

#[test]
fn inbound_reply_agent_identity_prefix_stands_before_the_prompt() {
    let reply = |prefix| json!({ "agent": { "kind": "claude", "identityPrefix": prefix } });
    let rig = Rig::new(&reply(json!("You help {{SenderName}} ({{ChatType}}).")));
    for text in ["one", "two"] {
        assert_eq!(rig.ask(text).prompt(), format!("You help ann (direct).\n\n{text}"));
    }
    let off = Rig::new(&reply(json!("")));
    assert_eq!(off.ask("hello").prompt(), "hello");
    let default = Rig::new(&reply(json!(null))).ask("hello").prompt();
    assert!(default.ends_with("\n\nhello") && default.len() > 30, "{default}");
}

#[test]
fn inbound_reply_cwd_is_where_the_agent_works() {
    let place = Place::new();
    let folder = place.path("elsewhere");
    fs::create_dir(&folder).unwrap();
    let reply = json!({ "agent": { "kind": "claude" }, "cwd": "elsewhere" });
    let rig = Rig::start(place, &json!({ "inbound": { "reply": reply } }), &[]);
    assert_eq!(rig.ask("hello").cwd, folder.canonicalize().unwrap());
}

#[test]
fn inbound_reply_timeout_seconds_ends_a_turn_that_takes_longer() {
    let config = json!({
        "retry": { "max": 0 },
        "inbound": { "reply": { "agent": { "kind": "claude" }, "timeoutSeconds": 1 } },
    });
    let rig = Rig::with(&config, &[]);
    let job = rig.send("hang-here", &json!({}));
    assert_eq!(rig.end_of(&job)["state"], "dead");
    let reply = rig.reply();
    assert_eq!(reply["error"]["message"], "Query timed out", "{reply}");
}

#[test]
fn inbound_reply_body_prefix_stands_before_each_message() {
    let agent = json!({ "kind": "claude", "identityPrefix": "" });
    let rig = Rig::new(&json!({ "agent": agent, "bodyPrefix": "[{{From}}] " }));
    assert_eq!(rig.ask("one").prompt(), "[ann] one");
    assert_eq!(rig.ask_with("two", &json!({ "sender": "bob" })).prompt(), "[bob] two");
    // Those on this machine and bare prompts have nothing around them.
    let local = json!({ "conversation": "local:main" });
    assert_eq!(rig.ask_with("three", &local).prompt(), "three");
    assert_eq!(rig.ask_with("four", &json!({ "bare": true })).prompt(), "four");
}

#[test]
fn a_thinking_level_is_a_flag_where_the_cli_has_one_and_a_cue_word_otherwise() {
    for (agent, says) in [
        ("claude", "--effort high"),
        ("codex", "model_reasoning_effort=\"high\""),
        ("gemini", "Think very hard before you answer."),
        ("opencode", "--variant high"),
        ("pi", "--thinking high"),
    ] {
        let reply = json!({ "agent": { "kind": agent, "identityPrefix": "" } });
        let rig = Rig::with(&json!({ "inbound": { "reply": reply } }), &[]);
        let job = rig.send("hello", &json!({ "thinking": "high" }));
        rig.end_of(&job);
        let call = rig.call(0);
        let all = format!("{} < {}", call.argv.join(" "), call.stdin);
        assert!(all.contains(says), "{agent}: {all}");
        let is_cue = call.stdin.contains("Think");
        assert_eq!(is_cue, agent == "gemini", "{all}");
    }
}

#[test]
fn inbound_reply_without_an_agent_is_an_error_and_old_keys_have_a_hint() {
    for (reply, says) in [
        (json!({ "mode": "command" }), "missing key `agent`"),
        (json!({ "agent": { "kind": "claude" }, "claudeOutputFormat": "json" }), "format: 'json'"),
        (json!({ "agent": { "kind": "claude" }, "claudeCliPath": "/x" }), "BACKEND_CLI_PATH"),
        (json!({ "agent": { "kind": "claude" }, "mediaMaxMb": 0 }), "mediaMaxMb"),
        (json!({ "agent": { "kind": "claude" }, "mediaUrl": "ftp://x/y" }), "mediaUrl"),
        (json!({ "agent": { "kind": "claude" }, "typingIntervalSeconds": "x" }), "typingInterval"),
    ] {
        let place = Place::new();
        let command = super::rig::serve(&place, &json!({ "inbound": { "reply": reply } }), &[]);
        let outcome = crate::support::Outcome::of_input(command, None);
        assert_eq!(outcome.code, Some(2), "{reply}");
        assert!(outcome.stderr.contains(says), "{reply}: {}", outcome.stderr);
    }
}

#[test]
fn a_change_of_inbound_reply_takes_effect_without_a_restart() {
    let agent = json!({ "kind": "claude", "identityPrefix": "" });
    let config =
        |prefix: &str| json!({ "inbound": { "reply": { "agent": agent, "bodyPrefix": prefix } } });
    let rig = Rig::with(&config("one "), &[]);
    assert_eq!(rig.ask("x").prompt(), "one x");
    let mut changed = config("two ");
    changed["gateway"]["listen"] = json!("127.0.0.1:0");
    fs::write(rig.place.path("ostler.json5"), changed.to_string()).unwrap();
    crate::support::until("the change has taken effect", || {
        (rig.ask("x").prompt() == "two x").then_some(())
    });
}
