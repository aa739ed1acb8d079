//! What is removed when it is old, and what stays.

use std::time::Duration;

use super::*;
use crate::{
    id::{JobId, PermissionId, ProjectId, TurnId, WebhookId},
    queue::{Enqueued, JobEnd, LaneId, MessageKey, NewJob, Queue, WorkerId},
    store::{
        contacts,
        outbox::NewMessage,
        permissions::{Decision, NewRequest},
        projects::{Project, ProjectSettings},
        turns::NewTurn,
        webhooks::{NoticeKind, Webhook},
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
    add_from(queue, "test", message).await
}

async fn add_from(queue: &Queue, channel: &str, message: Option<&str>) -> JobId {
    let message = message.map(|message| MessageKey::new(channel, "here", message));
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
    async fn who_has_not_written_for_long_is_forgotten(store: Store) {
        let noted = store.write((), |conn, ()| Box::pin(async move {
            for place in ["silent", "called", "heard"] {
                contacts::heard(conn, "whatsapp", place, NOW).await?;
            }
            contacts::heard(conn, "whatsapp", "heard", days(20)).await?;
            contacts::called(conn, "whatsapp", "called", days(20)).await.map(drop)
        }));
        noted.await.unwrap();
        assert_eq!(store.clean_up(keep(), days(30)).await.unwrap(), 0);
        assert_eq!(store.clean_up(keep(), days(31)).await.unwrap(), 1);
        let lately = store.read((), |conn, ()| {
            Box::pin(contacts::heard_since(conn, "whatsapp", days(10), 9))
        });
        assert_eq!(lately.await.unwrap(), ["heard"]);
    }
}

on_both! {
    async fn what_came_by_a_signed_call_is_known_for_a_year(store: Store) {
        let queue = Queue::new(store.clone());
        for channel in ["whatsapp", "sms", "group"] {
            add_from(&queue, channel, Some("m1")).await;
            end(&queue, JobEnd::Done).await;
        }
        // The jobs go long before.
        assert_eq!(store.clean_up(keep(), days(365)).await.unwrap(), 3);
        assert_eq!(store.clean_up(keep(), Millis(days(365).0 + 1)).await.unwrap(), 3);
    }

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

    async fn a_deleted_webhook_stays_for_as_long_as_its_calls(store: Store) {
        let webhook = |project| Webhook {
            id: WebhookId::new(),
            project,
            url: "http://example.org/".to_owned(),
            kinds: NoticeKind::ALL.to_vec(),
            secret: "whsec_test".to_owned(),
            created_by: "me".to_owned(),
            created_at: NOW,
        };
        let (alive, deleted) = (webhook(None), webhook(None));
        let id = ProjectId::new();
        let project = Project {
            id,
            name: "a".to_owned(),
            directory: "/".to_owned(),
            agent: None,
            settings: ProjectSettings::default(),
            created_at: NOW,
            updated_at: NOW,
        };
        let of_project = webhook(Some(id));
        let all = [alive.clone(), deleted.clone(), of_project];
        store
            .must((project, all, deleted.id), |conn, (project, all, deleted)| {
                Box::pin(async move {
                    projects::add(conn, project).await?;
                    for webhook in all {
                        webhooks::add(conn, webhook).await?;
                    }
                    let kind = NoticeKind::Started;
                    assert_eq!(webhooks::fitting(conn, project.id, kind).await?.len(), 3);
                    projects::delete(conn, project.id, NOW).await?;
                    assert_eq!(webhooks::fitting(conn, project.id, kind).await?.len(), 2);
                    let notice = NewMessage {
                        dedupe: "1".to_owned(),
                        conversation: None,
                        turn: None,
                        channel: webhooks::NOTICE.to_owned(),
                        address: deleted.to_string(),
                        body: "{}".to_owned(),
                    };
                    outbox::put(conn, &notice, NOW).await?;
                    // What waits is given up, two days later than the project was.
                    webhooks::delete(conn, *deleted, days(2)).await.map(drop)
                })
            })
            .await;
        assert_eq!(store.clean_up(keep(), days(7)).await.unwrap(), 0);
        assert_eq!(store.clean_up(keep(), days(8)).await.unwrap(), 1);
        // The call, and with it the webhook.
        assert_eq!(store.clean_up(keep(), days(10)).await.unwrap(), 2);
        let left = store.read((), |conn, ()| {
            Box::pin(webhooks::list(conn, &webhooks::Seen::All, None, 9))
        });
        assert_eq!(left.await.unwrap(), [alive]);
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
