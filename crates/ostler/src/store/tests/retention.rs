//! What is removed when it is old, and what stays.

use std::time::Duration;

use super::*;
use crate::{
    id::{JobId, PermissionId, TurnId},
    queue::{Enqueued, JobEnd, LaneId, MessageKey, NewJob, Queue, WorkerId},
    store::{
        permissions::{Decision, NewRequest},
        turns::NewTurn,
    },
};

const LEASE: Duration = Duration::from_secs(60);

fn days(n_days: u64) -> Millis {
    NOW.after(Duration::from_secs(n_days * 24 * 60 * 60))
}

fn keep() -> Keep {
    Keep { events: None, ..Keep::default() }
}

async fn add(queue: &Queue, message: Option<&str>) -> JobId {
    let message = message
        .map(|message| MessageKey { channel: "test".to_owned(), message: message.to_owned() });
    let job = NewJob { message, ..NewJob::new("prompt", "{}") };
    match queue.enqueue(LaneId::new("a"), job, NOW).await.unwrap() {
        Enqueued::New(id) => id,
        Enqueued::Again(_) => panic!("it is no new job"),
    }
}

async fn end(queue: &Queue, end: JobEnd) {
    let claimed = queue.claim(&WorkerId::new("me"), NOW, LEASE).await.unwrap();
    queue.finish(&claimed.unwrap().1, end, NOW).await.unwrap();
}

/// Stores a turn with a request and an event of it, all of them over.
async fn turn(store: &Store, job: JobId) -> TurnId {
    store
        .must(job, |conn, job| {
            Box::pin(async move {
                let address = conversations::Address::new("test", "here").unwrap();
                let conversation = conversations::find_or_begin(conn, &address, NOW).await?.id;
                let id = TurnId::new();
                let agent = "codex".to_owned();
                let job = Some(*job);
                let turn = NewTurn { id, conversation, job, attempt: 1, agent, begun_at: NOW };
                turns::begin(conn, &turn).await?;
                turns::end(conn, id, "{}", NOW).await?;
                let request = NewRequest {
                    conversation,
                    turn: id,
                    request: "1".to_owned(),
                    body: "{}".to_owned(),
                    asked_of: None,
                    asked_at: NOW,
                    expires_at: days(1),
                };
                let request = permissions::ask(conn, PermissionId::new(), &request).await?;
                let decision = Decision { decision: "allow".to_owned(), text: None };
                permissions::resolve(conn, request, &decision, "ann", NOW).await?;
                let event = events::NewEvent {
                    conversation: Some(conversation),
                    turn: Some(id),
                    seq: 1,
                    at: NOW,
                    kind: "status".to_owned(),
                    body: "{}".to_owned(),
                    belongs: None,
                };
                events::append(conn, &[event]).await?;
                Ok(id)
            })
        })
        .await
}

on_both! {
    async fn what_is_long_over_is_removed_and_what_is_open_stays(store: Store) {
        let queue = Queue::new(store.clone());
        let done = add(&queue, Some("m1")).await;
        end(&queue, JobEnd::Done).await;
        let dead = add(&queue, None).await;
        end(&queue, JobEnd::Dead { reason: String::new() }).await;
        let open = add(&queue, None).await;
        assert_eq!(store.clean_up(keep(), days(7)).await.unwrap(), 0);
        assert_eq!(store.clean_up(keep(), Millis(days(7).0 + 1)).await.unwrap(), 2);
        assert_eq!(queue.find(done).await.unwrap(), None);
        assert!(queue.find(dead).await.unwrap().is_some());
        assert_eq!(store.clean_up(keep(), days(31)).await.unwrap(), 1);
        assert!(queue.find(open).await.unwrap().is_some());
        // A message that comes again after that is a new one.
        add(&queue, Some("m1")).await;
    }

    async fn a_turn_stays_for_as_long_as_its_job_or_one_of_its_events(store: Store) {
        let queue = Queue::new(store.clone());
        let dead = turn(&store, add(&queue, None).await).await;
        end(&queue, JobEnd::Dead { reason: String::new() }).await;
        let orphan = turn(&store, JobId::new()).await;
        store.must((), |conn, ()| note(conn, "old")).await;
        let exists = |id| store.read(id, |conn, id| Box::pin(turns::find(conn, *id)));
        // Both requests.
        assert_eq!(store.clean_up(keep(), days(8)).await.unwrap(), 2);
        let with_events = Keep::default();
        // Both events, and the turn without a job.
        assert_eq!(store.clean_up(with_events, days(8)).await.unwrap(), 3);
        assert_eq!(exists(orphan).await.unwrap(), None);
        assert!(exists(dead).await.unwrap().is_some());
        assert_eq!(n_notes(&store, "old").await, 1);
        // The dead job, then its turn, and the audit.
        assert_eq!(store.clean_up(with_events, days(31)).await.unwrap(), 3);
        assert_eq!(exists(dead).await.unwrap(), None);
        assert_eq!(n_notes(&store, "old").await, 0);
        assert_eq!(store.check().await.unwrap(), []);
    }
}
