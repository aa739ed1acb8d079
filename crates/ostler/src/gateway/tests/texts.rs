//! What an agent is asked, from the message to the call.

use super::*;
use crate::{
    config::{self, Busy, Reply},
    gateway::{
        inbound::{Details, Group, Origin},
        text::Texts,
    },
    store::conversations::Address,
};

fn texts() -> Texts {
    let mut reply = Reply { body_prefix: Some("{{SenderName}}: ".to_owned()), ..Reply::default() };
    reply.session.session_intro = Some("Intro {{IsNewSession}} {{SessionId}}.".to_owned());
    Texts::new(&config::Inbound { reply: Some(reply), ..config::Inbound::default() })
}

/// A message from a chat.
fn chat(sender: &str, text: &str) -> Inbound {
    Inbound {
        address: Address::new("webhook", "http://127.0.0.1:9/x").unwrap(),
        sender: sender.to_owned(),
        ..inbound("unused", text)
    }
}

async fn ask(rig: &Rig, message: Inbound) {
    let job = rig.try_send(message).await.unwrap().job;
    rig.end_of(job).await;
}

on_both! {
    async fn a_session_is_introduced_once_and_again_when_it_begins_afresh(store: Store) {
        let rig = Rig::new(store, Knobs { texts: texts(), ..Knobs::default() }).await;
        for text in ["one", "two", "/new three", "four"] {
            ask(&rig, chat("ann", text)).await;
        }
        assert_eq!(
            rig.calls(),
            [
                "new|Intro true .//ann: one",
                "s1|ann: two",
                "new|Intro true .//ann: three",
                "s2|ann: four",
            ]
        );
        rig.stop().await;
    }

    async fn a_lost_session_is_introduced_again_and_one_of_a_failed_turn_is_not(store: Store) {
        let rig = Rig::new(store, Knobs { texts: texts(), ..Knobs::default() }).await;
        for text in ["one", "lost", "fail", "two"] {
            ask(&rig, chat("ann", text)).await;
        }
        assert_eq!(
            rig.calls(),
            [
                "new|Intro true .//ann: one",
                "s1|ann: lost",
                "new|Intro true .//ann: lost",
                "s2|ann: fail",
                "s2|ann: two",
            ]
        );
        rig.stop().await;
    }

    async fn messages_that_are_combined_have_one_intro_and_their_own_words(store: Store) {
        let knobs = Knobs { texts: texts(), busy: Busy::Combine, ..Knobs::default() };
        let rig = Rig::new(store, knobs).await;
        let held = rig.try_send(chat("ann", "gate")).await.unwrap().job;
        rig.until_hanging().await;
        rig.try_send(chat("ann", "/new one")).await.unwrap();
        let details = Details {
            transcript: Some("spoken".to_owned()),
            group: Some(Group::default()),
            ..Details::default()
        };
        rig.try_send(Inbound { details, ..chat("bob", "two") }).await.unwrap();
        // What nobody said is a turn of its own.
        let arranged = Inbound { origin: Origin::Schedule, ..chat("clock", "three") };
        let last = rig.try_send(arranged).await.unwrap().job;
        rig.open_gate().await;
        for job in [held, last] {
            rig.end_of(job).await;
        }
        assert_eq!(
            rig.calls(),
            [
                "new|Intro true .//ann: gate",
                "new|Intro true .//ann: one//bob: Transcript of the recording:/spoken//two",
                "s2|three",
            ]
        );
        rig.stop().await;
    }

    async fn a_picture_needs_no_word_and_a_blank_message_needs_something(store: Store) {
        let rig = Rig::new(store, Knobs::default()).await;
        let details = |value| serde_json::from_value::<Details>(value).unwrap();
        let picture = details(json!({ "media": [{ "path": "/m/1.png", "type": "image/png" }] }));
        ask(&rig, Inbound { details: picture, ..chat("ann", " ") }).await;
        assert_eq!(rig.calls(), ["new|[Attached: image/png, /m/1.png]"]);
        let nothing = Inbound { details: details(json!({ "to": "me" })), ..chat("ann", " ") };
        assert!(matches!(rig.try_send(nothing).await, Err(Refusal::Empty)));
        let wrong = details(json!({ "media": [{ "path": "here" }] }));
        let refusal = rig.try_send(Inbound { details: wrong, ..chat("ann", "x") }).await;
        assert_eq!(refusal.unwrap_err().code(), "invalid_request");
        rig.stop().await;
    }
}
