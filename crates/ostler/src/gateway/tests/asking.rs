//! Who may answer what an agent asks, and how often.

use std::collections::HashMap;

use ostler_core::permission::{Answer, DecidedBy, Decision, Permission, PermissionKind};

use crate::{
    clock::Millis,
    gateway::asking::{self, Actor, AnswerError, Asked},
    id::{ConversationId, JobId, PermissionId, TurnId},
    queue::MessageKey,
    store::{
        Store, StoreError, Topic, Woken, audit,
        conversations::{self, Address},
        jobs,
        testing::on_both,
    },
};

/// Stores a request of a turn that `me` asked for, open for this many seconds.
async fn ask(store: &Store, turn: TurnId, seconds: i64) -> PermissionId {
    let place = Address::new("local", "main").unwrap();
    let target = place.clone();
    let begun = store
        .must(place, |conn, place| Box::pin(conversations::find_or_begin(conn, place, Millis(1))));
    let conversation: ConversationId = begun.await.id;
    let title = "rm -r build".to_owned();
    let mut permission = Permission::new(PermissionKind::Command, "Bash", title, None).named("r1");
    let expires = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(seconds);
    permission.expires_at = Some(expires);
    let (of, target) = ("me".to_owned(), &target);
    let asked = Asked { conversation, turn, of, permission: &permission, target, number: 1 };
    asking::store(store, asked).await.unwrap().id
}

fn allow(text: &str) -> Answer {
    Answer { decision: Decision::Allow, text: Some(text.to_owned()) }
}

fn sender(name: &str) -> Actor {
    Actor::Sender { channel: "test", name: name.to_owned() }
}

on_both! {
    async fn who_asked_the_agent_answers_once_and_it_is_written_down(store: Store) {
        let turn = TurnId::new();
        let id = ask(&store, turn, 60).await;
        let open = HashMap::from([("r1".to_owned(), id)]);
        assert!(asking::answers(&store, turn, &open).await.is_empty());
        let stranger = asking::answer(&store, id, allow("no"), sender("you")).await;
        assert!(matches!(stranger, Err(AnswerError::NotYours)));
        let mut wakeups = store.wakeups(Topic::Wishes);
        asking::answer(&store, id, allow("yes"), sender("me")).await.unwrap();
        assert_eq!(wakeups.next().await, Woken::Told);
        let given = asking::answers(&store, turn, &open).await;
        assert_eq!(given, [("r1".to_owned(), allow("yes"))]);
        let operator = Actor::Operator("root".to_owned());
        let late = asking::answer(&store, id, Answer::new(Decision::Deny), operator).await;
        assert!(matches!(late, Err(AnswerError::Before(decision)) if decision == "allow"));
        let subject = id.to_string();
        let lines = store.read(subject, |conn, subject| Box::pin(audit::about(conn, subject)));
        let lines = lines.await.unwrap();
        assert_eq!(lines.len(), 1);
        let line = (lines[0].actor.as_str(), lines[0].action.as_str());
        assert_eq!(line, ("test:me", "permission.allow"));
        assert!(lines[0].detail.contains("rm -r build"), "{lines:?}");
    }

    async fn the_operator_may_answer_for_anybody_and_nobody_after_its_time(store: Store) {
        let operator = || Actor::Operator("root".to_owned());
        let id = ask(&store, TurnId::new(), 60).await;
        asking::answer(&store, id, allow("yes"), operator()).await.unwrap();
        let late = ask(&store, TurnId::new(), -1).await;
        let answer = asking::answer(&store, late, allow("yes"), operator()).await;
        assert!(matches!(answer, Err(AnswerError::Late)));
        let unknown = asking::answer(&store, PermissionId::new(), allow("yes"), operator()).await;
        assert!(matches!(unknown, Err(AnswerError::Unknown)));
    }

    async fn what_was_decided_without_an_answer_cannot_be_answered_any_more(store: Store) {
        let turn = TurnId::new();
        let id = ask(&store, turn, 60).await;
        asking::settle(&store, id, Decision::Deny, DecidedBy::Cancel).await;
        let answer = asking::answer(&store, id, allow("yes"), sender("me")).await;
        assert!(matches!(answer, Err(AnswerError::Before(decision)) if decision == "deny"));
    }

    async fn a_message_is_dealt_with_in_the_write_that_decides(store: Store) {
        let turn = TurnId::new();
        let id = ask(&store, turn, 60).await;
        let key = |message: &str| MessageKey::new("sms", "+1", message);
        let is_known = async |message: &str| {
            let key = key(message);
            let noted = store.read(key, |conn, key| Box::pin(jobs::noted_as(conn, key)));
            let noted: Result<Option<JobId>, StoreError> = noted.await;
            noted.unwrap().is_some()
        };
        let stranger = asking::answer_by(&store, key("a"), id, allow("no"), sender("you")).await;
        assert!(matches!(stranger, Err(AnswerError::NotYours)), "{stranger:?}");
        assert!(!is_known("a").await);
        asking::answer_by(&store, key("b"), id, allow("yes"), sender("me")).await.unwrap();
        assert!(is_known("b").await);
    }
}
