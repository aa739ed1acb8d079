//! What goes wrong around a store.

use std::fs;

use super::{super::testing::Place, *};

async fn refused(place: &Place, purpose: Use) -> String {
    Store::open(&place.location, purpose).await.unwrap_err().chain()
}

#[tokio::test]
async fn a_second_gateway_on_a_file_is_refused_with_the_pid_of_the_first() {
    let place = Place::sqlite();
    let store = place.open().await;
    let error = refused(&place, Use::Gateway).await;
    assert!(error.contains(&format!("process {}", std::process::id())), "{error}");
    store.close().await;
    place.open().await.close().await;
}

#[tokio::test]
async fn a_store_of_a_newer_version_is_refused_by_gateways_and_commands() {
    for purpose in [Use::Gateway, Use::Beside, Use::Look] {
        let place = Place::sqlite();
        let store = place.open().await;
        store
            .must((), |conn, ()| {
                Box::pin(async move {
                    let sql = "INSERT INTO _sqlx_migrations
                                   (version, description, success, checksum, execution_time)
                               VALUES (999, 'of the future', true, x'00', 0)";
                    conn.execute(sql, values![]).await.map(drop)
                })
            })
            .await;
        store.close().await;
        let error = refused(&place, purpose).await;
        assert!(error.contains("999") && error.contains("newer ostler"), "{error}");
    }
}

#[tokio::test]
async fn a_folder_that_cannot_be_made_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "in the way").unwrap();
    let location = Location::in_folder(&file.join("data"));
    let error = Store::open(&location, Use::Gateway).await.unwrap_err().chain();
    assert!(error.contains("make the folder") && error.contains("file/data"), "{error}");
}

#[tokio::test]
async fn a_file_that_is_no_database_is_left_as_it_is() {
    let place = Place::sqlite();
    fs::write(place.file(), "not a database, but a text of some length\n".repeat(100)).unwrap();
    let error = refused(&place, Use::Gateway).await;
    assert!(error.contains("not a database"), "{error}");
    assert!(fs::read_to_string(place.file()).unwrap().starts_with("not a database"));
}

#[tokio::test]
async fn a_command_makes_no_store() {
    let place = Place::sqlite();
    let error = refused(&place, Use::Look).await;
    assert!(error.contains("no store at"), "{error}");
    assert!(!place.file().exists());
}

#[tokio::test]
async fn somebody_elses_database_is_not_taken_for_a_store() {
    let place = Place::sqlite();
    fs::write(place.file(), "").unwrap();
    let error = refused(&place, Use::Look).await;
    assert!(error.contains("schema version 0"), "{error}");
}

#[tokio::test]
async fn a_full_disk_is_told_and_what_was_acknowledged_stays() {
    let place = Place::sqlite();
    let store = place.open().await;
    store
        .must((), |conn, ()| {
            Box::pin(async move {
                let row = conn.fetch_one("PRAGMA page_count", values![]).await?;
                let n_pages = row.int("page_count")? + 20;
                let sql = format!("PRAGMA max_page_count = {n_pages}");
                conn.fetch_all(sql, values![]).await.map(drop)
            })
        })
        .await;
    let long = "x".repeat(10_000);
    let mut n_acknowledged = 0;
    let error = loop {
        let wrote: Result<(), StoreError> = store
            .write(long.clone(), |conn, long| {
                Box::pin(async move {
                    note(conn, "kept").await?;
                    note(conn, long).await
                })
            })
            .await;
        match wrote {
            Ok(()) => n_acknowledged += 1,
            Err(error) => break error,
        }
        assert!(n_acknowledged < 1000);
    };
    assert!(matches!(error, StoreError::Full(_)), "{error:?}");
    assert!(error.to_string().contains("disk is full"), "{error}");
    // It fails alone: what is small enough still goes in beside it.
    let mut writes = tokio::task::JoinSet::new();
    for number in 0..8 {
        let (store, long) = (store.clone(), long.clone());
        writes.spawn(async move {
            let subject = if number == 3 { long } else { "small".to_owned() };
            let wrote: Result<(), StoreError> =
                store.write(subject, |conn, subject| note(conn, subject)).await;
            assert_eq!(wrote.is_err(), number == 3, "{wrote:?}");
        });
    }
    writes.join_all().await;
    store.close().await;
    let store = place.open().await;
    assert_eq!(n_notes(&store, "kept").await, n_acknowledged);
    assert_eq!(n_notes(&store, "small").await, 7);
    store.close().await;
}

#[tokio::test]
async fn a_file_that_another_program_has_locked_is_an_error_that_says_so() {
    let place = Place::sqlite();
    let store = place.open().await;
    let other = sqlite_pool(1).connect_lazy_with(sqlite_options(&place.file()));
    let mut other = Conn::new(Link::Sqlite(other.acquire().await.unwrap()));
    other.execute("BEGIN IMMEDIATE", values![]).await.unwrap();
    let wrote: Result<(), StoreError> = store.write((), |conn, ()| note(conn, "locked")).await;
    let error = wrote.unwrap_err();
    assert!(matches!(error, StoreError::Locked(_)), "{error:?}");
    assert!(error.to_string().contains("another program"), "{error}");
    other.execute("ROLLBACK", values![]).await.unwrap();
    store.must((), |conn, ()| note(conn, "locked")).await;
    assert_eq!(n_notes(&store, "locked").await, 1);
    store.close().await;
}

#[tokio::test]
async fn an_unreachable_server_is_an_error_without_the_password() {
    // A port that was free a moment ago, on which nobody listens.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("postgres://me:very-secret@127.0.0.1:{port}/ostler");
    let location: Location = url.parse().unwrap();
    let error = Store::open(&location, Use::Gateway).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    assert!(!format!("{} {error:?}", error.chain()).contains("secret"), "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_and_wakeups_go_on_after_the_server_cut_all_connections() {
    testing::on_postgres(|store| async move {
        let other = Store::open(store.location(), Use::Gateway).await.unwrap();
        let mut wakeups = other.wakeups(Topic::Jobs);
        let cut = store.read((), |conn, ()| {
            Box::pin(async move {
                let sql = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                           WHERE datname = current_database() AND pid <> pg_backend_pid()";
                conn.fetch_all(sql, values![]).await
            })
        });
        cut.await.unwrap();
        for _ in 0..20 {
            store.must((), |conn, ()| note(conn, "cut")).await;
        }
        assert_eq!(n_notes(&store, "cut").await, 20);
        // The loss of the connection itself wakes, and so does what follows.
        until_told(&mut wakeups).await;
        other.close().await;
    })
    .await;
}
