//! Replies on their way, with a receiver that does what each test says.

use serde_json::Value;

use super::{pace::Tries, *};
use crate::{
    channel::{
        WEBHOOK,
        testing::{self, Receiver},
        webhook::{LIMITS, Limits},
    },
    id::ConversationId,
    store::{
        audit,
        conversations::{self, Address},
        events,
        outbox::Put,
        testing::{
            OutboxRow, hide_outbox, on_both, on_postgres, on_sqlite, outbox_rows, show_outbox,
        },
    },
};

/// No wait of ours is worth waiting for.
const QUICK: Pace = Pace {
    replies: Tries {
        first: Duration::from_millis(1),
        longest: Duration::from_millis(5),
        max: 3,
        ..Pace::USUAL.replies
    },
    first_store: Duration::from_millis(1),
    longest_store: Duration::from_millis(20),
    ..Pace::USUAL
};
/// More than anything here takes.
const LONG: Duration = Duration::from_secs(30);

fn start(store: &Store) -> Delivery {
    Delivery::start(store.clone(), Channels::new(), "here", QUICK)
}

async fn conversation(store: &Store, url: &str) -> ConversationId {
    let address = Address::new(WEBHOOK, url).unwrap();
    let begun = store.must(address, |conn, address| {
        Box::pin(async move { conversations::find_or_begin(conn, address, Millis::now()).await })
    });
    begun.await.id
}

/// Puts a reply on its way.
async fn put(store: &Store, url: &str, text: &str) -> OutboxId {
    let conversation = Some(conversation(store, url).await);
    let message = outbox::NewMessage { conversation, ..testing::message(WEBHOOK, url, text) };
    let put = store.must(message, |conn, message| {
        Box::pin(async move { outbox::put(conn, message, Millis::now()).await })
    });
    match put.await {
        Put::New(id) => id,
        Put::Again(_) => panic!("no message is the same as another here"),
    }
}

/// Waits until the outbox is so.
async fn until(store: &Store, is_so: impl Fn(&[OutboxRow]) -> bool) -> Vec<OutboxRow> {
    let mut wakeups = store.wakeups(Topic::Outbox);
    let looked = async {
        loop {
            let rows = outbox_rows(store).await;
            if is_so(&rows) {
                return rows;
            }
            wakeups.next().await;
        }
    };
    match time::timeout(LONG, looked).await {
        Ok(rows) => rows,
        Err(_) => panic!("it never was: {:?}", outbox_rows(store).await),
    }
}

async fn until_all(store: &Store, state: &str) -> Vec<OutboxRow> {
    until(store, |rows| rows.iter().all(|row| row.state == state)).await
}

on_both! {
    async fn replies_for_an_address_leave_in_order_and_hold_up_nobody_else(store: Store) {
        let mut receiver = Receiver::start().await;
        let (slow, quick) = (format!("{}/slow", receiver.url), format!("{}/quick", receiver.url));
        for number in 0..5 {
            put(&store, &slow, &number.to_string()).await;
            put(&store, &quick, &number.to_string()).await;
        }
        let delivery = start(&store);
        let mut held = None;
        let mut quick = Vec::new();
        while held.is_none() || quick.len() < 5 {
            let request = receiver.next().await;
            if request.path == "/slow" {
                assert!(held.replace(request).is_none(), "the first was not answered yet");
            } else {
                quick.push(request.text().to_owned());
                request.answer(200);
            }
        }
        let mut slow = vec![held.unwrap()];
        for _ in 1..5 {
            let before = slow.pop().unwrap();
            let number = before.text().to_owned();
            before.answer(200);
            let after = receiver.next().await;
            assert_eq!((number.as_str() < after.text(), after.path.as_str()), (true, "/slow"));
            slow.push(after);
        }
        slow.pop().unwrap().answer(200);
        assert_eq!(quick, ["0", "1", "2", "3", "4"]);
        until_all(&store, "sent").await;
        delivery.stop(LONG).await;
        assert!(receiver.try_next().is_none());
    }

    async fn a_receiver_that_fails_gets_the_same_reply_again(store: Store) {
        let mut receiver = Receiver::start().await;
        let id = put(&store, &receiver.url, "hello").await;
        let delivery = start(&store);
        receiver.next().await.answer(500);
        let again = receiver.next().await;
        assert_eq!(again.key(), id.to_string());
        assert_eq!((again.text(), &again.body["is_unsure"]), ("hello", &Value::Bool(false)));
        again.answer(200);
        let rows = until_all(&store, "sent").await;
        assert_eq!((rows[0].attempt, rows[0].is_unsure, &rows[0].reason), (2, false, &None));
        delivery.stop(LONG).await;
    }

    async fn a_reply_that_is_refused_is_given_up_and_told_and_the_next_one_goes_on(store: Store) {
        let mut receiver = Receiver::start().await;
        let url = format!("{}/very-secret", receiver.url);
        let id = put(&store, &url, "one").await;
        put(&store, &url, "two").await;
        let delivery = start(&store);
        receiver.next().await.answer_with(400, "", "no such user");
        let next = receiver.next().await;
        assert_eq!(next.text(), "two");
        next.answer(200);
        let rows = until(&store, |rows| rows.iter().any(|row| row.state == "sent")).await;
        assert_eq!((rows[0].id, rows[0].state.as_str()), (id, "failed"));
        assert_eq!(rows[0].reason.as_deref(), Some("400 Bad Request: no such user"));
        let in_conversation = conversation(&store, &url).await;
        let told = store.read(in_conversation, |conn, id| Box::pin(events::read_of(conn, *id, 0, 9)));
        let told: Vec<_> = Result::<_, StoreError>::unwrap(told.await);
        assert_eq!(told.len(), 1);
        let body: Value = serde_json::from_str(&told[0].event.body).unwrap();
        assert_eq!((&body["type"], &body["code"]), (&"status".into(), &"warning".into()));
        assert_eq!((&body["seq"], &body["turn"]), (&0.into(), &Value::Null));
        let text = body["text"].as_str().unwrap();
        let says = ["the reply of job_", "http://127.0.0.1:", "one attempt: 400 Bad Request"];
        assert!(says.iter().all(|part| text.contains(part)), "{text}");
        let subject = id.to_string();
        let audited = store.read(subject, |conn, id| Box::pin(audit::about(conn, id)));
        let audited: Vec<_> = Result::<_, StoreError>::unwrap(audited.await);
        assert_eq!(audited.len(), 1);
        assert_eq!(audited[0].action, "reply.given_up");
        assert!(!format!("{told:?}{audited:?}").contains("secret"), "{told:?}{audited:?}");
        delivery.stop(LONG).await;
    }

    async fn a_receiver_that_never_takes_it_is_given_up_at_last(store: Store) {
        let mut receiver = Receiver::start().await;
        let url = receiver.url.clone();
        put(&store, &url, "hello").await;
        let delivery = start(&store);
        receiver.next().await.answer(503);
        // Cut off: it may have been read.
        drop(receiver.next().await);
        let last = receiver.next().await;
        assert_eq!(last.body["is_unsure"], true);
        last.answer(429);
        let rows = until_all(&store, "failed").await;
        assert_eq!((rows[0].attempt, rows[0].is_unsure), (3, true));
        let id = conversation(&store, &url).await;
        let told = store.read(id, |conn, id| Box::pin(events::read_of(conn, *id, 0, 9)));
        let told: Vec<_> = Result::<_, StoreError>::unwrap(told.await);
        assert!(told[0].event.body.contains("3 attempts: 429"), "{told:?}");
        assert!(told[0].event.body.contains("may have arrived"), "{told:?}");
        delivery.stop(LONG).await;
    }

    async fn a_receiver_can_ask_for_time_but_not_for_days(store: Store) {
        let mut receiver = Receiver::start().await;
        put(&store, &receiver.url, "hello").await;
        let delivery = start(&store);
        let hour = Duration::from_secs(60 * 60);
        let earliest = Millis::now().after(hour);
        receiver.next().await.answer_with(429, "Retry-After: 86400", "");
        let rows = until(&store, |rows| rows[0].next_at > Millis(0)).await;
        assert!(rows[0].next_at >= earliest, "{rows:?}");
        assert!(rows[0].next_at <= Millis::now().after(hour), "{rows:?}");
        assert_eq!((rows[0].state.as_str(), rows[0].attempt), ("waiting", 1));
        delivery.stop(LONG).await;
    }

    async fn a_receiver_that_hangs_is_asked_again_and_told_of_the_doubt(store: Store) {
        let mut receiver = Receiver::start().await;
        let id = put(&store, &receiver.url, "hello").await;
        let limits = Limits { whole: Duration::from_secs(1), ..LIMITS };
        let channels = Channels::with_limits(limits);
        let delivery = Delivery::start(store.clone(), channels, "here", QUICK);
        receiver.next().await.hold().await;
        let again = receiver.next().await;
        assert_eq!((again.key(), &again.body["is_unsure"]), (id.to_string().as_str(), &true.into()));
        again.answer(200);
        until_all(&store, "sent").await;
        delivery.stop(LONG).await;
    }

    async fn a_reply_of_a_sender_that_was_killed_is_sent_again_and_says_so(store: Store) {
        let mut receiver = Receiver::start().await;
        let id = put(&store, &receiver.url, "hello").await;
        let long_ago = Millis::now().before(Duration::from_secs(120));
        let claimed = store.must(long_ago, |conn, long_ago| {
            Box::pin(outbox::claim(conn, "killed", Among::All, &[], *long_ago, QUICK.lease))
        });
        assert!(claimed.await.is_some());
        let delivery = start(&store);
        let request = receiver.next().await;
        assert_eq!((request.key(), &request.body["is_unsure"]), (id.to_string().as_str(), &true.into()));
        request.answer(200);
        assert_eq!(until_all(&store, "sent").await[0].attempt, 2);
        delivery.stop(LONG).await;
    }

    async fn stopping_lets_the_present_one_arrive_and_begins_no_other(store: Store) {
        let mut receiver = Receiver::start().await;
        let first = put(&store, &format!("{}/1", receiver.url), "one").await;
        let delivery = start(&store);
        let request = receiver.next().await;
        let other = format!("{}/2", receiver.url);
        // The stop begins before what is beside it.
        tokio::join!(delivery.stop(LONG), async {
            put(&store, &other, "two").await;
            request.answer(200);
        });
        let rows = outbox_rows(&store).await;
        assert_eq!((rows[0].id, rows[0].state.as_str()), (first, "sent"));
        assert_eq!((rows[1].state.as_str(), rows[1].attempt), ("waiting", 0));
        assert!(receiver.try_next().is_none());
    }

    async fn what_was_claimed_and_not_begun_goes_back_without_a_doubt(store: Store) {
        let mut receiver = Receiver::start().await;
        put(&store, &receiver.url, "hello").await;
        let desk = desk(&store, QUICK);
        let claimed = desk.claim(UnderWay::default().room()).await.unwrap();
        desk.stop.cancel();
        for sending in claimed.sendings {
            outcome::deliver(Arc::clone(&desk), sending).await;
        }
        let rows = outbox_rows(&store).await;
        assert_eq!((rows[0].state.as_str(), rows[0].is_unsure), ("waiting", false));
        assert!(receiver.try_next().is_none());
    }

    async fn what_was_sent_while_the_store_was_away_is_noted_later_and_not_sent_twice(store: Store) {
        let mut receiver = Receiver::start().await;
        put(&store, &receiver.url, "hello").await;
        // So short that it has expired whenever somebody looks.
        let desk = desk(&store, Pace { lease: Duration::from_millis(1), ..QUICK });
        let mut tasks = JoinSet::new();
        tasks.spawn(work(Arc::clone(&desk)));
        let request = receiver.next().await;
        hide_outbox(&store).await;
        request.answer(200);
        let away = async {
            while !desk.is_store_away.load(Ordering::Relaxed) {
                task::yield_now().await;
            }
        };
        time::timeout(LONG, away).await.unwrap();
        show_outbox(&store).await;
        let rows = until_all(&store, "sent").await;
        assert_eq!((rows[0].attempt, rows[0].is_unsure), (1, false));
        // It goes on as before.
        put(&store, &receiver.url, "again").await;
        let next = receiver.next().await;
        assert_eq!(next.text(), "again");
        next.answer(200);
        until_all(&store, "sent").await;
        assert!(!desk.is_store_away.load(Ordering::Relaxed));
        desk.stop.cancel();
        tasks.join_all().await;
    }

    async fn what_is_under_way_here_is_not_taken_back_however_long_it_takes(store: Store) {
        put(&store, "http://127.0.0.1:9/", "hello").await;
        // It has expired when it is claimed.
        let claiming = desk(&store, Pace { lease: Duration::ZERO, ..QUICK });
        let sending = claiming.claim(UnderWay::default().room()).await.unwrap().sendings.remove(0);
        let desk = desk(&store, QUICK);
        desk.reclaim(vec![(sending.id, sending.attempt)]).await.unwrap();
        desk.reclaim(Vec::new()).await.unwrap();
        assert_eq!(outbox_rows(&store).await[0].state, "sending");
        claiming.reclaim(vec![(sending.id, sending.attempt)]).await.unwrap();
        let rows = outbox_rows(&store).await;
        assert_eq!((rows[0].state.as_str(), rows[0].is_unsure), ("waiting", true));
    }

    async fn a_closed_store_ends_it(store: Store) {
        let desk = desk(&store, QUICK);
        store.close().await;
        time::timeout(LONG, work(desk)).await.unwrap();
    }
}

fn desk(store: &Store, pace: Pace) -> Arc<Desk> {
    Arc::new(Desk {
        store: store.clone(),
        channels: Channels::new(),
        worker: "here".to_owned(),
        pace,
        stop: CancellationToken::new(),
        is_store_away: AtomicBool::new(false),
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_left_at_the_end_is_sent_by_the_next_one_whatever_its_lease() {
    on_sqlite(|store| async move {
        let mut receiver = Receiver::start().await;
        let id = put(&store, &receiver.url, "hello").await;
        let delivery = start(&store);
        let left = receiver.next().await;
        delivery.stop(Duration::ZERO).await;
        left.hold().await;
        assert_eq!(outbox_rows(&store).await[0].state, "sending");
        let delivery = start(&store);
        let again = receiver.next().await;
        assert_eq!(
            (again.key(), &again.body["is_unsure"]),
            (id.to_string().as_str(), &true.into())
        );
        again.answer(200);
        until_all(&store, "sent").await;
        delivery.stop(LONG).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_gateways_send_every_reply_once_and_in_order() {
    on_postgres(|store| async move {
        const ADDRESSES: usize = 8;
        const REPLIES: usize = 10;
        let mut receiver = Receiver::start().await;
        let other = Store::open(store.location(), crate::store::Use::Gateway).await.unwrap();
        let here = Delivery::start(store.clone(), Channels::new(), "here", QUICK);
        let there = Delivery::start(other.clone(), Channels::new(), "there", QUICK);
        for number in 0..REPLIES {
            for address in 0..ADDRESSES {
                let url = format!("{}/{address}", receiver.url);
                put(&store, &url, &number.to_string()).await;
            }
        }
        let mut seen: HashMap<String, Vec<String>> = HashMap::new();
        for _ in 0..ADDRESSES * REPLIES {
            let request = receiver.next().await;
            seen.entry(request.path.clone()).or_default().push(request.text().to_owned());
            request.answer(200);
        }
        let expected: Vec<_> = (0..REPLIES).map(|number| number.to_string()).collect();
        assert!(
            seen.len() == ADDRESSES && seen.values().all(|texts| *texts == expected),
            "{seen:?}"
        );
        let rows = until_all(&store, "sent").await;
        assert!(rows.iter().all(|row| row.attempt == 1), "{rows:?}");
        here.stop(LONG).await;
        there.stop(LONG).await;
        other.close().await;
        assert!(receiver.try_next().is_none());
    })
    .await;
}
