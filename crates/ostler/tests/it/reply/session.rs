//! The block `inbound.reply.session`, and what comes with the first message.

use serde_json::{Value, json};
use sqlx::{Connection as _, SqliteConnection, sqlite::SqliteConnectOptions};

use super::rig::{Call, Rig};

fn rig(session: &Value) -> Rig {
    Rig::new(&json!({
        "agent": { "kind": "claude", "identityPrefix": "Me." },
        "bodyPrefix": "> ", "session": session,
    }))
}

/// Whether a call began a session.
fn is_new(call: &Call) -> bool {
    !call.has("--resume")
}

/// Asks as several people in several places; returns who began a session.
fn begun(scope: &str) -> Vec<bool> {
    let rig = rig(&json!({ "scope": scope }));
    let elsewhere = format!("webhook:{}/2", rig.url);
    let group = json!({ "group": { "subject": "all" } });
    let messages = [
        json!({ "sender": "ann" }),
        json!({ "sender": "ann" }),
        json!({ "sender": "bob" }),
        json!({ "sender": "ann", "conversation": elsewhere, "details": group }),
        json!({ "sender": "bob", "conversation": elsewhere, "details": group }),
    ];
    messages.iter().map(|message| is_new(&rig.ask_with("hello", message))).collect()
}

#[test]
fn inbound_reply_session_scope_per_sender_gives_each_person_a_conversation() {
    assert_eq!(begun("per-sender"), [true, false, true, true, true]);
}

#[test]
fn inbound_reply_session_scope_per_channel_is_one_conversation_for_a_place() {
    assert_eq!(begun("per-channel"), [true, false, false, true, false]);
}

#[test]
fn inbound_reply_session_scope_per_group_is_shared_in_groups_and_by_nobody_else() {
    assert_eq!(begun("per-group"), [true, false, true, true, false]);
}

#[test]
fn inbound_reply_session_scope_global_is_one_conversation_for_everybody() {
    assert_eq!(begun("global"), [true, false, false, false, false]);
}

#[test]
fn inbound_reply_session_reset_triggers_begin_a_session() {
    let rig = rig(&json!({ "resetTriggers": ["/reset", "start over"] }));
    assert!(is_new(&rig.ask("one")));
    assert!(!is_new(&rig.ask("two")));
    let fresh = rig.ask("Start over three");
    assert!(is_new(&fresh));
    assert_eq!(fresh.prompt(), "Me.\n\n> three");
    let job = rig.send("/reset", &json!({}));
    assert_eq!(rig.end_of(&job)["state"], "done");
    assert!(is_new(&rig.ask("four")));
    // The word of the default is an ordinary one now.
    assert_eq!(rig.ask("/new five").prompt(), "Me.\n\n> /new five");
}

#[test]
fn inbound_reply_session_idle_minutes_begins_a_session_after_silence() {
    let rig = rig(&json!({ "idleMinutes": 2 }));
    let silence = |minutes: i64| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let options = SqliteConnectOptions::new().filename(rig.place.path("data/ostler.db"));
            let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
            for sql in [
                "UPDATE conversations SET last_user_at = last_user_at - $1",
                "UPDATE turns SET ended_at = ended_at - $1",
            ] {
                sqlx::query(sql).bind(minutes * 60_000).execute(&mut connection).await.unwrap();
            }
            connection.close().await.unwrap();
        });
    };
    assert!(is_new(&rig.ask("one")));
    silence(1);
    assert!(!is_new(&rig.ask("two")));
    silence(3);
    assert!(is_new(&rig.ask("three")));
}

#[test]
fn inbound_reply_session_send_system_once_sends_the_identity_once_a_session() {
    let once = rig(&json!({ "sendSystemOnce": true }));
    let prompts = ["one", "two", "/new three", "four"].map(|text| once.ask(text).prompt());
    assert_eq!(prompts, ["Me.\n\n> one", "two", "Me.\n\n> three", "four"]);
    let each = rig(&json!({ "sendSystemOnce": false }));
    let prompts = ["one", "two"].map(|text| each.ask(text).prompt());
    assert_eq!(prompts, ["Me.\n\n> one", "Me.\n\n> two"]);
}

#[test]
fn inbound_reply_session_session_intro_comes_with_the_first_message() {
    let rig = rig(&json!({ "sessionIntro": "{{SenderName}} begins ({{IsNewSession}})." }));
    let prompts = ["one", "two", "/new three"].map(|text| rig.ask(text).prompt());
    assert_eq!(
        prompts,
        [
            "Me.\n\nann begins (true).\n\n> one",
            "Me.\n\n> two",
            "Me.\n\nann begins (true).\n\n> three"
        ]
    );
}

#[test]
fn a_group_is_introduced_with_the_first_message_and_media_with_each() {
    let rig = rig(&json!({ "sessionIntro": "Intro." }));
    let details = json!({ "details": {
        "group": { "subject": "Stables", "members": ["Ann", "Bob"] },
        "media": [{ "path": "/m/1.png", "type": "image/png" }, { "url": "https://m/2" }],
        "transcript": "feed them",
    } });
    let said = "> [Attached: image/png, /m/1.png]\n[Attached: a file, https://m/2]\n\n\
                Transcript of the recording:\nfeed them\n\nlook";
    let group = "You take part in a group chat in which several people write. \
                 It is called \"Stables\". Its members are: Ann, Bob.";
    let first = rig.ask_with("look", &details);
    assert_eq!(first.prompt(), format!("Me.\n\nIntro.\n\n{group}\n\n{said}"));
    assert_eq!(rig.ask_with("look", &details).prompt(), format!("Me.\n\n{said}"));
    // A picture says enough.
    let picture = json!({ "details": { "media": [{ "path": "/m/3" }] } });
    assert_eq!(rig.ask_with("", &picture).prompt(), "Me.\n\n> [Attached: a file, /m/3]");
}

#[test]
fn details_that_cannot_be_are_refused_and_nothing_is_stored() {
    let rig = rig(&json!({}));
    for (details, says) in [
        (json!({ "media": [{ "path": "../x" }] }), "absolute"),
        (json!({ "sender_number": "call me" }), "sender_number"),
        (json!({ "sender_name": "a\u{1b}[2J" }), "control"),
        (json!({ "transcript": "x".repeat(70_000) }), "transcript"),
        (json!("Ann"), "invalid type"),
        (json!({ "group": { "members": "Ann" } }), "expected a sequence"),
    ] {
        let answer = rig.try_send("hello", &json!({ "details": details }));
        assert_eq!(answer["code"], "invalid_request", "{answer}");
        let message = answer["message"].as_str().unwrap();
        assert!(message.contains(says), "{message}");
    }
    assert_eq!(rig.n_calls(), 0);
}
