//! The history of messages, and who may write the archive.

use std::time::Duration;

use super::{
    messages::{Direction, Message, NewMessage, Query, Start},
    *,
};
use crate::{
    id::{ConversationId, MessageId},
    store::{conversations::Address, testing::plans},
};

fn place(name: &str) -> Address {
    Address::new("test", name).unwrap()
}

/// Keeps a message; returns whether it is a new one.
async fn keep(
    conn: &mut Conn,
    id: MessageId,
    name: &str,
    text: &str,
    dedupe: Option<&str>,
) -> Result<bool, StoreError> {
    let place = place(name);
    let conversation = conversations::find_or_begin(conn, &place, NOW).await?.id;
    let message = NewMessage {
        id,
        conversation,
        direction: Direction::Out,
        origin: "reply",
        place: &place,
        sender: None,
        agent: Some("codex"),
        text: Some(text),
        error: None,
        job: None,
        turn: None,
        at: NOW,
        dedupe,
    };
    messages::add(conn, &message).await
}

async fn all(store: &Store, conversation: Option<ConversationId>) -> Vec<Message> {
    let (since, until) = (None, None);
    let query = Query { conversation, since, until, from: Start::Oldest, limit: 100 };
    let read: Result<_, StoreError> =
        store.read(query, |conn, query| Box::pin(messages::read(conn, query))).await;
    read.unwrap()
}

on_both! {
    async fn a_message_is_kept_once_by_its_id_and_by_its_name(store: Store) {
        let id = MessageId::new();
        let kept = store.must(id, |conn, id| {
            Box::pin(async move {
                let mut kept = Vec::new();
                for (id, text, dedupe) in [
                    (*id, "one", Some("name")),
                    (*id, "two", None),
                    (MessageId::new(), "three", Some("name")),
                    (MessageId::new(), "four", None),
                    (MessageId::new(), "five\0", None),
                ] {
                    kept.push(keep(conn, id, "a", text, dedupe).await?);
                }
                assert_eq!(messages::named(conn, "name").await?.map(|(id, _)| id), Some(*id));
                assert_eq!(messages::named(conn, "other").await?, None);
                Ok(kept)
            })
        });
        assert_eq!(kept.await, [true, false, false, true, true]);
        let texts: Vec<_> = all(&store, None).await.into_iter().filter_map(|m| m.text).collect();
        assert_eq!(texts, ["one", "four", "five\u{fffd}"]);
    }

    async fn a_conversation_has_the_order_of_its_writes_whatever_the_ids(store: Store) {
        let mut ids: Vec<_> = (0..5).map(|_| MessageId::new()).collect();
        ids.reverse();
        let conversation = store.must(ids.clone(), |conn, ids| {
            Box::pin(async move {
                for id in ids {
                    keep(conn, *id, "a", "x", None).await?;
                    keep(conn, MessageId::new(), "b", "x", None).await?;
                }
                Ok(conversations::find_or_begin(conn, &place("a"), NOW).await?.id)
            })
        });
        let conversation = conversation.await;
        let of_one = all(&store, Some(conversation)).await;
        assert_eq!(of_one.iter().map(|message| message.id).collect::<Vec<_>>(), ids);
        assert_eq!(of_one.iter().map(|message| message.number).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
        let of_all = all(&store, None).await;
        assert!(of_all.is_sorted_by_key(|message| message.id) && of_all.len() == 10);
    }

    async fn one_gateway_at_a_time_has_a_duty(store: Store) {
        let minute = Duration::from_secs(60);
        let take = async |owner: &str, now: Millis| -> bool {
            store
                .must((owner.to_owned(), now), move |conn, (owner, now)| {
                    Box::pin(duties::take(conn, duties::ARCHIVE, owner, *now, minute))
                })
                .await
        };
        assert!(take("first", NOW).await);
        assert!(take("first", NOW).await);
        // A SQLite store is one gateway's: the other was killed.
        let is_shared = matches!(store.location(), Location::Postgres(_));
        assert_eq!(take("second", NOW).await, !is_shared);
        assert!(take("second", NOW.after(minute)).await);
        assert_eq!(take("first", NOW.after(minute)).await, !is_shared);
    }

    async fn nothing_that_is_done_often_looks_at_all_messages(store: Store) {
        for part in 0..10 {
            let kept = store.must(part, |conn, _| {
                Box::pin(async move {
                    for number in 0..500 {
                        let name = (number % 20).to_string();
                        keep(conn, MessageId::new(), &name, "x", Some(&format!("{}", MessageId::new()))).await?;
                    }
                    let ids: Vec<_> = messages::unarchived(conn, None, 500).await?;
                    let ids: Vec<_> = ids.iter().map(|one| one.message.id).collect();
                    messages::archived(conn, &ids).await
                })
            });
            kept.await;
        }
        let conversation = all(&store, None).await[0].conversation;
        let plans = plans(&store, conversation, |conn, conversation| {
            Box::pin(async move {
                keep(conn, MessageId::new(), "3", "x", Some("name")).await?;
                messages::named(conn, "name").await?;
                messages::newest_place(conn).await?;
                messages::newest_conversation(conn).await?;
                messages::has_unarchived(conn).await?;
                messages::unarchived(conn, None, 20).await?;
                for conversation in [Some(*conversation), None] {
                    for from in [Start::Oldest, Start::Newest, Start::After(5, MessageId::new())] {
                        let (since, until) = (None, None);
                        let query = Query { conversation, since, until, from, limit: 20 };
                        messages::read(conn, &query).await?;
                    }
                }
                Ok(())
            })
        });
        for plan in plans.await {
            // A statement may be written over several lines; the plan comes after it.
            let is_scan = plan.lines().any(|line| {
                line.contains("Seq Scan on messages")
                    || line.contains("SCAN messages") && !line.contains("INDEX")
                    || line.contains("TEMP B-TREE")
            });
            assert!(!is_scan, "{plan}");
        }
    }
}
