//! Backups, checks, and the files that a killed gateway leaves.

use std::fs;

use super::{super::testing::Place, *};
use crate::{
    queue::{LaneId, NewJob, Queue},
    store::testing::on_sqlite,
};

async fn enqueue(store: &Store, lane: &str) {
    let queue = Queue::new(store.clone());
    queue.enqueue(LaneId::new(lane), NewJob::new("turn", "{}"), NOW).await.unwrap();
}

async fn sql(store: &Store, sql: &'static str) {
    store.must(sql, |conn, sql| Box::pin(async { conn.execute(*sql, values![]).await })).await;
}

#[tokio::test]
async fn a_backup_is_made_while_the_store_is_used_and_is_a_store() {
    let place = Place::sqlite();
    let store = place.open().await;
    store.must((), |conn, ()| note(conn, "before")).await;
    let copy = Place::sqlite();
    let look = Store::open(&place.location, Use::Look).await.unwrap();
    look.backup(&copy.file()).await.unwrap();
    store.must((), |conn, ()| note(conn, "after")).await;
    let restored = copy.open().await;
    assert_eq!(n_notes(&restored, "before").await, 1);
    assert_eq!(n_notes(&restored, "after").await, 0);
    assert_eq!(restored.check().await.unwrap(), []);
    let again = look.backup(&copy.file()).await.unwrap_err();
    assert!(matches!(again, BackupError::Exists { .. }), "{again}");
    for store in [look, restored, store] {
        store.close().await;
    }
}

#[tokio::test]
async fn a_backup_that_cannot_be_written_leaves_nothing() {
    on_sqlite(|store| async move {
        let folder = tempfile::tempdir().unwrap();
        let error = store.backup(&folder.path().join("none/file")).await.unwrap_err();
        assert!(matches!(error, BackupError::Store(_)), "{error}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    })
    .await;
}

#[tokio::test]
async fn a_postgres_store_is_backed_up_by_its_own_tools() {
    testing::on_postgres(|store| async move {
        let error = store.backup(Path::new("/nowhere")).await.unwrap_err();
        assert!(error.to_string().contains("pg_dump"), "{error}");
    })
    .await;
}

/// Makes a store as the first version did, and returns a connection to it.
async fn first_version(place: &Place) -> Conn {
    let link = match &place.location {
        Location::Sqlite(path) => {
            let options = sqlite_options(path).create_if_missing(true);
            let mut link = sqlite_pool(1).connect_lazy_with(options).acquire().await.unwrap();
            migrations::run_to(1, &mut *link).await.unwrap();
            Link::Sqlite(link)
        }
        Location::Postgres(options) => {
            let pool = PgPool::connect_lazy_with(options.as_ref().clone());
            let mut link = pool.acquire().await.unwrap();
            migrations::run_to(1, &mut *link).await.unwrap();
            Link::Postgres(link)
        }
    };
    Conn::new(link)
}

async fn upgrade(place: Place) {
    let mut conn = first_version(&place).await;
    for sql in [
        "INSERT INTO conversations (id, channel, address, settings, created_at)
         VALUES ('cnv_01890a5d000070008000000000000001', 'test', 'here', '{}', 1)",
        "INSERT INTO permission_requests
             (id, conversation, turn, request, body, state, asked_at, expires_at)
         VALUES ('prm_01890a5d000070008000000000000002', 'cnv_01890a5d000070008000000000000001',
             'trn_01890a5d000070008000000000000003', '1', '{}', 'open', 1, 2)",
    ] {
        conn.execute(sql, values![]).await.unwrap();
    }
    drop(conn);
    let early = Store::open(&place.location, Use::Look).await.unwrap_err();
    assert!(matches!(early, StoreError::Older { found: 1, .. }), "{early}");
    let store = place.open().await;
    let id = "cnv_01890a5d000070008000000000000001".parse().unwrap();
    let open = store.read(id, |conn, id| Box::pin(permissions::open_in(conn, *id)));
    let request = open.await.unwrap().remove(0);
    assert_eq!((request.request.asked_of, request.resolution), (None, None));
    store.close().await;
    place.remove().await;
}

#[tokio::test]
async fn a_store_of_the_first_version_is_brought_up_to_date_with_what_is_in_it() {
    upgrade(Place::sqlite()).await;
    if let Some(place) = Place::postgres().await {
        upgrade(place).await;
    }
}

on_both! {
    async fn a_check_finds_nothing_wrong_with_a_store_in_use(store: Store) {
        for lane in ["a", "a", "b"] {
            enqueue(&store, lane).await;
        }
        let event = events::NewEvent {
            conversation: None,
            turn: None,
            seq: 0,
            at: NOW,
            kind: "status".to_owned(),
            body: "{}".to_owned(),
            belongs: None,
        };
        store.must(event, |conn, event| Box::pin(async {
            events::append(conn, &[event.clone(), event.clone()]).await?;
            events::remove_before(conn, Millis(NOW.0 + 1), 1).await
        })).await;
        assert_eq!(store.check().await.unwrap(), []);
    }

    async fn a_check_finds_a_lane_that_is_stuck_and_events_that_are_missing(store: Store) {
        enqueue(&store, "a").await;
        enqueue(&store, "a").await;
        sql(&store, "DELETE FROM jobs WHERE state = 'ready'").await;
        sql(&store, "UPDATE counters SET value = 7 WHERE name = 'events'").await;
        let problems = store.check().await.unwrap();
        let checks: Vec<_> = problems.iter().map(|problem| problem.check).collect();
        assert_eq!(checks, ["queue", "events"], "{problems:?}");
        assert!(problems[1].message.contains("(7)"), "{problems:?}");
    }
}

#[tokio::test]
async fn the_files_of_a_gateway_that_is_killed_now_have_all_that_was_acknowledged() {
    on_sqlite(|store| async move {
        let Location::Sqlite(file) = store.location().clone() else { panic!() };
        for n_acknowledged in 1..=20 {
            store.must((), |conn, ()| note(conn, "kept")).await;
            // What another process would find: nothing was closed or tidied up.
            let killed = Place::sqlite();
            for end in ["", "-wal"] {
                let with = |path: &Path| format!("{}{end}", path.display());
                fs::copy(with(&file), with(&killed.file())).unwrap();
            }
            let restarted = killed.open().await;
            assert_eq!(n_notes(&restarted, "kept").await, n_acknowledged);
            restarted.close().await;
        }
    })
    .await;
}
