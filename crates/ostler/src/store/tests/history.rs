//! The history of messages, and who may write the archive.

use std::time::Duration;

use super::{
    messages::{Direction, Message, NewMessage, Query, Removable, Start},
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
    keep_at(conn, id, name, text, dedupe, NOW).await
}

async fn keep_at(
    conn: &mut Conn,
    id: MessageId,
    name: &str,
    text: &str,
    dedupe: Option<&str>,
    at: Millis,
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
        at,
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

    async fn a_clock_that_was_ahead_keeps_nothing_from_being_removed(store: Store) {
        let kept = store.must((), |conn, ()| {
            Box::pin(async move {
                // The ids go on from where they were when the clock is right again.
                let times = [1, 2, 1 << 50, 3, 4, 100].map(Millis);
                for (number, at) in times.into_iter().enumerate() {
                    let id = MessageId::new();
                    keep_at(conn, id, "a", &number.to_string(), None, at).await?;
                    if number == 0 {
                        continue;
                    }
                    messages::archived(conn, &[id]).await?;
                }
                let before = Millis(50);
                assert_eq!(messages::remove_before(conn, Removable::Archived, before, 2).await?, 2);
                assert_eq!(messages::remove_before(conn, Removable::Archived, before, 2).await?, 1);
                assert_eq!(messages::remove_before(conn, Removable::Archived, before, 2).await?, 0);
                messages::remove_before(conn, Removable::All, before, 2).await
            })
        });
        assert_eq!(kept.await, 1);
        let texts: Vec<_> = all(&store, None).await.into_iter().filter_map(|m| m.text).collect();
        assert_eq!(texts, ["2", "5"]);
    }

    async fn reading_from_a_time_on_finds_the_same_from_both_ends(store: Store) {
        let day = 24 * 60 * 60 * 1000;
        let conversation = store.must((), move |conn, ()| {
            Box::pin(async move {
                for number in 0..10_i64 {
                    let at = Millis(number * day);
                    keep_at(conn, MessageId::new(), "a", &number.to_string(), None, at).await?;
                    keep_at(conn, MessageId::new(), "b", "x", None, at).await?;
                }
                Ok(conversations::find_or_begin(conn, &place("a"), NOW).await?.id)
            })
        });
        let conversation = Some(conversation.await);
        for (since, n_found) in [(0, 10), (1, 9), (4 * day + 1, 5), (9 * day, 1), (9 * day + 1, 0), (99 * day, 0)] {
            for from in [Start::Oldest, Start::Newest] {
                let since = Some(Millis(since));
                let query = Query { conversation, since, until: None, from, limit: 100 };
                let read: Result<_, StoreError> =
                    store.read(query, |conn, query| Box::pin(messages::read(conn, query))).await;
                assert_eq!(read.unwrap().len(), n_found, "{since:?}");
            }
        }
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
                        for since in [None, Some(NOW)] {
                            let (from, until) = (from.clone(), None);
                            let query = Query { conversation, since, until, from, limit: 20 };
                            messages::read(conn, &query).await?;
                        }
                    }
                }
                messages::remove_before(conn, Removable::All, Millis(1), 20).await?;
                messages::remove_before(conn, Removable::Archived, Millis(1), 20).await.map(drop)
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
