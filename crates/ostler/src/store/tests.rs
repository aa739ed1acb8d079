//! What the store promises, on both databases.

mod disk;
mod faults;
mod history;
mod pairings;
mod past;
mod requests;
mod retention;
mod schedules;
mod tables;
mod upkeep;

use super::{db::values, testing::on_both, *};
use crate::clock::Millis;

const NOW: Millis = Millis(1_000_000);

/// Adds a line to the audit, which is the simplest write there is.
fn note<'a>(conn: &'a mut Conn, subject: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
    Box::pin(async move {
        let (actor, action) = ("me".to_owned(), "noted".to_owned());
        let (subject, detail) = (subject.to_owned(), "{}".to_owned());
        audit::add(conn, &audit::Entry { at: NOW, actor, action, subject, detail }).await
    })
}

async fn n_notes(store: &Store, subject: &str) -> usize {
    let subject = subject.to_owned();
    let notes = store.read(subject, |conn, subject| Box::pin(audit::about(conn, subject)));
    notes.await.unwrap().len()
}

on_both! {
    async fn a_write_that_fails_leaves_nothing_behind_and_others_stay(store: Store) {
        let mut writes = tokio::task::JoinSet::new();
        for number in 0..40 {
            let store = store.clone();
            writes.spawn(async move {
                let wrote: Result<(), StoreError> = store
                    .write(number, |conn, number| {
                        Box::pin(async move {
                            note(conn, "many").await?;
                            if number % 4 == 0 { Err(StoreError::Closed) } else { Ok(()) }
                        })
                    })
                    .await;
                assert_eq!(wrote.is_err(), number % 4 == 0);
            });
        }
        writes.join_all().await;
        assert_eq!(n_notes(&store, "many").await, 30);
    }

    async fn a_write_with_a_failed_statement_is_not_committed_even_if_it_does_not_mind(
        store: Store
    ) {
        let wrote: Result<(), StoreError> = store
            .write((), |conn, ()| {
                Box::pin(async move {
                    note(conn, "unminded").await?;
                    conn.execute("INSERT INTO lanes (id) VALUES (NULL)", values![]).await.ok();
                    Ok(())
                })
            })
            .await;
        assert!(matches!(wrote, Err(StoreError::Refused(_))), "{wrote:?}");
        assert_eq!(n_notes(&store, "unminded").await, 0);
        store.must((), |conn, ()| note(conn, "unminded")).await;
        assert_eq!(n_notes(&store, "unminded").await, 1);
    }

    async fn a_write_that_panics_is_undone_and_the_store_goes_on(store: Store) {
        let wrote: Result<(), StoreError> = store
            .write((), |conn, ()| {
                Box::pin(async move {
                    note(conn, "panic").await?;
                    panic!("of a test")
                })
            })
            .await;
        assert!(matches!(wrote, Err(StoreError::Panicked)), "{wrote:?}");
        store.must((), |conn, ()| note(conn, "panic")).await;
        assert_eq!(n_notes(&store, "panic").await, 1);
    }

    async fn a_write_happens_though_nobody_waits_for_it(store: Store) {
        let asked = store.write((), |conn, ()| note(conn, "unheard"));
        // Polled once, so that it is under way, then dropped.
        tokio::select! {
            biased;
            wrote = asked => wrote.unwrap(),
            () = std::future::ready(()) => {}
        }
        store.close().await;
        let again = Store::open(store.location(), Use::Look).await.unwrap();
        assert_eq!(n_notes(&again, "unheard").await, 1);
        again.close().await;
    }

    async fn a_closed_store_takes_nothing_more(store: Store) {
        store.close().await;
        let wrote: Result<(), StoreError> = store.write((), |conn, ()| note(conn, "late")).await;
        assert!(matches!(wrote, Err(StoreError::Closed)), "{wrote:?}");
        let read: Result<(), StoreError> = store.read((), |_, ()| Box::pin(async { Ok(()) })).await;
        assert!(matches!(read, Err(StoreError::Closed)), "{read:?}");
    }

    async fn one_that_only_looks_cannot_write(store: Store) {
        let look = Store::open(store.location(), Use::Look).await.unwrap();
        let wrote: Result<(), StoreError> = look.write((), |conn, ()| note(conn, "look")).await;
        assert!(wrote.is_err());
        assert_eq!(n_notes(&look, "look").await, 0);
        look.close().await;
    }

    async fn a_write_wakes_those_who_wait_after_it_is_there(store: Store) {
        let mut wakeups = store.wakeups(Topic::Outbox);
        store
            .must((), |conn, ()| {
                Box::pin(async move {
                    conn.wake(Topic::Outbox);
                    note(conn, "waking").await
                })
            })
            .await;
        assert_eq!(wakeups.next().await, Woken::Told);
        assert_eq!(n_notes(&store, "waking").await, 1);
    }

    async fn a_command_beside_the_gateway_can_write(store: Store) {
        let beside = Store::open(store.location(), Use::Beside).await.unwrap();
        beside.must((), |conn, ()| note(conn, "beside")).await;
        beside.close().await;
        assert_eq!(n_notes(&store, "beside").await, 1);
    }
}

/// Waits for a wake-up of another store, however long the machine takes for it.
async fn until_told(wakeups: &mut Wakeups) {
    while wakeups.next().await != Woken::Told {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_gateway_on_the_same_postgres_is_woken() {
    testing::on_postgres(|store| async move {
        let other = Store::open(store.location(), Use::Gateway).await.unwrap();
        let mut wakeups = other.wakeups(Topic::Jobs);
        // The first may be told because the other begins to hear, which may
        // also be over before it is asked; the second only by what was written.
        for _ in 0..2 {
            store
                .must((), |conn, ()| {
                    conn.wake(Topic::Jobs);
                    Box::pin(async { Ok(()) })
                })
                .await;
            until_told(&mut wakeups).await;
        }
        other.close().await;
    })
    .await;
}
