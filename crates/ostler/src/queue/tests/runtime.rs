//! What the gateway's runtime does with jobs: it begins turns with their claim,
//! renews all it has at once, and answers several jobs with one turn.

use super::*;
use crate::{
    id::ConversationId,
    store::{
        conversations::{self, Address},
        jobs::{self, Unanswered},
        outbox::{self, NewMessage},
    },
};

async fn waiting_behind(store: &Store, name: &str) -> Vec<JobId> {
    let waiting =
        store.read(lane(name), |conn, lane| Box::pin(jobs::waiting_behind(conn, lane, 9)));
    waiting.await.unwrap().iter().map(|job| job.id).collect()
}

fn joined(jobs: &[JobId]) -> Joined {
    Joined { jobs: jobs.to_vec(), state: JobState::Done, reason: "answered".to_owned() }
}

async fn finish_with(queue: &Queue, ticket: &Ticket, end: JobEnd, joined: Joined) -> JobState {
    let finished: Result<_, StoreError> = queue
        .finish_with(ticket, end, joined, NOW, (), |_, _, ()| Box::pin(async { Ok(()) }))
        .await;
    let finished = finished.unwrap();
    let Finished::Now(state, ()) = finished else { panic!("{finished:?}") };
    state
}

/// Begins a conversation, and returns it with its lane.
async fn conversation(store: &Store, channel: &str) -> ConversationId {
    let address = Address::new(channel, "here").unwrap();
    let begun = store
        .must(address, |conn, address| Box::pin(conversations::find_or_begin(conn, address, NOW)));
    begun.await.id
}

on_both! {
    async fn what_begins_with_a_claim_is_there_with_it_or_neither_is(store: Store) {
        let queue = queue(store.clone());
        let id = add(&queue, "a", job()).await;
        let owner = WorkerId::new("me");
        for is_to_fail in [true, false] {
            let claimed = queue.claim_with(&owner, NOW, LEASE, is_to_fail, |conn, job, is_to_fail| {
                Box::pin(async move {
                    let entry = audit::Entry {
                        at: NOW,
                        actor: "me".to_owned(),
                        action: "began".to_owned(),
                        subject: job.id.to_string(),
                        detail: "{}".to_owned(),
                    };
                    audit::add(conn, &entry).await?;
                    if *is_to_fail { Err(StoreError::Closed) } else { Ok(job.attempt) }
                })
            });
            let claimed = claimed.await;
            if is_to_fail {
                assert!(claimed.is_err());
                assert_eq!(state(&queue, id).await, JobState::Ready);
            } else {
                let (job, ticket, attempt) = claimed.unwrap().unwrap();
                assert_eq!((job.id, ticket.job, ticket.attempt, attempt), (id, id, 1, 1));
            }
        }
        let begun = store.read(id, |conn, id| Box::pin(async move {
            audit::about(conn, &id.to_string()).await
        }));
        assert_eq!(begun.await.unwrap().len(), 1);
    }

    async fn all_leases_of_a_gateway_are_renewed_at_once_and_no_others(store: Store) {
        let queue = queue(store);
        let mut mine = vec![add(&queue, "a", job()).await, add(&queue, "b", job()).await];
        let others = add(&queue, "c", job()).await;
        for _ in &mine {
            claim(&queue).await.unwrap();
        }
        claim_at(&queue, "other", NOW).await.unwrap();
        queue.cancel(mine[1], "stop", NOW).await.unwrap();
        queue.cancel(others, "stop", NOW).await.unwrap();
        let me = WorkerId::new("me");
        let wishes = queue.wishes(&me).await.unwrap();
        assert_eq!(wishes.iter().map(|job| job.id).collect::<Vec<_>>(), [mine[1]]);
        assert_eq!(wishes[0].reason.as_deref(), Some("stop"));
        let half = NOW.after(LEASE / 2);
        let mut renewed = queue.renew_all(&me, half, LEASE).await.unwrap();
        renewed.sort_by_key(|renewed| renewed.job);
        mine.sort();
        assert_eq!(renewed.iter().map(|renewed| renewed.job).collect::<Vec<_>>(), mine);
        for renewed in &renewed {
            let is_wanted = wishes[0].id == renewed.job;
            assert_eq!((renewed.is_cancel_requested, renewed.attempt), (is_wanted, 1));
        }
        // Only the other's is over.
        let reclaimed = queue.reclaim(NOW.after(LEASE)).await.unwrap();
        assert_eq!((reclaimed.ready, reclaimed.cancelled), (0, 1));
        assert_eq!(state(&queue, others).await, JobState::Cancelled);
    }

    async fn jobs_that_were_answered_with_another_end_with_it_and_the_next_begins(store: Store) {
        let queue = queue(store.clone());
        let first = add(&queue, "a", job()).await;
        let mut waiting = Vec::new();
        for _ in 0..4 {
            waiting.push(add(&queue, "a", job()).await);
        }
        let elsewhere = add(&queue, "b", job()).await;
        let ticket = claim(&queue).await.unwrap();
        assert_eq!(ticket.job, first);
        assert_eq!(waiting_behind(&store, "a").await, waiting);
        queue.cancel(waiting[1], "not wanted", NOW).await.unwrap();
        // A job of another lane is no joined one, whatever is said.
        let all = [waiting[0], waiting[1], waiting[3], elsewhere, first];
        let end = finish_with(&queue, &ticket, JobEnd::Done, joined(&all)).await;
        assert_eq!(end, JobState::Done);
        let expected = [JobState::Done, JobState::Cancelled, JobState::Ready, JobState::Done];
        for (id, expected) in waiting.iter().zip(expected) {
            assert_eq!(state(&queue, *id).await, expected);
        }
        let answered = queue.find(waiting[0]).await.unwrap().unwrap();
        assert_eq!((answered.reason.as_deref(), answered.ended_at), (Some("answered"), Some(NOW)));
        assert_eq!(state(&queue, elsewhere).await, JobState::Ready);
        assert_eq!(queue.find(first).await.unwrap().unwrap().reason, None);
    }

    async fn jobs_that_joined_one_that_is_tried_again_still_wait(store: Store) {
        let queue = queue(store.clone());
        add(&queue, "a", job()).await;
        let second = add(&queue, "a", job()).await;
        for end in [retry_at(NOW), JobEnd::Release] {
            let ticket = claim(&queue).await.unwrap();
            let end = finish_with(&queue, &ticket, end, joined(&[second])).await;
            assert_eq!((end, state(&queue, second).await), (JobState::Ready, JobState::Waiting));
        }
        claim(&queue).await.unwrap();
        queue.reclaim(NOW.after(LEASE)).await.unwrap();
        assert_eq!(waiting_behind(&store, "a").await, [second]);
    }

    async fn more_jobs_than_one_statement_takes_can_join(store: Store) {
        let queue = Queue::with_limits(store, Limits { waiting: 200, waiting_in_lane: 200 });
        add(&queue, "a", job()).await;
        let mut all = Vec::new();
        for _ in 0..101 {
            all.push(add(&queue, "a", job()).await);
        }
        let ticket = claim(&queue).await.unwrap();
        finish_with(&queue, &ticket, JobEnd::Done, joined(&all)).await;
        let stats = queue.stats().await.unwrap();
        assert_eq!((stats.done, stats.waiting, stats.ready), (102, 0, 0));
    }

    async fn dead_jobs_that_nobody_answered_for_are_found(store: Store) {
        let queue = queue(store.clone());
        let mut jobs = Vec::new();
        for (channel, kind) in
            [("webhook", "prompt"), ("webhook", "prompt"), ("webhook", "reset"), ("local", "prompt")]
        {
            let lane = LaneId::new(conversation(&store, channel).await);
            let new = queue.enqueue(lane, NewJob::new(kind, "{}"), NOW).await.unwrap();
            let Enqueued::New(id) = new else { panic!("{new:?}") };
            let ticket = claim(&queue).await.unwrap();
            queue.finish(&ticket, JobEnd::Dead { reason: String::new() }, NOW).await.unwrap();
            jobs.push(id);
        }
        let reply = NewMessage {
            dedupe: format!("{}:1", jobs[0]),
            conversation: None,
            turn: None,
            channel: "webhook".to_owned(),
            address: "here".to_owned(),
            body: "{}".to_owned(),
        };
        store.must(reply, |conn, reply| Box::pin(outbox::put(conn, reply, NOW))).await;
        // Of which conversation it is says nothing about who waits for an answer.
        let both = &[jobs[1], jobs[3]][..];
        for (since, after, expected) in [
            (NOW, None, both),
            (NOW, Some(jobs[1]), &both[1..]),
            (NOW, Some(jobs[3]), &[]),
            (NOW.before(Duration::from_secs(1)), Some(jobs[3]), both),
            (Millis(NOW.0 + 1), None, &[]),
        ] {
            let found = store.read((since, after), |conn, (since, after)| {
                let of = Unanswered { kind: "prompt", since: *since, after: *after };
                Box::pin(jobs::over_without_reply(conn, of, 9))
            });
            let found: Vec<_> = found.await.unwrap().iter().map(|job| job.id).collect();
            assert_eq!(found, expected);
        }
    }
}
