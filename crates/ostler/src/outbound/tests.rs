//! Messages that nobody asked for, on both databases.

use serde_json::json;

use super::*;
use crate::{
    gateway::{
        follow::Of,
        inbound::Inbound,
        testing::{Knobs, Rig, inbound},
    },
    store::{
        Store, StoreError,
        messages::{Message, Query, Start},
        testing::{on_both, replies},
    },
};

const HOOK: &str = "http://127.0.0.1:9/replies";

fn to(address: &str, text: &str) -> Outgoing {
    let to = Target::At(address.parse().unwrap());
    Outgoing { to, text: text.to_owned(), id: None, from: None }
}

async fn history(store: &Store) -> Vec<Message> {
    let (conversation, since, until) = (None, None, None);
    let query = Query { conversation, since, until, from: Start::Oldest, limit: 100 };
    let read: Result<_, StoreError> =
        store.read(query, |conn, query| Box::pin(messages::read(conn, query))).await;
    read.unwrap()
}

on_both! {
    async fn people_on_this_machine_find_a_message_in_the_log_and_others_get_it_sent(store: Store) {
        let rig = Rig::new(store.clone(), Knobs::default()).await;
        let local = rig.gateway.deliver(to("local:main", "tea is ready")).await.unwrap();
        let mut reader = rig.gateway.reader(Of::Conversation(local.conversation), 0);
        let events = reader.next().await.unwrap();
        let event: serde_json::Value = serde_json::from_str(&events[0].event.body).unwrap();
        assert_eq!(event["text"], "tea is ready");
        assert_eq!(
            (&event["type"], &event["seq"], &event["turn"], &event["message"]),
            (&json!("output"), &json!(0), &json!(null), &json!(local.message))
        );
        assert!(replies(&store).await.is_empty());
        let hook = rig.gateway.deliver(to(&format!("webhook:{HOOK}"), "done")).await.unwrap();
        let sent = replies(&store).await;
        assert_eq!(sent.len(), 1);
        assert_eq!((&sent[0]["text"], &sent[0]["job"]), (&json!("done"), &json!(null)));
        let kept = history(&store).await;
        assert_eq!(kept.iter().map(|m| m.id).collect::<Vec<_>>(), [local.message, hook.message]);
        let first = &kept[0];
        assert_eq!((first.origin.as_str(), first.direction), (ORIGIN, Direction::Out));
        assert_eq!(first.sender.as_deref(), Some(SENDER));
        rig.stop().await;
    }

    async fn the_same_name_twice_is_the_same_message_wherever_it_goes(store: Store) {
        let rig = Rig::new(store.clone(), Knobs::default()).await;
        let named = |address: &str| Outgoing { id: Some("tea".to_owned()), ..to(address, "tea") };
        let first = rig.gateway.deliver(named(&format!("webhook:{HOOK}"))).await.unwrap();
        assert!(!first.is_again);
        for address in [&format!("webhook:{HOOK}"), "local:main"] {
            let again = rig.gateway.deliver(named(address)).await.unwrap();
            assert_eq!(again, Delivered { is_again: true, ..first });
        }
        assert_eq!((replies(&store).await.len(), history(&store).await.len()), (1, 1));
        // Without a name it is another each time.
        rig.gateway.deliver(to("local:main", "tea")).await.unwrap();
        rig.gateway.deliver(to("local:main", "tea")).await.unwrap();
        assert_eq!(history(&store).await.len(), 3);
        rig.stop().await;
    }

    async fn many_at_once_with_one_name_are_one_message(store: Store) {
        let rig = Rig::new(store.clone(), Knobs::default()).await;
        let mut all = tokio::task::JoinSet::new();
        for _ in 0..20 {
            let gateway = rig.gateway.clone();
            let one = Outgoing { id: Some("once".to_owned()), ..to(&format!("webhook:{HOOK}"), "x") };
            all.spawn(async move { gateway.deliver(one).await.unwrap() });
        }
        let all = all.join_all().await;
        assert_eq!(all.iter().filter(|one| !one.is_again).count(), 1);
        assert!(all.iter().all(|one| one.message == all[0].message));
        assert_eq!((replies(&store).await.len(), history(&store).await.len()), (1, 1));
        rig.stop().await;
    }

    async fn without_an_address_it_goes_where_a_person_spoke_last(store: Store) {
        let rig = Rig::new(store.clone(), Knobs::default()).await;
        let anywhere = || Outgoing { to: Target::Newest, ..to("local:x", "psst") };
        let nowhere = rig.gateway.deliver(anywhere()).await.unwrap_err();
        assert!(matches!(nowhere, Refusal::NobodyThere), "{nowhere}");
        assert!(history(&store).await.is_empty());
        rig.ask("first", "hello").await;
        let address = Address::new("webhook", HOOK).unwrap();
        let hook = Inbound { address, ..inbound("x", "hello") };
        let accepted = rig.try_send(hook).await.unwrap();
        rig.end_of(accepted.job).await;
        let delivered = rig.gateway.deliver(anywhere()).await.unwrap();
        assert_eq!(delivered.conversation, accepted.conversation);
        assert_eq!(replies(&store).await.last().unwrap()["text"], "psst");
        let asked = rig.send("first", "again").await;
        assert_eq!(rig.gateway.deliver(anywhere()).await.unwrap().conversation, asked.conversation);
        rig.stop().await;
    }

    async fn what_cannot_be_sent_is_refused_and_leaves_nothing(store: Store) {
        let rig = Rig::new(store.clone(), Knobs::default()).await;
        for (outgoing, says) in [
            (to("local:a", " \n"), "no text"),
            (to("pigeon:a", "x"), "no channel"),
            (to("webhook:nowhere", "x"), "URL"),
            (Outgoing { id: Some("a\nb".to_owned()), ..to("local:a", "x") }, "id of a message"),
            (Outgoing { from: Some(String::new()), ..to("local:a", "x") }, "sender"),
        ] {
            let refusal = rig.gateway.deliver(outgoing).await.unwrap_err();
            assert_eq!(refusal.code(), "invalid_request");
            assert!(refusal.to_string().contains(says), "{refusal}");
        }
        rig.gateway.close();
        let late = rig.gateway.deliver(to("local:a", "x")).await.unwrap_err();
        assert_eq!(late.code(), "stopping");
        assert!(history(&store).await.is_empty());
        rig.stop().await;
    }

    async fn a_write_that_is_made_twice_is_made_once(store: Store) {
        let (id, now) = (MessageId::new(), Millis(5));
        for _ in 0..2 {
            let args = (id, to(&format!("webhook:{HOOK}"), "once"));
            let stored: Result<_, Refusal> = store
                .write(args, move |conn, (id, outgoing)| {
                    Box::pin(super::store(conn, *id, outgoing, Scope::PerChannel, now))
                })
                .await;
            let stored = stored.unwrap();
            assert_eq!((stored.message, stored.is_again), (id, false));
        }
        assert_eq!((replies(&store).await.len(), history(&store).await.len()), (1, 1));
    }
}
