//! What the queue promises, on both databases.

mod concurrent;
mod crowded;
mod model;
mod runtime;

use std::time::Duration;

use super::*;
use crate::{
    clock::Millis,
    id::JobId,
    store::{Store, StoreError, Topic, Woken, audit, jobs, testing::on_both},
};

const NOW: Millis = Millis(1_000_000);
const LEASE: Duration = Duration::from_secs(60);

fn lane(name: &str) -> LaneId {
    LaneId::new(name)
}

fn job() -> NewJob {
    NewJob::new("turn", "{}")
}

fn with_key(message: &str) -> NewJob {
    let key = MessageKey { channel: "test".to_owned(), message: message.to_owned() };
    NewJob { message: Some(key), ..job() }
}

fn queue(store: Store) -> Queue {
    Queue::new(store)
}

async fn add(queue: &Queue, name: &str, job: NewJob) -> JobId {
    match queue.enqueue(lane(name), job, NOW).await.unwrap() {
        Enqueued::New(id) => id,
        Enqueued::Again(_) => panic!("it is no new job"),
    }
}

async fn claim_at(queue: &Queue, owner: &str, now: Millis) -> Option<Ticket> {
    let claimed = queue.claim(&WorkerId::new(owner), now, LEASE).await.unwrap();
    claimed.map(|(_, ticket)| ticket)
}

async fn claim(queue: &Queue) -> Option<Ticket> {
    claim_at(queue, "me", NOW).await
}

async fn state(queue: &Queue, id: JobId) -> JobState {
    queue.find(id).await.unwrap().unwrap().state
}

fn retry_at(not_before: Millis) -> JobEnd {
    JobEnd::Retry { not_before, reason: "overloaded".to_owned() }
}

on_both! {
    async fn jobs_of_a_lane_run_one_at_a_time_in_order_and_lanes_beside_each_other(store: Store) {
        let queue = queue(store);
        let (first, second) = (add(&queue, "a", job()).await, add(&queue, "a", job()).await);
        let other = add(&queue, "b", job()).await;
        assert_eq!(state(&queue, second).await, JobState::Waiting);
        let one = claim(&queue).await.unwrap();
        assert_eq!((one.job, one.attempt), (first, 1));
        assert_eq!(claim(&queue).await.unwrap().job, other);
        assert_eq!(claim(&queue).await, None);
        let done = queue.finish(&one, JobEnd::Done, NOW).await.unwrap();
        assert_eq!(done, Finished::Now(JobState::Done, ()));
        assert_eq!(claim(&queue).await.unwrap().job, second);
    }

    async fn the_higher_priority_goes_first_among_lanes_and_never_within_one(store: Store) {
        let queue = queue(store);
        let low = add(&queue, "a", job()).await;
        add(&queue, "a", NewJob { priority: 9, ..job() }).await;
        let high = add(&queue, "b", NewJob { priority: 1, ..job() }).await;
        assert_eq!(claim(&queue).await.unwrap().job, high);
        assert_eq!(claim(&queue).await.unwrap().job, low);
    }

    async fn a_clock_that_goes_back_lets_nobody_jump_the_queue(store: Store) {
        let queue = queue(store);
        let first = add(&queue, "a", job()).await;
        let earlier = Millis(NOW.0 - 500_000);
        queue.enqueue(lane("b"), job(), earlier).await.unwrap();
        // It can be claimed though by the clock it was enqueued in the future.
        assert_eq!(claim_at(&queue, "me", earlier).await.unwrap().job, first);
    }

    async fn the_same_message_twice_becomes_one_job(store: Store) {
        let queue = queue(store);
        let id = add(&queue, "a", with_key("m1")).await;
        let again = queue.enqueue(lane("a"), with_key("m1"), NOW).await.unwrap();
        assert_eq!(again, Enqueued::Again(id));
        assert_eq!(queue.stats().await.unwrap().ready, 1);
        let ticket = claim(&queue).await.unwrap();
        queue.finish(&ticket, JobEnd::Done, NOW).await.unwrap();
        let later = queue.enqueue(lane("a"), with_key("m1"), NOW).await.unwrap();
        assert_eq!(later, Enqueued::Again(id));
        assert_eq!(claim(&queue).await, None);
    }

    async fn beyond_the_limit_the_sender_is_told_and_nothing_is_stored(store: Store) {
        let limits = Limits { waiting: 3, waiting_in_lane: 2 };
        let queue = Queue::with_limits(store, limits);
        add(&queue, "a", job()).await;
        add(&queue, "a", with_key("m1")).await;
        let full = queue.enqueue(lane("a"), with_key("m2"), NOW).await.unwrap_err();
        assert!(matches!(full, EnqueueError::QueueFull { waiting: 2, limit: 2 }), "{full}");
        add(&queue, "b", job()).await;
        let full = queue.enqueue(lane("c"), job(), NOW).await.unwrap_err();
        assert!(matches!(full, EnqueueError::QueueFull { waiting: 3, limit: 3 }), "{full}");
        // What runs does not wait, and what was refused was not noted as seen.
        claim(&queue).await.unwrap();
        add(&queue, "a", with_key("m2")).await;
        // What was accepted is known also when nothing new is taken.
        assert!(queue.enqueue(lane("a"), with_key("m1"), NOW).await.is_ok());
    }

    async fn a_worker_that_lost_its_lease_changes_nothing(store: Store) {
        let queue = queue(store);
        let id = add(&queue, "a", job()).await;
        let next = add(&queue, "a", job()).await;
        let slow = claim_at(&queue, "slow", NOW).await.unwrap();
        assert_eq!(queue.renew(&slow, NOW, LEASE).await.unwrap(), Lease::Held);
        assert_eq!(queue.reclaim(NOW).await.unwrap().ready, 0);
        let later = NOW.after(LEASE);
        assert_eq!(queue.reclaim(later).await.unwrap().ready, 1);
        assert_eq!(queue.renew(&slow, later, LEASE).await.unwrap(), Lease::Lost);
        let quick = claim_at(&queue, "quick", later).await.unwrap();
        assert_eq!((quick.job, quick.attempt), (id, 2));
        let end = queue.finish(&slow, JobEnd::Done, later).await.unwrap();
        assert_eq!(end, Finished::Lost);
        assert_eq!(state(&queue, id).await, JobState::Running);
        // Neither does one that calls itself the same.
        let impostor = Ticket { owner: slow.owner.clone(), ..quick.clone() };
        assert_eq!(queue.renew(&impostor, later, LEASE).await.unwrap(), Lease::Lost);
        assert_eq!(state(&queue, next).await, JobState::Waiting);
    }

    async fn a_clock_that_goes_back_takes_no_lease_away(store: Store) {
        let queue = queue(store);
        add(&queue, "a", job()).await;
        let ticket = claim(&queue).await.unwrap();
        let earlier = Millis(NOW.0 - 100_000);
        assert_eq!(queue.renew(&ticket, earlier, LEASE).await.unwrap(), Lease::Held);
        // The lease now counts from the clock as it is.
        assert_eq!(queue.reclaim(earlier.after(LEASE / 2)).await.unwrap().ready, 0);
        assert_eq!(queue.reclaim(earlier.after(LEASE)).await.unwrap().ready, 1);
    }

    async fn a_job_that_fails_too_often_is_dead_with_its_reason_and_its_lane_goes_on(store: Store) {
        let queue = queue(store);
        let id = add(&queue, "a", NewJob { max_failures: 2, ..job() }).await;
        let next = add(&queue, "a", job()).await;
        let first = claim(&queue).await.unwrap();
        let later = Millis(NOW.0 + 5_000);
        let end = queue.finish(&first, retry_at(later), NOW).await.unwrap();
        assert_eq!(end, Finished::Now(JobState::Ready, ()));
        // It waits for its time, and the lane waits for it.
        assert_eq!(claim(&queue).await, None);
        assert_eq!(queue.next_due(NOW).await.unwrap(), Some(later));
        assert_eq!(queue.next_due(later).await.unwrap(), Some(later));
        let second = claim_at(&queue, "me", later).await.unwrap();
        assert_eq!((second.job, second.attempt), (id, 2));
        let end = queue.finish(&second, retry_at(later), later).await.unwrap();
        assert_eq!(end, Finished::Now(JobState::Dead, ()));
        let dead = queue.find(id).await.unwrap().unwrap();
        assert_eq!((dead.reason.as_deref(), dead.failures), (Some("overloaded"), 1));
        assert_eq!(claim(&queue).await.unwrap().job, next);
    }

    async fn a_job_whose_gateways_keep_dying_is_dead_in_the_end(store: Store) {
        let queue = queue(store);
        let id = add(&queue, "a", NewJob { max_failures: 2, ..job() }).await;
        for (dead, ready) in [(0, 1), (1, 0)] {
            claim(&queue).await.unwrap();
            let reclaimed = queue.reclaim(NOW.after(LEASE)).await.unwrap();
            assert_eq!((reclaimed.dead, reclaimed.ready), (dead, ready));
        }
        let reason = queue.find(id).await.unwrap().unwrap().reason.unwrap();
        assert!(reason.contains("2 times"), "{reason}");
    }

    async fn a_job_that_is_given_back_has_not_failed(store: Store) {
        let queue = queue(store);
        let id = add(&queue, "a", NewJob { max_failures: 1, ..job() }).await;
        for attempt in 1..4 {
            let ticket = claim(&queue).await.unwrap();
            assert_eq!((ticket.job, ticket.attempt), (id, attempt));
            let end = queue.finish(&ticket, JobEnd::Release, NOW).await.unwrap();
            assert_eq!(end, Finished::Now(JobState::Ready, ()));
        }
    }

    async fn what_came_of_a_job_is_there_with_its_end_or_not_at_all(store: Store) {
        let queue = queue(store.clone());
        let id = add(&queue, "a", job()).await;
        let ticket = claim(&queue).await.unwrap();
        let entry = audit::Entry {
            at: NOW,
            actor: "me".to_owned(),
            action: "ended".to_owned(),
            subject: "job".to_owned(),
            detail: "{}".to_owned(),
        };
        let failed: Result<Finished<()>, StoreError> = queue
            .finish_with(
                &ticket,
                JobEnd::Done,
                Joined::none(),
                NOW,
                entry.clone(),
                |conn, state, entry| {
                    assert_eq!(state, JobState::Done);
                    Box::pin(async move {
                        audit::add(conn, entry).await?;
                        Err(StoreError::Closed)
                    })
                },
            )
            .await;
        assert!(failed.is_err());
        assert_eq!(state(&queue, id).await, JobState::Running);
        for expected in [Finished::Now(JobState::Done, ()), Finished::Before] {
            let (end, joined, entry) = (JobEnd::Done, Joined::none(), entry.clone());
            let end = queue.finish_with(&ticket, end, joined, NOW, entry, |conn, _, entry| {
                Box::pin(audit::add(conn, entry))
            });
            assert_eq!(end.await.unwrap(), expected);
        }
        let written = store.read((), |conn, ()| Box::pin(audit::about(conn, "job")));
        assert_eq!(written.await.unwrap(), [entry]);
    }

    async fn a_waiting_job_that_is_cancelled_never_runs(store: Store) {
        let queue = queue(store);
        let ids = [add(&queue, "a", job()).await, add(&queue, "a", job()).await];
        let third = add(&queue, "a", job()).await;
        let cancelled = queue.cancel(ids[1], "not wanted", NOW).await.unwrap();
        assert_eq!(cancelled, CancelOutcome::Cancelled);
        // The head of the lane too: then the next is the head.
        assert_eq!(queue.cancel(ids[0], "", NOW).await.unwrap(), CancelOutcome::Cancelled);
        assert_eq!(claim(&queue).await.unwrap().job, third);
        let again = queue.cancel(ids[1], "", NOW).await.unwrap();
        assert_eq!(again, CancelOutcome::Ended(JobState::Cancelled));
        let unknown = queue.cancel(JobId::new(), "", NOW).await.unwrap();
        assert_eq!(unknown, CancelOutcome::Unknown);
    }

    async fn a_running_job_that_is_cancelled_keeps_its_lane_until_its_worker_ends_it(store: Store) {
        let queue = queue(store.clone());
        let (first, next) = (add(&queue, "a", job()).await, add(&queue, "a", job()).await);
        let ticket = claim(&queue).await.unwrap();
        let mut wakeups = store.wakeups(Topic::Wishes);
        let wish = queue.cancel(first, "stop", NOW).await.unwrap();
        assert_eq!(wish, CancelOutcome::Requested);
        assert_eq!(wakeups.next().await, Woken::Told);
        assert_eq!(claim(&queue).await, None);
        assert_eq!(queue.renew(&ticket, NOW, LEASE).await.unwrap(), Lease::CancelRequested);
        // Whatever its worker says but done, it is not tried again.
        let end = queue.finish(&ticket, retry_at(NOW), NOW).await.unwrap();
        assert_eq!(end, Finished::Now(JobState::Cancelled, ()));
        assert_eq!(claim(&queue).await.unwrap().job, next);
    }

    async fn a_job_that_was_to_be_cancelled_is_not_begun_again_by_another_gateway(store: Store) {
        let queue = queue(store);
        let (first, next) = (add(&queue, "a", job()).await, add(&queue, "a", job()).await);
        claim(&queue).await.unwrap();
        queue.cancel(first, "stop", NOW).await.unwrap();
        assert_eq!(queue.reclaim(NOW.after(LEASE)).await.unwrap().cancelled, 1);
        assert_eq!(state(&queue, first).await, JobState::Cancelled);
        assert_eq!(claim(&queue).await.unwrap().job, next);
    }

    async fn cancelling_all_of_a_lane_starts_nothing_of_it(store: Store) {
        let queue = queue(store);
        let running = add(&queue, "a", job()).await;
        let waiting = [add(&queue, "a", job()).await, add(&queue, "a", job()).await];
        let other = add(&queue, "b", job()).await;
        let ticket = claim(&queue).await.unwrap();
        let all = queue.cancel_lane(&lane("a"), "stop", NOW).await.unwrap();
        assert_eq!(all, LaneCancel { n_cancelled: 2, running: Some(running) });
        let reason = "stop".to_owned();
        queue.finish(&ticket, JobEnd::Cancelled { reason }, NOW).await.unwrap();
        assert_eq!(claim(&queue).await.unwrap().job, other);
        assert_eq!(claim(&queue).await, None);
        for id in waiting {
            assert_eq!(state(&queue, id).await, JobState::Cancelled);
        }
        // The lane is not lost.
        let later = add(&queue, "a", job()).await;
        assert_eq!(claim(&queue).await.unwrap().job, later);
    }

    async fn a_dead_job_can_be_tried_again_behind_what_waits(store: Store) {
        let queue = queue(store);
        let id = add(&queue, "a", job()).await;
        let next = add(&queue, "a", job()).await;
        let ticket = claim(&queue).await.unwrap();
        assert_eq!(queue.retry(id).await.unwrap(), RetryOutcome::NotDead(JobState::Running));
        let reason = "no such model".to_owned();
        queue.finish(&ticket, JobEnd::Dead { reason }, NOW).await.unwrap();
        assert_eq!(queue.retry(id).await.unwrap(), RetryOutcome::Retried(JobState::Waiting));
        assert_eq!(queue.retry(JobId::new()).await.unwrap(), RetryOutcome::Unknown);
        let other = claim(&queue).await.unwrap();
        assert_eq!(other.job, next);
        queue.finish(&other, JobEnd::Done, NOW).await.unwrap();
        let again = claim(&queue).await.unwrap();
        assert_eq!((again.job, again.attempt), (id, 2));
    }

    async fn jobs_are_counted_and_listed_page_by_page(store: Store) {
        let queue = queue(store);
        let mut ids = Vec::new();
        for _ in 0..5 {
            ids.push(add(&queue, "a", job()).await);
        }
        let stats = queue.stats().await.unwrap();
        assert_eq!((stats.ready, stats.waiting, stats.oldest_at), (1, 4, Some(NOW)));
        let mut listed = Vec::new();
        loop {
            let page = queue.list(None, listed.last().copied(), 2).await.unwrap();
            if page.is_empty() {
                break;
            }
            listed.extend(page.iter().map(|job| job.id));
        }
        ids.reverse();
        assert_eq!(listed, ids);
        let ready = queue.list(Some(JobState::Ready), None, 9).await.unwrap();
        assert_eq!(ready.iter().map(|job| job.id).collect::<Vec<_>>(), [ids[4]]);
    }

    async fn jobs_of_which_something_becomes_yet_are_known(store: Store) {
        let queue = queue(store.clone());
        let (done, running) = (add(&queue, "a", job()).await, add(&queue, "b", job()).await);
        let waiting = add(&queue, "b", job()).await;
        let ticket = claim(&queue).await.unwrap();
        assert_eq!(ticket.job, done);
        assert_eq!(claim(&queue).await.unwrap().job, running);
        queue.finish(&ticket, JobEnd::Done, NOW).await.unwrap();
        let ready = add(&queue, "c", job()).await;
        let found = store.read((), |conn, ()| Box::pin(jobs::not_over(conn))).await;
        let found: Result<Vec<JobId>, StoreError> = found;
        let mut found = found.unwrap();
        found.sort_unstable();
        let mut expected = vec![running, waiting, ready];
        expected.sort_unstable();
        assert_eq!(found, expected);
    }

    async fn those_who_wait_for_jobs_are_woken(store: Store) {
        let queue = queue(store.clone());
        let mut wakeups = store.wakeups(Topic::Jobs);
        add(&queue, "a", job()).await;
        assert_eq!(wakeups.next().await, Woken::Told);
        let ticket = claim(&queue).await.unwrap();
        add(&queue, "a", job()).await;
        queue.finish(&ticket, JobEnd::Done, NOW).await.unwrap();
        assert_eq!(wakeups.next().await, Woken::Told);
    }
}

#[tokio::test]
async fn a_gateway_that_starts_on_a_file_takes_back_what_a_killed_one_had() {
    crate::store::testing::on_sqlite(|store| async move {
        let queue = queue(store);
        let id = add(&queue, "a", job()).await;
        claim(&queue).await.unwrap();
        // By a clock that was set back, the lease has long to go.
        let reclaimed = queue.recover(Millis(5)).await.unwrap();
        assert_eq!(reclaimed.ready, 1);
        let again = claim_at(&queue, "next", Millis(5)).await.unwrap();
        assert_eq!((again.job, again.attempt), (id, 2));
    })
    .await;
}
