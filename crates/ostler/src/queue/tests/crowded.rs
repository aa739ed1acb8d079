//! Ten thousand jobs that wait: nothing that is done often looks at all of them.

use super::*;
use crate::store::{
    BoxFuture, Conn,
    jobs::{self, Unanswered},
    testing::plans,
};

const LANES: usize = 50;
const JOBS: usize = 10_000;
/// How many of them one write stores.
const PART: usize = 500;

type Step = fn(&mut Conn) -> BoxFuture<'_, Result<(), StoreError>>;

/// Whether a line of a plan says that all rows of a table are looked at.
fn is_scan(line: &str) -> bool {
    let tables = ["jobs", "inbox"];
    tables.iter().any(|table| {
        line.contains(&format!("Seq Scan on {table}"))
            || (line.contains(&format!("SCAN {table}")) && !line.contains("INDEX"))
    }) || line.contains("TEMP B-TREE")
        || line.contains("Sort Key")
}

/// Whether a plan is of counting those that wait.
fn is_count(plan: &str) -> bool {
    plan.contains("count(*) AS jobs")
}

/// Fills the queue.
async fn fill(store: &Store) {
    for part in 0..JOBS / PART {
        let stored = store.must(part, |conn, part| {
            Box::pin(async move {
                let capacity = Capacity::new(no_limits());
                for number in part * PART..(part + 1) * PART {
                    let lane = lane(&(number % LANES).to_string());
                    let key = with_key(&number.to_string());
                    let new = enqueue::enqueue(conn, JobId::new(), &lane, &key, &capacity, NOW);
                    new.await.unwrap();
                }
                Ok(())
            })
        });
        stored.await;
    }
}

fn no_limits() -> Limits {
    Limits { waiting: 1_000_000, waiting_in_lane: 1_000_000 }
}

const STEPS: &[(&str, Step)] = &[
    ("enqueue", |conn| {
        Box::pin(async move {
            let (capacity, lane) = (Capacity::new(no_limits()), lane("7"));
            for message in ["first", "second"] {
                let key = with_key(message);
                let new = enqueue::enqueue(conn, JobId::new(), &lane, &key, &capacity, NOW);
                new.await.unwrap();
            }
            Ok(())
        })
    }),
    ("claim and finish", |conn| {
        Box::pin(async move {
            let job = jobs::claim(conn, "me", NOW.after(LEASE), NOW).await?.unwrap();
            let waiting = jobs::waiting_behind(conn, &job.lane, 2).await?;
            let joined = Joined {
                jobs: waiting.iter().map(|job| job.id).collect(),
                state: JobState::Done,
                reason: String::new(),
            };
            let owner = WorkerId::new("me");
            let ticket = Ticket { job: job.id, lane: job.lane, attempt: job.attempt, owner };
            finish::finish(conn, &ticket, &JobEnd::Done, &joined, NOW).await.map(drop)
        })
    }),
    ("renew", |conn| {
        Box::pin(async move {
            jobs::renew_all(conn, "me", NOW).await?;
            jobs::cancel_requested_of(conn, "me").await?;
            jobs::expired(conn, NOW, 9).await?;
            jobs::next_due(conn, NOW).await.map(drop)
        })
    }),
    ("cancel", |conn| {
        Box::pin(async move {
            let job = jobs::waiting_behind(conn, &lane("9"), 1).await?.remove(0);
            cancel::cancel(conn, job.id, "stop", NOW).await?;
            cancel::cancel_lane(conn, &lane("9"), "stop", NOW).await.map(drop)
        })
    }),
    ("look for what is over", |conn| {
        Box::pin(async move {
            let of = Unanswered { kind: "prompt", since: NOW, after: None };
            jobs::over_without_reply(conn, of, 9).await?;
            jobs::remove_before(conn, jobs::Over::Dead, NOW, 9).await?;
            jobs::remove_before(conn, jobs::Over::DoneOrCancelled, NOW, 9).await?;
            jobs::forget_messages(conn, jobs::Came::Signed, Millis(0), 9).await?;
            jobs::forget_messages(conn, jobs::Came::Otherwise, Millis(0), 9).await.map(drop)
        })
    }),
];

on_both! {
    async fn with_ten_thousand_waiting_jobs_everything_is_a_look_at_an_index(store: Store) {
        fill(&store).await;
        for (name, step) in STEPS {
            let mut plans = plans(&store, *step, |conn, step| step(conn)).await;
            // Once in a while, as the test below says.
            plans.retain(|plan| !is_count(plan));
            for plan in plans {
                let scan = plan.lines().find(|line| is_scan(line));
                assert_eq!(scan, None, "{name}: {plan}");
            }
        }
    }

    async fn while_there_is_plenty_of_room_nothing_is_counted(store: Store) {
        let queue = Queue::with_limits(store.clone(), no_limits());
        let n_counts =
            |plans: &[String]| plans.iter().filter(|plan| is_count(plan)).count();
        for expected in [1, 0, 0] {
            let args = (queue.capacity.clone(), JobId::new());
            let plans = plans(&store, args, |conn, (capacity, id)| {
                Box::pin(async move {
                    let key = with_key(&id.to_string());
                    enqueue::enqueue(conn, *id, &lane("a"), &key, capacity, NOW).await.unwrap();
                    Ok(())
                })
            });
            let plans = plans.await;
            assert_eq!((n_counts(&plans), plans.len()), (expected, 3 + expected));
        }
    }
}
