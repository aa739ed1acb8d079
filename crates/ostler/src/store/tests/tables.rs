//! The tables, one story each.

use std::time::Duration;

use super::*;
use crate::{
    id::{ConversationId, TurnId},
    store::{
        conversations::{Address, AddressError},
        events::{Extent, NewEvent},
        outbox::{Among, NewMessage, Next, Put},
        posts::{StoredPost, Subject},
        sessions::Session,
        turns::{NewTurn, TurnState},
    },
};

const LEASE: Duration = Duration::from_secs(60);

async fn conversation(store: &Store, key: &str) -> ConversationId {
    let address = Address::new("test", key).unwrap();
    let found = store
        .must(address, |conn, address| Box::pin(conversations::find_or_begin(conn, address, NOW)));
    found.await.id
}

fn session(name: &str) -> Session {
    Session { session: name.to_owned(), memo: "{}".to_owned(), updated_at: NOW }
}

fn event(conversation: ConversationId, seq: i64, at: Millis) -> NewEvent {
    let (kind, body) = ("output".to_owned(), format!("{{\"seq\":{seq}}}"));
    NewEvent { conversation: Some(conversation), turn: None, seq, at, kind, body, belongs: None }
}

fn message(dedupe: &str, address: &str) -> NewMessage {
    NewMessage {
        dedupe: dedupe.to_owned(),
        conversation: None,
        turn: None,
        channel: "test".to_owned(),
        address: address.to_owned(),
        body: "NUL: \0".to_owned(),
    }
}

on_both! {
    async fn an_address_has_one_conversation(store: Store) {
        let first = conversation(&store, "here").await;
        assert_eq!(conversation(&store, "here").await, first);
        let other = conversation(&store, "there").await;
        assert_ne!(other, first);
        let listed = store.read((), |conn, ()| Box::pin(conversations::list(conn, None, 10)));
        assert_eq!(listed.await.unwrap().len(), 2);
        let after = store.read(other, |conn, id| Box::pin(conversations::list(conn, Some(*id), 9)));
        let after: Vec<_> = after.await.unwrap().iter().map(|found| found.id).collect();
        assert_eq!(after, [first]);
    }

    async fn what_is_set_for_a_conversation_is_kept(store: Store) {
        let id = conversation(&store, "here").await;
        store.must(id, |conn, id| Box::pin(async move {
            conversations::set_agent(conn, *id, "codex").await?;
            conversations::heard_from_user(conn, *id, NOW).await
        })).await;
        let found = store.read(id, |conn, id| Box::pin(conversations::find(conn, *id)));
        let found = found.await.unwrap().unwrap();
        assert_eq!(found.agent.as_deref(), Some("codex"));
        assert_eq!(found.last_user_at, Some(NOW));
        assert_eq!((found.address.channel(), found.address.key()), ("test", "here"));
        assert_eq!(found.created_at, NOW);
    }

    async fn another_agent_ends_all_sessions_and_the_same_agent_none(store: Store) {
        let id = conversation(&store, "here").await;
        store.must(id, |conn, id| Box::pin(async move {
            conversations::set_agent(conn, *id, "codex").await?;
            sessions::keep(conn, *id, "codex", &session("one")).await?;
            sessions::keep(conn, *id, "codex", &session("two")).await?;
            sessions::keep(conn, *id, "pi", &session("three")).await?;
            conversations::set_agent(conn, *id, "codex").await?;
            let of = |agent: &str, name| (agent.to_owned(), session(name));
            let listed = sessions::list(conn, *id).await?;
            assert_eq!(listed, [of("codex", "two"), of("pi", "three")]);
            sessions::forget_others(conn, *id, "pi").await?;
            assert_eq!(sessions::list(conn, *id).await?, [of("pi", "three")]);
            conversations::set_agent(conn, *id, "claude").await?;
            assert_eq!(sessions::list(conn, *id).await?, []);
            Ok(())
        })).await;
    }

    async fn events_are_numbered_without_gaps_whoever_writes_them(store: Store) {
        let id = conversation(&store, "here").await;
        let mut writers = tokio::task::JoinSet::new();
        for writer in 0..8 {
            let store = store.clone();
            writers.spawn(async move {
                for round in 0..5 {
                    // One in five takes numbers and fails.
                    let wrote: Result<(), StoreError> = store.write((writer, round), move |conn, (writer, round)| {
                        Box::pin(async move {
                            let events: Vec<_> = (0..*writer + 1).map(|seq| event(id, seq, NOW)).collect();
                            events::append(conn, &events).await?;
                            if *round == 2 { Err(StoreError::Closed) } else { Ok(()) }
                        })
                    }).await;
                    assert_eq!(wrote.is_err(), round == 2);
                }
            });
        }
        // A reader that follows sees every number, in order.
        let expected: i64 = (1..=8).sum::<i64>() * 4;
        let mut wakeups = store.wakeups(Topic::Events);
        let mut last = 0;
        while last < expected {
            let more = store.read(last, |conn, last| Box::pin(events::read(conn, *last, 7)));
            let more = more.await.unwrap();
            for event in &more {
                assert_eq!(event.number, last + 1);
                last = event.number;
            }
            if more.is_empty() {
                wakeups.next().await;
            }
        }
        writers.join_all().await;
        let extent = store.read((), |conn, ()| Box::pin(events::extent(conn))).await.unwrap();
        assert_eq!(extent, Extent { removed: 0, newest: expected });
    }

    async fn many_events_are_stored_at_once_and_read_by_conversation_and_turn(store: Store) {
        let (one, two) = (conversation(&store, "one").await, conversation(&store, "two").await);
        let turn = TurnId::new();
        let range = store.must((one, two, turn), |conn, (one, two, turn)| Box::pin(async move {
            let mut many: Vec<_> = (0..121).map(|seq| event(*one, seq, NOW)).collect();
            many.push(NewEvent { turn: Some(*turn), ..event(*two, 7, NOW) });
            assert_eq!(events::append(conn, &[]).await?, None);
            events::append(conn, &many).await
        })).await;
        assert_eq!(range, Some(1..=122));
        let of = store.read(two, |conn, id| Box::pin(events::read_of(conn, *id, 0, 10)));
        let of = of.await.unwrap();
        assert_eq!((of[0].number, of[0].event.body.as_str(), of.len()), (122, "{\"seq\":7}", 1));
        for (seq, expected) in [(7, true), (8, false)] {
            let is_stored = store.read((turn, seq), |conn, (turn, seq)| {
                Box::pin(events::is_stored(conn, *turn, *seq))
            });
            assert_eq!(is_stored.await.unwrap(), expected);
        }
        let rest = store.read(one, |conn, id| Box::pin(events::read_of(conn, *id, 119, 10)));
        let numbers: Vec<_> = rest.await.unwrap().iter().map(|event| event.number).collect();
        assert_eq!(numbers, [120, 121]);
    }

    async fn retention_removes_the_oldest_without_a_gap_and_says_what_it_removed(store: Store) {
        let id = conversation(&store, "here").await;
        let removed = store.must(id, |conn, id| Box::pin(async move {
            // The third is from a clock that was ahead.
            let times = [1, 2, 900, 3, 1000].map(Millis);
            let many: Vec<_> = times.iter().map(|at| event(*id, 0, *at)).collect();
            events::append(conn, &many).await?;
            events::remove_before(conn, Millis(500), 100).await
        })).await;
        assert_eq!(removed, 2);
        let extent = store.read((), |conn, ()| Box::pin(events::extent(conn))).await.unwrap();
        assert_eq!(extent, Extent { removed: 2, newest: 5 });
        let left = store.read((), |conn, ()| Box::pin(events::read(conn, 0, 9))).await.unwrap();
        assert_eq!(left.iter().map(|event| event.number).collect::<Vec<_>>(), [3, 4, 5]);
        let later = store.must((), |conn, ()| Box::pin(events::remove_before(conn, Millis(950), 1)));
        assert_eq!(later.await, 1);
    }

    async fn the_first_result_of_a_turn_stands(store: Store) {
        let id = conversation(&store, "here").await;
        store.must(id, |conn, id| Box::pin(async move {
            let turn = |attempt| NewTurn {
                id: TurnId::new(),
                conversation: *id,
                job: Some(crate::id::JobId::new()),
                attempt,
                agent: "codex".to_owned(),
                begun_at: NOW,
            };
            let first = turn(1);
            let second = NewTurn { job: first.job, ..turn(2) };
            turns::begin(conn, &first).await?;
            turns::begin(conn, &second).await?;
            assert!(turns::is_running(conn, second.id).await?);
            assert_eq!(turns::abandon(conn, first.job.unwrap(), 2, NOW).await?, 1);
            assert!(!turns::end(conn, first.id, "{\"late\":1}", NOW).await?);
            assert!(turns::end(conn, second.id, "{\"a\":1}", NOW).await?);
            assert!(!turns::end(conn, second.id, "{\"b\":1}", NOW).await?);
            assert!(!turns::is_running(conn, second.id).await?);
            let of_job = turns::of_job(conn, first.job.unwrap()).await?;
            let states: Vec<_> = of_job.iter().map(|turn| turn.state).collect();
            assert_eq!(states, [TurnState::Abandoned, TurnState::Ended]);
            let found = turns::find(conn, second.id).await?.unwrap();
            assert_eq!(found.result.as_deref(), Some("{\"a\":1}"));
            assert_eq!((&found.turn, found.ended_at), (&second, Some(NOW)));
            assert_eq!(turns::last_of(conn, *id).await?.unwrap().turn.id, second.id);
            Ok(())
        })).await;
    }

    async fn a_message_is_put_once_and_leaves_in_order(store: Store) {
        store.must((), |conn, ()| Box::pin(async move {
            let Put::New(first) = outbox::put(conn, &message("1", "a"), NOW).await? else { panic!() };
            assert_eq!(outbox::put(conn, &message("1", "a"), NOW).await?, Put::Again(first));
            outbox::put(conn, &message("2", "a"), NOW).await?;
            outbox::put(conn, &message("3", "b"), NOW).await?;
            async fn claim(conn: &mut Conn) -> Result<Option<outbox::Sending>, StoreError> {
                outbox::claim(conn, "me", Among::All, &[], NOW, LEASE).await
            }
            let sending = claim(conn).await?.unwrap();
            assert_eq!((sending.id, sending.attempt, sending.is_unsure), (first, 1, false));
            assert_eq!(sending.message.body, "NUL: \u{fffd}");
            let other = claim(conn).await?.unwrap();
            assert_eq!(other.message.address, "b");
            // The second for the same address waits for the first.
            assert_eq!(claim(conn).await?, None);
            let later = Millis(NOW.0 + 5);
            let retry = Next::RetryAt(later);
            assert!(outbox::failed(conn, first, 1, "rate limit", retry, NOW).await?);
            assert_eq!(claim(conn).await?, None);
            assert_eq!(outbox::next_due(conn, NOW).await?, Some(later));
            assert_eq!(outbox::next_due(conn, later).await?, None);
            let again = outbox::claim(conn, "me", Among::All, &[], later, LEASE).await?.unwrap();
            assert_eq!((again.id, again.attempt, again.is_unsure), (first, 2, false));
            // An earlier attempt cannot say any more that it failed.
            assert!(!outbox::failed(conn, first, 1, "old", Next::GiveUp, NOW).await?);
            assert!(outbox::sent(conn, first, Some("m1"), NOW).await?);
            assert!(!outbox::sent(conn, first, Some("m1"), NOW).await?);
            assert_eq!(claim(conn).await?.unwrap().message.dedupe, "2");
            Ok(())
        })).await;
    }

    async fn a_message_whose_sender_died_is_sent_again_and_says_so(store: Store) {
        store.must((), |conn, ()| Box::pin(async move {
            outbox::put(conn, &message("1", "a"), NOW).await?;
            let lost = outbox::claim(conn, "killed", Among::All, &[], NOW, LEASE).await?.unwrap();
            assert_eq!(outbox::reclaim(conn, NOW).await?, 0);
            let later = NOW.after(LEASE);
            assert_eq!(outbox::reclaim(conn, later).await?, 1);
            let again = outbox::claim(conn, "me", Among::All, &[], later, LEASE).await?.unwrap();
            assert_eq!((again.id, again.attempt, again.is_unsure), (lost.id, 2, true));
            // The one that was taken for dead did send it: that is a fact.
            assert!(outbox::sent(conn, lost.id, None, later).await?);
            assert!(!outbox::failed(conn, again.id, 2, "twice", Next::GiveUp, later).await?);
            Ok(())
        })).await;
    }

    async fn a_message_that_was_not_tried_is_given_back_and_nothing_is_unsure(store: Store) {
        store.must((), |conn, ()| Box::pin(async move {
            outbox::put(conn, &message("1", "a"), NOW).await?;
            let untried = outbox::claim(conn, "stopping", Among::All, &[], NOW, LEASE).await?.unwrap();
            assert!(outbox::give_back(conn, untried.id, untried.attempt).await?);
            assert!(!outbox::give_back(conn, untried.id, untried.attempt).await?);
            let again = outbox::claim(conn, "next", Among::All, &[], NOW, LEASE).await?.unwrap();
            assert_eq!((again.id, again.attempt, again.is_unsure), (untried.id, 2, false));
            // It is another's now.
            assert!(!outbox::give_back(conn, untried.id, untried.attempt).await?);
            Ok(())
        })).await;
    }

    async fn a_gateway_that_starts_on_a_file_takes_back_all_messages_of_the_one_before(
        store: Store
    ) {
        let is_file = matches!(store.location(), Location::Sqlite(_));
        store.must(is_file, |conn, is_file| Box::pin(async move {
            outbox::put(conn, &message("1", "a"), NOW).await?;
            outbox::claim(conn, "killed", Among::All, &[], NOW, LEASE).await?.unwrap();
            // By a clock that was set back, its time has long to go.
            let n_back = outbox::recover(conn, Millis(5)).await?;
            assert_eq!(n_back, u64::from(*is_file));
            assert_eq!(outbox::recover(conn, NOW.after(LEASE)).await?, u64::from(!is_file));
            let again = outbox::claim(conn, "me", Among::All, &[], NOW.after(LEASE), LEASE).await?.unwrap();
            assert!(again.is_unsure);
            Ok(())
        })).await;
    }

    async fn a_message_that_was_given_up_is_shown_and_can_be_tried_again(store: Store) {
        store.must((), |conn, ()| Box::pin(async move {
            outbox::put(conn, &message("1", "a"), NOW).await?;
            let sending = outbox::claim(conn, "me", Among::All, &[], NOW, LEASE).await?.unwrap();
            assert!(outbox::failed(conn, sending.id, 1, "no such user", Next::GiveUp, NOW).await?);
            let failed = outbox::list_failed(conn, None, 9).await?;
            assert_eq!(failed.len(), 1);
            assert_eq!((failed[0].reason.as_str(), failed[0].attempt), ("no such user", 1));
            assert!(outbox::retry(conn, failed[0].id).await?);
            assert!(!outbox::retry(conn, failed[0].id).await?);
            let again = outbox::claim(conn, "me", Among::All, &[], NOW, LEASE).await?.unwrap();
            assert!(outbox::sent(conn, again.id, None, NOW).await?);
            assert_eq!(outbox::remove_before(conn, Millis(NOW.0 + 1), 9).await?, 1);
            Ok(())
        })).await;
    }

    async fn how_often_a_message_was_opened_again_is_counted_after_it_had_left(store: Store) {
        store.must((), |conn, ()| Box::pin(async move {
            outbox::put(conn, &message("m", "here"), NOW).await?;
            let subject = Subject {
                id: "m".to_owned(), channel: "test".to_owned(), place: "here".to_owned(),
            };
            let id = outbox::standing(conn, &subject).await?.unwrap().id;
            let again = outbox::Reopened::Again(NOW);
            for expected in 1..=2 {
                outbox::sent(conn, id, None, NOW).await?;
                // While it waits it was not sent.
                for _ in 0..2 {
                    assert!(outbox::reopen(conn, id, again, NOW).await?);
                }
                let standing = outbox::standing(conn, &subject).await?.unwrap();
                assert_eq!(standing.n_reopened, expected);
            }
            // Whoever has it tried again begins anew.
            outbox::reopen(conn, id, outbox::Reopened::Failed("no"), NOW).await?;
            assert!(outbox::retry(conn, id).await?);
            assert_eq!(outbox::standing(conn, &subject).await?.unwrap().n_reopened, 0);
            Ok(())
        })).await;
    }

    async fn what_somebody_wrote_since_counts_though_he_could_not_be_reached(store: Store) {
        store.must((), |conn, ()| Box::pin(async move {
            let later = Millis(NOW.0 + 1);
            contacts::heard(conn, "whatsapp", "+1", later).await?;
            contacts::silent(conn, "whatsapp", "+1", NOW).await?;
            let heard = contacts::find(conn, "whatsapp", "+1").await?.unwrap().heard_at;
            assert_eq!(heard, later);
            contacts::silent(conn, "whatsapp", "+1", later).await?;
            let heard = contacts::find(conn, "whatsapp", "+1").await?.unwrap().heard_at;
            assert_eq!(heard, Millis(0));
            Ok(())
        })).await;
    }

    async fn who_was_not_reached_is_known_while_something_waits_for_him(store: Store) {
        const WAITS: &str = "until he writes";
        store.must((), |conn, ()| Box::pin(async move {
            let later = Millis(NOW.0 + 1);
            for place in ["+1", "+2", "+3", "+4"] {
                contacts::called(conn, "test", place, NOW).await?;
                let (id, channel) = (format!("call:{place}"), "test".to_owned());
                let subject = Subject { id, channel, place: place.to_owned() };
                let post = StoredPost {
                    slot: "note".to_owned(), message: Some(place.to_owned()), posted_at: NOW,
                };
                posts::note(conn, &subject, &post).await?;
                outbox::put(conn, &message(place, place), NOW).await?;
                let sending = outbox::claim(conn, "me", Among::All, &[], NOW, LEASE).await?;
                let id = sending.unwrap().id;
                let why = if place == "+4" { "something else" } else { WAITS };
                outbox::failed(conn, id, 1, why, Next::GiveUp, NOW).await?;
            }
            for (place, status) in [("+1", "failed"), ("+2", posts::LOST), ("+4", "failed")] {
                posts::delivered(conn, "test", place, status, Some("no")).await?;
            }
            let missed = async |conn: &mut Conn, before| {
                contacts::missed_calls(conn, "test", before, ("call:", WAITS), 9).await
            };
            assert_eq!(missed(conn, NOW).await?, Vec::<String>::new());
            assert_eq!(missed(conn, later).await?, ["+1"]);
            assert!(contacts::called_again(conn, "test", "+1", later, later).await?);
            // Another gateway may have been about to.
            assert!(!contacts::called_again(conn, "test", "+1", later, later).await?);
            assert_eq!(missed(conn, later).await?, Vec::<String>::new());
            // Whoever writes need not be called.
            let last = Millis(later.0 + 1);
            contacts::heard(conn, "test", "+1", last).await?;
            assert!(!contacts::called_again(conn, "test", "+1", last, last).await?);
            Ok(())
        })).await;
    }
}

#[test]
fn a_place_without_a_proper_name_is_no_address() {
    let long = "x".repeat(513);
    for (key, error) in [
        ("", AddressError::Empty),
        ("a\u{7}b", AddressError::Control),
        ("a\nb", AddressError::Control),
        (&long, AddressError::Long),
    ] {
        assert_eq!(Address::new("test", key), Err(error));
    }
}
