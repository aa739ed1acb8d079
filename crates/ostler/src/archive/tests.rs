//! The archive after conversations, crashes and trouble.

use std::fs;

use tempfile::TempDir;

use super::*;
use crate::{
    gateway::inbound::{Inbound, Origin},
    gateway::testing::{Knobs, Rig, inbound},
    outbound::{Outgoing, Target},
    store::{
        conversations::{self, Address},
        messages::{Direction, NewMessage, Query, Start},
        testing::on_both,
    },
};

fn desk(store: &Store, owner: &str) -> Desk {
    Desk {
        store: store.clone(),
        owner: owner.to_owned(),
        on_duty_until: None,
        stop: CancellationToken::new(),
    }
}

/// Returns all pages by their place in the archive, without ids.
fn pages_in(dir: &TempDir) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut folders = vec![dir.path().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let place = path.strip_prefix(dir.path()).unwrap().to_str().unwrap().to_owned();
                all.push((place, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    all.sort();
    all
}

/// Returns who said what on a page.
fn said(page: &str) -> Vec<(String, String)> {
    let entries = page.split("\n## ").skip(1).map(|entry| {
        let (head, rest) = entry.split_once('\n').unwrap();
        let who = head.split_once(" · ").unwrap().1.to_owned();
        let lines = rest.lines().filter_map(|line| line.strip_prefix("> "));
        (who, lines.collect::<Vec<_>>().join("/"))
    });
    entries.collect()
}

async fn history(store: &Store) -> Vec<messages::Message> {
    let (conversation, since, until) = (None, None, None);
    let query = Query { conversation, since, until, from: Start::Oldest, limit: 1000 };
    let read: Result<_, StoreError> =
        store.read(query, |conn, query| Box::pin(messages::read(conn, query))).await;
    read.unwrap()
}

async fn add(store: &Store, address: &str, text: &str, at: Millis) -> MessageId {
    let id = MessageId::new();
    store
        .must((id, address.to_owned(), text.to_owned()), move |conn, (id, address, text)| {
            Box::pin(async move {
                let place = Address::new("local", address).unwrap();
                let conversation = conversations::find_or_begin(conn, &place, at).await?.id;
                let message = NewMessage {
                    id: *id,
                    conversation,
                    direction: Direction::In,
                    origin: "person",
                    place: &place,
                    sender: Some("ann"),
                    agent: None,
                    text: Some(text),
                    error: None,
                    job: None,
                    turn: None,
                    at,
                    dedupe: None,
                };
                messages::add(conn, &message).await
            })
        })
        .await;
    id
}

const DAY: i64 = 24 * 60 * 60 * 1000;

on_both! {
    async fn a_conversation_is_on_its_page_with_what_people_saw_and_nothing_else(store: Store) {
        let rig = Rig::new(store.clone(), Knobs::default()).await;
        rig.ask("main", "What is\n# this?").await;
        let failed = rig.send("main", "fail").await.job;
        rig.end_of(failed).await;
        let heartbeat = Inbound { origin: Origin::Heartbeat, ..inbound("main", "are you there?") };
        let heartbeat = rig.try_send(heartbeat).await.unwrap().job;
        rig.end_of(heartbeat).await;
        let once = Inbound { origin: Origin::Run, ..inbound("run 1", "once") };
        let once = rig.try_send(once).await.unwrap().job;
        rig.end_of(once).await;
        let reset = rig.send("main", "/new").await.job;
        rig.end_of(reset).await;
        let to = Target::At("local:main".parse().unwrap());
        let tea = Outgoing { to, text: "tea".to_owned(), id: None, from: None };
        rig.gateway.deliver(tea).await.unwrap();
        let dir = tempfile::tempdir().unwrap();
        desk(&store, "me").catch_up(dir.path()).await.unwrap();
        let pages = pages_in(&dir);
        assert_eq!(pages.len(), 2, "{pages:?}");
        assert!(pages[0].0.starts_with("local/main-") && pages[0].0.ends_with(".md"));
        assert!(pages[0].1.starts_with("# local:main · 20"), "{}", pages[0].1);
        let main = said(&pages[0].1);
        let main: Vec<_> = main.iter().map(|(who, text)| (who.as_str(), text.as_str())).collect();
        assert_eq!(main[0], ("me", "What is/# this?"));
        assert_eq!(main[1], ("pi", "What is/# this?"));
        assert_eq!(main[2], ("me", "fail"));
        assert!(main[3].0.starts_with("pi · "), "{main:?}");
        // The answer to what the gateway asked by itself is seen, the question is not.
        assert_eq!(main[4], ("pi", "are you there?"));
        assert_eq!(main[5], ("me", "/new"));
        assert_eq!(main[6].0, "ostler");
        assert_eq!(main[7], ("agent", "tea"));
        assert_eq!(main.len(), 8);
        assert_eq!(said(&pages[1].1).len(), 2);
        // Everything is marked: nothing is written again.
        desk(&store, "me").catch_up(dir.path()).await.unwrap();
        assert_eq!(pages_in(&dir), pages);
        rig.stop().await;
    }

    async fn a_crash_between_the_page_and_the_mark_writes_nothing_twice(store: Store) {
        let dir = tempfile::tempdir().unwrap();
        for number in 0..5 {
            add(&store, "main", &format!("no {number}"), Millis(DAY)).await;
        }
        let unarchived: Result<_, StoreError> =
            store.read((), |conn, ()| Box::pin(messages::unarchived(conn, None, 3))).await;
        for (path, page) in pages(dir.path(), unarchived.unwrap()) {
            write(path, page).await.unwrap();
        }
        let page = pages_in(&dir);
        assert_eq!(said(&page[0].1).len(), 3);
        desk(&store, "me").catch_up(dir.path()).await.unwrap();
        let texts: Vec<_> = said(&pages_in(&dir)[0].1).into_iter().map(|(_, text)| text).collect();
        assert_eq!(texts, ["no 0", "no 1", "no 2", "no 3", "no 4"]);
    }

    async fn each_conversation_and_day_has_its_page_and_more_than_a_batch_is_in_order(store: Store) {
        let dir = tempfile::tempdir().unwrap();
        for number in 0..50 {
            add(&store, "a", &format!("{number}"), Millis(DAY)).await;
        }
        add(&store, "b", "b", Millis(DAY)).await;
        add(&store, "a", "next day", Millis(2 * DAY)).await;
        desk(&store, "me").catch_up(dir.path()).await.unwrap();
        let pages = pages_in(&dir);
        let names: Vec<_> = pages.iter().map(|(name, _)| name.rsplit('/').next().unwrap()).collect();
        assert_eq!(names, ["1970-01-02.md", "1970-01-03.md", "1970-01-02.md"]);
        let texts: Vec<_> = said(&pages[0].1).into_iter().map(|(_, text)| text).collect();
        assert_eq!(texts, (0..50).map(|number| number.to_string()).collect::<Vec<_>>());
    }

    async fn a_page_that_cannot_be_written_holds_up_no_other_and_is_completed_later(store: Store) {
        let dir = tempfile::tempdir().unwrap();
        add(&store, "a", "first", Millis(DAY)).await;
        desk(&store, "me").catch_up(dir.path()).await.unwrap();
        let page = dir.path().join(&pages_in(&dir)[0].0);
        let away = dir.path().join("away");
        fs::rename(&page, &away).unwrap();
        fs::create_dir(&page).unwrap();
        for number in 0..30 {
            add(&store, "a", &format!("a{number}"), Millis(DAY)).await;
        }
        add(&store, "b", "b", Millis(DAY)).await;
        let mut desk = desk(&store, "me");
        let trouble = desk.catch_up(dir.path()).await.unwrap_err();
        assert!(trouble.to_string().contains("1970-01-02.md"), "{trouble}");
        assert_eq!(said(&pages_in(&dir).last().unwrap().1), [("ann".to_owned(), "b".to_owned())]);
        fs::remove_dir(&page).unwrap();
        fs::rename(&away, &page).unwrap();
        desk.catch_up(dir.path()).await.unwrap();
        let texts = said(&fs::read_to_string(&page).unwrap());
        assert_eq!(texts.len(), 31);
        assert_eq!((texts[0].1.as_str(), texts[30].1.as_str()), ("first", "a29"));
    }

    async fn of_several_gateways_one_writes_and_another_takes_over(store: Store) {
        let dir = tempfile::tempdir().unwrap();
        add(&store, "a", "first", Millis(DAY)).await;
        let mut first = desk(&store, "first");
        first.catch_up(dir.path()).await.unwrap();
        add(&store, "a", "second", Millis(DAY)).await;
        let mut second = desk(&store, "second");
        second.catch_up(dir.path()).await.unwrap();
        let is_alone = matches!(store.location(), crate::store::Location::Sqlite(_));
        // A SQLite store is one gateway's, so that the other must have been killed.
        assert_eq!(said(&pages_in(&dir)[0].1).len(), if is_alone { 2 } else { 1 });
        first.leave().await;
        second.catch_up(dir.path()).await.unwrap();
        assert_eq!(said(&pages_in(&dir)[0].1).len(), 2);
    }

    async fn what_is_not_archived_is_kept_though_it_is_old(store: Store) {
        let dir = tempfile::tempdir().unwrap();
        add(&store, "a", "archived", Millis(0)).await;
        desk(&store, "me").catch_up(dir.path()).await.unwrap();
        add(&store, "a", "waits", Millis(1)).await;
        add(&store, "a", "new", Millis(10 * DAY)).await;
        let keeping = Keeping { dir: Some(dir.path().to_owned()), retention: Some(Duration::from_secs(86_400)) };
        let clean = async |keeping: &Keeping| {
            let keep = crate::store::Keep { history: keeping.kept(), ..crate::store::Keep::default() };
            store.clean_up(keep, Millis(10 * DAY)).await.unwrap();
            let texts = history(&store).await.into_iter().filter_map(|message| message.text);
            texts.collect::<Vec<_>>()
        };
        assert_eq!(clean(&Keeping::default()).await.len(), 3);
        assert_eq!(clean(&keeping).await, ["waits", "new"]);
        assert_eq!(clean(&Keeping { dir: None, ..keeping }).await, ["new"]);
    }
}

#[tokio::test]
async fn the_task_writes_what_is_left_when_it_stops_and_nothing_when_it_is_off() {
    crate::store::testing::on_sqlite(|store| async move {
        let rig = Rig::new(store.clone(), Knobs::default()).await;
        let dir = tempfile::tempdir().unwrap();
        let archivist = Archivist::start(store.clone(), rig.policy.subscribe(), "me");
        rig.ask("main", "hello").await;
        archivist.stop(LEASE).await;
        assert!(pages_in(&dir).is_empty());
        rig.archive_in(dir.path());
        Archivist::start(store.clone(), rig.policy.subscribe(), "me").stop(LEASE).await;
        assert_eq!(said(&pages_in(&dir)[0].1).len(), 2);
        rig.stop().await;
    })
    .await;
}
