//! The gateway from the message to the answer, on both databases.

mod asking;
mod busy;
mod hooks;
mod media;
mod prompt_files;
mod sessions;
mod stopping;
mod texts;

use std::{fs, time::Duration};

use serde_json::json;

use super::{
    follow::Of,
    gate,
    inbound::{Accepted, Inbound, Refusal},
    testing::{Knobs, Rig, inbound, text_of},
};
use crate::{
    clock::Millis,
    id::JobId,
    queue::{CancelOutcome, EnqueueError, JobState, Queue, WorkerId},
    store::{
        conversations::{self, Address},
        testing::{on_both, replies},
    },
    wishes::Wishes,
};

on_both! {
    async fn a_message_is_answered_and_its_events_are_numbered_to_the_end(store: Store) {
        let rig = Rig::new(store, Knobs::default()).await;
        let Accepted { job, conversation, is_again } = rig.send("main", "hello").await;
        assert!(!is_again);
        let (events, ending) = rig.end_of(job).await;
        assert_eq!(ending.state, JobState::Done);
        assert_eq!(text_of(&ending), "hello");
        for (event, number) in events.iter().zip(1..) {
            assert_eq!(event["seq"], number, "{event}");
        }
        assert_eq!(events[0]["type"], "started");
        assert_eq!(events[0]["attempt"], 1);
        assert_eq!(events.last().unwrap()["type"], "complete");
        // Whoever comes later reads the same, from any number on.
        let mut reader = rig.gateway.reader(Of::Conversation(conversation), 0);
        let all = reader.next().await.unwrap();
        assert_eq!(all.len(), events.len());
        let mut later = rig.gateway.reader(Of::Everything, all[1].number);
        assert_eq!(later.next().await.unwrap(), all[2..]);
        rig.stop().await;
    }

    async fn messages_of_a_conversation_are_answered_in_order_and_others_beside_them(store: Store) {
        let rig = Rig::new(store, Knobs::default()).await;
        let held = rig.send("a", "gate").await;
        rig.until_hanging().await;
        let mut jobs = Vec::new();
        for number in 0..5 {
            jobs.push(rig.send("a", &format!("a{number}")).await.job);
        }
        assert_eq!(rig.ask("b", "meanwhile").await, "meanwhile");
        rig.until_running(1).await;
        assert_eq!(rig.gateway.standing().await.turns_running, 1);
        rig.open_gate().await;
        assert_eq!(text_of(&rig.end_of(held.job).await.1), "opened");
        for (number, job) in jobs.into_iter().enumerate() {
            assert_eq!(text_of(&rig.end_of(job).await.1), format!("a{number}"));
        }
        let asked: Vec<_> = rig.calls();
        let of_a: Vec<_> = asked.iter().filter(|call| call.contains("|a")).collect();
        assert_eq!(of_a, ["s1|a0", "s1|a1", "s1|a2", "s1|a3", "s1|a4"]);
        rig.stop().await;
    }

    async fn no_more_turns_than_the_limit_run_at_once_and_a_new_limit_counts_at_once(store: Store) {
        let knobs = Knobs { at_once: 1, ..Knobs::default() };
        let rig = Rig::new(store, knobs.clone()).await;
        rig.send("a", "gate").await;
        rig.until_hanging().await;
        let waiting = rig.send("b", "second").await;
        assert_eq!(rig.gateway.standing().await.queue.unwrap().ready, 1);
        rig.change(&Knobs { at_once: 2, ..knobs });
        assert_eq!(text_of(&rig.end_of(waiting.job).await.1), "second");
        rig.open_gate().await;
        rig.stop().await;
    }

    async fn the_same_message_twice_is_answered_once(store: Store) {
        let rig = Rig::new(store, Knobs::default()).await;
        let message = Inbound { message: Some("m1".to_owned()), ..inbound("main", "once") };
        let first = rig.try_send(message.clone()).await.unwrap();
        let again = rig.try_send(message.clone()).await.unwrap();
        assert_eq!(again, Accepted { is_again: true, ..first });
        rig.end_of(first.job).await;
        assert!(rig.try_send(message).await.unwrap().is_again);
        // The same name elsewhere is another message.
        let other = Inbound { message: Some("m1".to_owned()), ..inbound("else", "other") };
        assert!(!rig.try_send(other).await.unwrap().is_again);
        rig.stop().await;
    }

    async fn what_is_too_much_or_makes_no_sense_is_refused_and_leaves_nothing(store: Store) {
        let rig = Rig::new(store, Knobs { depth: 1, ..Knobs::default() }).await;
        assert!(matches!(rig.try_send(inbound("a", " \n")).await, Err(Refusal::Empty)));
        let wishes = Wishes { agent: Some("cloude".to_owned()), ..Wishes::default() };
        let unknown = rig.try_send(Inbound { wishes, ..inbound("a", "x") }).await.unwrap_err();
        assert_eq!(unknown.code(), "invalid_request");
        rig.send("a", "gate").await;
        rig.until_hanging().await;
        rig.send("a", "waits").await;
        let full = rig.try_send(inbound("a", "too much")).await.unwrap_err();
        assert!(matches!(full, Refusal::Enqueue(EnqueueError::QueueFull { .. })), "{full}");
        assert_eq!(full.code(), "queue_full");
        rig.open_gate().await;
        rig.stop().await;
    }

    async fn a_cancelled_turn_ends_at_once_and_the_next_message_is_answered(store: Store) {
        let rig = Rig::new(store, Knobs::default()).await;
        let running = rig.send("a", "hang").await.job;
        let waiting = rig.send("a", "never").await.job;
        let next = rig.send("a", "next").await.job;
        rig.until_hanging().await;
        assert_eq!(rig.gateway.cancel_job(waiting).await.unwrap(), CancelOutcome::Cancelled);
        assert_eq!(rig.gateway.cancel_job(running).await.unwrap(), CancelOutcome::Requested);
        let (events, ending) = rig.end_of(running).await;
        assert_eq!(ending.state, JobState::Cancelled);
        assert_eq!(events.last().unwrap()["error"]["kind"], "cancelled");
        assert_eq!(text_of(&rig.end_of(next).await.1), "next");
        assert_eq!(rig.end_of(waiting).await.1.state, JobState::Cancelled);
        assert!(!rig.calls().iter().any(|call| call.contains("never")));
        rig.stop().await;
    }

    async fn a_conversation_that_is_cancelled_starts_nothing_by_accident(store: Store) {
        let rig = Rig::new(store, Knobs::default()).await;
        let Accepted { job, conversation, .. } = rig.send("a", "hang").await;
        let waiting = rig.send("a", "never").await.job;
        rig.until_hanging().await;
        let cancelled = rig.gateway.cancel_conversation(conversation).await.unwrap();
        assert_eq!((cancelled.n_cancelled, cancelled.running), (1, Some(job)));
        assert_eq!(rig.end_of(job).await.1.state, JobState::Cancelled);
        assert_eq!(rig.end_of(waiting).await.1.state, JobState::Cancelled);
        assert_eq!(rig.ask("a", "later").await, "later");
        rig.stop().await;
    }

    async fn a_transient_failure_is_tried_again_and_says_so(store: Store) {
        let rig = Rig::new(store, Knobs { retries: 3, ..Knobs::default() }).await;
        let job = rig.send("a", "stumble").await.job;
        let (events, ending) = rig.end_of(job).await;
        assert_eq!((ending.state, text_of(&ending).as_str()), (JobState::Done, "up"));
        let attempts: Vec<_> = events.iter().filter(|event| event["type"] == "started").collect();
        assert_eq!(attempts.len(), 2);
        assert_eq!(attempts[1]["attempt"], 2);
        let retry = events.iter().find(|event| event["code"] == "retry").unwrap();
        assert_eq!((&retry["attempt"], &retry["max"]), (&1.into(), &3.into()));
        assert_eq!((&retry["seq"], &retry["turn"]), (&0.into(), &serde_json::Value::Null));
        rig.stop().await;
    }

    async fn what_keeps_failing_is_dead_after_its_retries_and_kept_with_the_reason(store: Store) {
        let rig = Rig::new(store, Knobs { retries: 2, ..Knobs::default() }).await;
        let job = rig.send("a", "fail").await.job;
        let next = rig.send("a", "next").await.job;
        let (events, ending) = rig.end_of(job).await;
        assert_eq!(ending.state, JobState::Dead);
        assert!(ending.reason.as_ref().unwrap().contains("it broke"), "{ending:?}");
        assert_eq!(text_of(&ending), "Pi CLI error (exit 7): it broke\n");
        assert_eq!(events.iter().filter(|event| event["type"] == "complete").count(), 3);
        assert_eq!(text_of(&rig.end_of(next).await.1), "next");
        assert_eq!(rig.calls().len(), 4);
        rig.stop().await;
    }

    async fn an_agent_that_cannot_be_started_is_a_failure_like_any_other(store: Store) {
        let rig = Rig::new(store, Knobs { retries: 1, ..Knobs::default() }).await;
        fs::remove_file(rig.path("agent")).unwrap();
        let job = rig.send("a", "hello").await.job;
        let (events, ending) = rig.end_of(job).await;
        assert_eq!(ending.state, JobState::Dead);
        assert!(ending.reason.unwrap().contains("spawn_failed"));
        let told: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
        assert_eq!(told, ["error", "complete", "status", "error", "complete"]);
        rig.stop().await;
    }

    async fn a_turn_that_hangs_is_a_timeout_and_its_last_try_has_a_fresh_session(store: Store) {
        let timeout = Duration::from_millis(700);
        let rig = Rig::new(store, Knobs { retries: 2, timeout, ..Knobs::default() }).await;
        rig.ask("a", "begin").await;
        let job = rig.send("a", "hang").await.job;
        let (events, ending) = rig.end_of(job).await;
        assert_eq!((ending.state, text_of(&ending).as_str()), (JobState::Dead, "Query timed out"));
        assert_eq!(rig.calls(), ["new|begin", "s1|hang", "s1|hang", "new|hang"]);
        assert_eq!(events.iter().filter(|event| event["code"] == "fresh_session").count(), 1);
        rig.stop().await;
    }

    async fn a_fixed_text_is_an_answer_without_an_agent_to_everybody_but_the_operator(store: Store) {
        let fixed_reply = Some("We are closed.".to_owned());
        let rig = Rig::new(store.clone(), Knobs { fixed_reply, ..Knobs::default() }).await;
        let job = rig.try_send(from_outside("hello")).await.unwrap().job;
        assert_eq!(rig.end_of(job).await.1.state, JobState::Done);
        assert!(rig.calls().is_empty());
        let replies = replies(&store).await;
        assert_eq!((&replies[0]["job"], &replies[0]["text"]), (&json!(job), &json!("We are closed.")));
        assert_eq!(rig.ask("main", "hello").await, "hello");
        rig.stop().await;
    }

    async fn each_message_from_outside_leaves_one_reply_and_local_ones_none(store: Store) {
        let rig = Rig::new(store.clone(), Knobs { retries: 1, ..Knobs::default() }).await;
        let mut jobs = Vec::new();
        for text in ["hello", "stumble", "fail", "/new"] {
            jobs.push(rig.try_send(from_outside(text)).await.unwrap().job);
        }
        rig.end_of(jobs[3]).await;
        rig.ask("main", "local").await;
        let replies = replies(&store).await;
        let told: Vec<_> = replies.iter().map(|reply| reply["job"].clone()).collect();
        assert_eq!(told, jobs.iter().map(|job| json!(job)).collect::<Vec<_>>());
        assert_eq!(replies[0]["text"], "hello");
        assert_eq!(replies[1]["text"], "up");
        assert_eq!((&replies[2]["text"], &replies[2]["error"]["kind"]), (&json!(null), &json!("crashed")));
        assert!(replies[3]["text"].as_str().unwrap().contains("new session"));
        rig.stop().await;
    }

    async fn a_message_whose_gateways_keep_dying_is_answered_for_in_the_end(store: Store) {
        let rig = Rig::new(store.clone(), Knobs { at_once: 0, ..Knobs::default() }).await;
        let job = rig.try_send(from_outside("hello")).await.unwrap().job;
        let queue = Queue::new(store.clone());
        let (worker, lease) = (WorkerId::new("dies"), Duration::from_secs(1));
        let past = Millis::now().before(Duration::from_secs(60));
        while queue.claim(&worker, past, lease).await.unwrap().is_some() {
            queue.reclaim(Millis::now()).await.unwrap();
        }
        assert_eq!(queue.find(job).await.unwrap().unwrap().state, JobState::Dead);
        for _ in 0..2 {
            rig.gateway.keep_up_now().await.unwrap();
            let replies = replies(&store).await;
            assert_eq!(replies.len(), 1);
            assert_eq!(replies[0]["error"]["kind"], "internal");
        }
        rig.stop().await;
    }

    async fn who_is_answered_for_goes_by_where_the_reply_goes(store: Store) {
        let rig = Rig::new(store.clone(), Knobs { at_once: 0, ..Knobs::default() }).await;
        // More than are looked at together need no reply.
        for _ in 0..60 {
            rig.send("main", "local").await;
        }
        let conversation = rig.send("main", "local").await.conversation;
        let rules = rig.policy.borrow().rules.clone();
        let args = (JobId::new(), from_outside("elsewhere"), conversation, rules);
        store
            .must(args, |conn, (id, inbound, conversation, rules)| {
                Box::pin(async move {
                    let found = conversations::find(conn, *conversation).await?.unwrap();
                    let now = Millis::now();
                    gate::store_in(conn, *id, &found, inbound, rules, now).await.unwrap();
                    Ok(())
                })
            })
            .await;
        rig.gateway.cancel_conversation(conversation).await.unwrap();
        for _ in 0..2 {
            rig.gateway.keep_up_now().await.unwrap();
            assert_eq!(replies(&store).await.len(), 1);
        }
        rig.stop().await;
    }

    async fn a_message_that_is_cancelled_before_it_began_is_answered_for(store: Store) {
        let rig = Rig::new(store.clone(), Knobs { at_once: 0, ..Knobs::default() }).await;
        let job = rig.try_send(from_outside("hello")).await.unwrap().job;
        rig.gateway.cancel_job(job).await.unwrap();
        rig.gateway.keep_up_now().await.unwrap();
        assert_eq!(replies(&store).await[0]["error"]["kind"], "cancelled");
        rig.stop().await;
    }
}

/// Makes a message whose reply is posted somewhere.
fn from_outside(text: &str) -> Inbound {
    let address = Address::new("webhook", "http://127.0.0.1:9/c/1").unwrap();
    Inbound { address, ..inbound("main", text) }
}
