//! Which session a message goes on with.

use std::time::Duration;

use super::*;
use crate::{
    clock::Millis,
    config::{Scope, Sessions},
    gateway::inbound::{Details, Group, Origin},
    store::{
        StoreError, conversations,
        sessions::{self, Session},
        testing::age,
    },
};

on_both! {
    async fn a_conversation_goes_on_with_its_session_and_others_have_their_own(store: Store) {
        let rig = Rig::new(store, Knobs::default()).await;
        for (conversation, text) in [("a", "one"), ("b", "two"), ("a", "three")] {
            rig.ask(conversation, text).await;
        }
        assert_eq!(rig.calls(), ["new|one", "new|two", "s1|three"]);
        rig.stop().await;
    }

    async fn the_session_of_a_turn_that_failed_is_gone_on_with(store: Store) {
        let rig = Rig::new(store, Knobs::default()).await;
        rig.ask("a", "one").await;
        let failed = rig.send("a", "fail").await.job;
        assert_eq!(rig.end_of(failed).await.1.state, JobState::Dead);
        rig.ask("a", "two").await;
        assert_eq!(rig.calls(), ["new|one", "s1|fail", "s1|two"]);
        rig.stop().await;
    }

    async fn a_lost_session_is_dropped_and_tried_afresh_once(store: Store) {
        let rig = Rig::new(store, Knobs::default()).await;
        rig.ask("a", "one").await;
        let job = rig.send("a", "lost").await.job;
        let (events, ending) = rig.end_of(job).await;
        assert_eq!(text_of(&ending), "found");
        assert_eq!(events.iter().filter(|event| event["code"] == "fresh_session").count(), 1);
        assert_eq!(rig.calls(), ["new|one", "s1|lost", "new|lost"]);
        rig.ask("a", "three").await;
        assert_eq!(rig.calls()[3], "s2|three");
        rig.stop().await;
    }

    async fn a_reset_word_begins_afresh_in_its_place_among_the_messages(store: Store) {
        let rig = Rig::new(store, Knobs::default()).await;
        rig.send("a", "gate").await;
        rig.until_hanging().await;
        let mut last = None;
        for text in ["one", "/new", "two", "/new three"] {
            last = Some(rig.send("a", text).await.job);
        }
        rig.open_gate().await;
        rig.end_of(last.unwrap()).await;
        assert_eq!(rig.calls(), ["new|gate", "s1|one", "new|two", "new|three"]);
        rig.stop().await;
    }

    async fn a_conversation_that_was_silent_for_long_begins_afresh(store: Store) {
        let sessions = Sessions { idle: Some(Duration::from_secs(60)), ..Sessions::default() };
        let rig = Rig::new(store.clone(), Knobs { sessions, ..Knobs::default() }).await;
        let Accepted { conversation, job, .. } = rig.send("a", "one").await;
        rig.end_of(job).await;
        rig.ask("a", "two").await;
        age(&store, conversation, Duration::from_secs(61)).await;
        rig.ask("a", "three").await;
        rig.ask("a", "four").await;
        assert_eq!(rig.calls(), ["new|one", "s1|two", "new|three", "s2|four"]);
        rig.stop().await;
    }

    async fn a_turn_that_takes_long_is_no_silence(store: Store) {
        let sessions = Sessions { idle: Some(Duration::from_secs(60)), ..Sessions::default() };
        let rig = Rig::new(store.clone(), Knobs { sessions, ..Knobs::default() }).await;
        let Accepted { conversation, .. } = rig.send("a", "gate").await;
        rig.until_hanging().await;
        age(&store, conversation, Duration::from_secs(61)).await;
        let during = rig.send("a", "during").await.job;
        age(&store, conversation, Duration::from_secs(61)).await;
        rig.open_gate().await;
        rig.end_of(during).await;
        let then = Millis::now().before(Duration::from_secs(61));
        store
            .must((conversation, then), |conn, (id, then)| {
                Box::pin(conversations::heard_from_user(conn, *id, *then))
            })
            .await;
        rig.ask("a", "after").await;
        assert_eq!(rig.calls(), ["new|gate", "s1|during", "s1|after"]);
        rig.stop().await;
    }

    async fn another_agent_begins_afresh_and_coming_back_does_so_too(store: Store) {
        let rig = Rig::new(store.clone(), Knobs::default()).await;
        let Accepted { conversation, job, .. } = rig.send("a", "one").await;
        rig.end_of(job).await;
        for agent in ["pi", "opencode", "pi"] {
            let wishes = Wishes { agent: Some(agent.to_owned()), ..Wishes::default() };
            let sent = rig.try_send(Inbound { wishes, ..inbound("a", agent) }).await.unwrap();
            rig.end_of(sent.job).await;
        }
        rig.ask("a", "last").await;
        let calls = rig.calls();
        assert_eq!(calls[0..2], ["new|one", "s1|pi"]);
        assert!(calls[2].starts_with("new|"), "{calls:?}");
        assert_eq!(calls[3], "new|pi");
        assert!(calls[4].ends_with("|last") && !calls[4].starts_with("new"), "{calls:?}");
        let kept = store.read(conversation, |conn, id| Box::pin(sessions::list(conn, *id)));
        assert_eq!(kept.await.unwrap().len(), 1);
        rig.stop().await;
    }

    async fn an_agent_that_cannot_run_does_not_end_the_session_of_another(store: Store) {
        let rig = Rig::new(store, Knobs::default()).await;
        rig.ask("a", "one").await;
        std::fs::rename(rig.path("agent"), rig.path("away")).unwrap();
        let wishes = Wishes { agent: Some("codex".to_owned()), ..Wishes::default() };
        let sent = rig.try_send(Inbound { wishes, ..inbound("a", "x") }).await.unwrap();
        assert_eq!(rig.end_of(sent.job).await.1.state, JobState::Dead);
        std::fs::rename(rig.path("away"), rig.path("agent")).unwrap();
        rig.ask("a", "two").await;
        assert_eq!(rig.calls(), ["new|one", "s1|two"]);
        rig.stop().await;
    }

    async fn a_named_session_is_gone_on_with(store: Store) {
        let rig = Rig::new(store, Knobs::default()).await;
        let wishes = Wishes { session: Some("s9".to_owned()), ..Wishes::default() };
        let sent = rig.try_send(Inbound { wishes, ..inbound("a", "one") }).await.unwrap();
        rig.end_of(sent.job).await;
        rig.ask("a", "two").await;
        assert_eq!(rig.calls(), ["s9|one", "s9|two"]);
        rig.stop().await;
    }

    async fn where_no_turn_is_known_any_more_the_session_tells_how_long_it_was_silent(store: Store) {
        let rig = Rig::new(store.clone(), Knobs::default()).await;
        for (name, ago) in [("old", 61), ("new", 59)] {
            let address = Address::new("local", name).unwrap();
            let then = Millis::now().before(Duration::from_secs(ago * 60));
            store
                .must((address, then), |conn, (address, then)| {
                    Box::pin(async move {
                        let id = conversations::find_or_begin(conn, address, *then).await?.id;
                        let (session, memo) = ("s9".to_owned(), "{}".to_owned());
                        let session = Session { session, memo, updated_at: *then };
                        sessions::keep(conn, id, "pi", &session).await
                    })
                })
                .await;
            let run = Inbound { origin: Origin::Schedule, ..inbound(name, name) };
            let run = rig.try_send(run).await.unwrap().job;
            rig.end_of(run).await;
        }
        assert_eq!(rig.calls(), ["new|old", "s9|new"]);
        rig.stop().await;
    }

    async fn what_a_hook_says_keeps_no_session_alive(store: Store) {
        let rig = Rig::new(store.clone(), Knobs::default()).await;
        let Accepted { conversation, job, .. } = rig.send("a", "one").await;
        rig.end_of(job).await;
        age(&store, conversation, Duration::from_secs(61 * 60)).await;
        for (origin, text) in [(Origin::Hook, "hook"), (Origin::Schedule, "run")] {
            let sent = Inbound { origin, ..inbound("a", text) };
            let job = rig.try_send(sent).await.unwrap().job;
            rig.end_of(job).await;
        }
        rig.ask("a", "two").await;
        assert_eq!(rig.calls(), ["new|one", "new|hook", "new|run", "s3|two"]);
        rig.stop().await;
    }

    async fn a_reset_word_is_no_reason_to_drop_what_came_with_it_and_none_in_a_run(store: Store) {
        let rig = Rig::new(store, Knobs::default()).await;
        rig.ask("a", "one").await;
        let details = Details { transcript: Some("spoken".to_owned()), ..Details::default() };
        let caption = Inbound { details, ..inbound("a", "/new") };
        let run = Inbound { origin: Origin::Run, ..inbound("a", "/new two") };
        for sent in [caption, run] {
            let job = rig.try_send(sent).await.unwrap().job;
            rig.end_of(job).await;
        }
        let calls = rig.calls();
        assert!(calls[1].starts_with("new|") && calls[1].contains("spoken"), "{calls:?}");
        assert_eq!(calls[2], "s2|/new two");
        rig.stop().await;
    }

    async fn where_somebody_spoke_is_known_whatever_conversation_that_belongs_to(store: Store) {
        for scope in [Scope::PerChannel, Scope::PerSender, Scope::PerGroup, Scope::Global] {
            let sessions = Sessions { scope, ..Sessions::default() };
            let rig = Rig::new(store.clone(), Knobs { sessions, ..Knobs::default() }).await;
            let since = Millis::now();
            let place = |name: &str| format!("http://127.0.0.1:1/{scope:?}-{name}");
            for (name, group) in
                [("one", None), ("two", Some(Group::default())), ("one", None)]
            {
                let address = Address::new("webhook", &place(name)).unwrap();
                let details = Details { group, ..Details::default() };
                let sent = Inbound { address, details, ..inbound("a", name) };
                let job = rig.try_send(sent).await.unwrap().job;
                rig.end_of(job).await;
            }
            let lively = store.read(since, |conn, since| {
                Box::pin(conversations::lively_places(conn, "webhook", *since, 99))
            });
            let lively: Result<Vec<String>, StoreError> = lively.await;
            let mut lively = lively.unwrap();
            // The last one of the scope before may be of the same moment.
            lively.retain(|lively| lively.starts_with(&place("")));
            lively.sort();
            assert_eq!(lively, [place("one"), place("two")]);
            rig.stop().await;
        }
    }
}
