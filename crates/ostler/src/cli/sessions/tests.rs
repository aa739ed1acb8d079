//! The sessions of a store, looked at and changed.

use super::*;
use crate::{
    id::TurnId,
    queue::{LaneId, NewJob, Queue, WorkerId},
    store::{
        audit,
        sessions::Session,
        testing::{Place, on_sqlite},
        turns::NewTurn,
    },
};

const NOW: Millis = Millis(10_000_000);

/// A conversation with two sessions and a turn that failed.
async fn conversation(store: &Store) -> ConversationId {
    store
        .must((), |conn, ()| {
            Box::pin(async move {
                let address = Address::new("local", "main").unwrap();
                let id = conversations::find_or_begin(conn, &address, Millis(1)).await?.id;
                for agent in ["claude", "codex"] {
                    let session = Session {
                        session: format!("{agent}-1\u{1b}[31m\nno"),
                        memo: "{}".to_owned(),
                        updated_at: Millis(NOW.0 - 120_000),
                    };
                    sessions::keep(conn, id, agent, &session).await?;
                }
                let turn = NewTurn {
                    id: TurnId::new(),
                    conversation: id,
                    job: None,
                    attempt: 1,
                    agent: "claude".to_owned(),
                    begun_at: Millis(2),
                };
                turns::begin(conn, &turn).await?;
                let report = r#"{"error":{"kind":"auth","message":"no key"}}"#;
                turns::end(conn, turn.id, report, Millis(3)).await?;
                Ok(id)
            })
        })
        .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conversation_is_shown_by_either_name_without_control_characters() {
    on_sqlite(async |store| {
        let id = conversation(&store).await;
        for which in ["local:main".parse().unwrap(), Which::Id(id)] {
            let details = store.read(which, |conn, which| Box::pin(details(conn, which))).await;
            let text = details.unwrap().unwrap().text(NOW);
            assert!(text.contains("claude claude-1\u{fffd}[31m\u{fffd}no, 2m ago"), "{text}");
            assert!(text.contains("ended      attempt 1  claude"), "{text}");
            assert!(text.ends_with("auth"), "{text}");
            assert_eq!(text.lines().count(), 6 + 2 + 1);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reset_forgets_the_sessions_and_is_written_down() {
    on_sqlite(async |store| {
        let id = conversation(&store).await;
        let write = |which| {
            store.write(which, |conn: &mut Conn, which: &Which| Box::pin(reset(conn, which, NOW)))
        };
        let change = write(Which::Id(id)).await.unwrap().unwrap();
        assert_eq!((change.outcome, change.sessions, change.running), ("reset", 2, None));
        assert!(write(Which::Id(ConversationId::new())).await.unwrap().is_none());
        let left = store.read(id, |conn, id| Box::pin(sessions::list(conn, *id))).await;
        assert_eq!(left.unwrap(), []);
        let subject = id.to_string();
        let audit = store.read(subject, |conn, it| Box::pin(audit::about(conn, it))).await;
        let audit = audit.unwrap();
        assert_eq!((audit.len(), audit[0].action.as_str()), (1, "sessions.reset"));
        assert!(audit[0].detail.contains("codex-1"), "{}", audit[0].detail);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_agent_begins_afresh_and_the_same_one_changes_nothing() {
    on_sqlite(async |store| {
        let id = conversation(&store).await;
        let queue = Queue::new(store.clone());
        queue.enqueue(LaneId::new(id), NewJob::new("prompt", "{}"), NOW).await.unwrap();
        let lease = std::time::Duration::from_secs(1);
        let claimed = queue.claim(&WorkerId::new("me"), NOW, lease).await.unwrap().unwrap();
        let write = |agent: &str| {
            store.write((Which::Id(id), agent.to_owned()), |conn: &mut Conn, (which, agent)| {
                Box::pin(set_agent(conn, which, agent, NOW))
            })
        };
        let change = write("codex").await.unwrap().unwrap();
        assert_eq!((change.outcome, change.sessions), ("changed", 2));
        assert_eq!(change.running, Some(claimed.0.id));
        let change = write("codex").await.unwrap().unwrap();
        assert_eq!((change.outcome, change.sessions), ("unchanged", 0));
        let subject = id.to_string();
        let audit = store.read(subject, |conn, it| Box::pin(audit::about(conn, it))).await;
        assert_eq!(audit.unwrap().len(), 1);
    })
    .await;
}

#[tokio::test]
async fn the_list_goes_on_where_it_ended() {
    let place = Place::sqlite();
    let store = place.open().await;
    conversation(&store).await;
    for limit in [1, 2] {
        let listed = list(&store, None, limit, FormArg::Json, &mut Ui::default()).await;
        assert_eq!(listed.unwrap(), Exit::Answered);
    }
    store.close().await;
}

#[test]
fn a_conversation_is_named_by_its_id_or_by_its_place() {
    let id = ConversationId::new();
    assert_eq!(id.to_string().parse(), Ok(Which::Id(id)));
    let address = Address::new("webhook", "http://a/b:1").unwrap();
    assert_eq!("webhook:http://a/b:1".parse(), Ok(Which::At(address)));
    for text in ["", "main", "cnv_1", "local:", "local:a\u{1b}"] {
        assert!(text.parse::<Which>().is_err(), "{text:?}");
    }
}
