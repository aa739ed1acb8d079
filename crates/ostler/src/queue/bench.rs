//! How many jobs a second are accepted durably, beside what the disk itself
//! can do. A measurement, run by `scripts/bench`.

use std::{
    fs::{self, File},
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use tokio::task::JoinSet;

use super::*;
use crate::{
    clock::Millis,
    store::{Location, Store, testing},
};

const PRODUCERS: usize = 64;
const ROUNDS: usize = 5;
/// How many jobs each producer has accepted in a round.
const EACH: usize = 100;
/// For how long the disk is measured in a round.
const FLUSHING: Duration = Duration::from_millis(300);

/// Accepts jobs from many sides at once, and returns how many that were a second.
async fn accept(queue: &Queue, round: usize) -> f64 {
    let mut producers = JoinSet::new();
    let started = Instant::now();
    for producer in 0..PRODUCERS {
        let queue = queue.clone();
        producers.spawn(async move {
            for number in 0..EACH {
                let message = format!("{round}-{producer}-{number}");
                let key = MessageKey { channel: "bench".to_owned(), message };
                let payload = r#"{"v":1,"text":"A prompt of a common length, as people write."}"#;
                let job = NewJob { message: Some(key), ..NewJob::new("prompt", payload) };
                queue.enqueue(LaneId::new(producer), job, Millis::now()).await.unwrap();
            }
        });
    }
    producers.join_all().await;
    (PRODUCERS * EACH) as f64 / started.elapsed().as_secs_f64()
}

/// Returns how often a second one page can be written and flushed in a folder.
fn flushes(folder: &Path) -> f64 {
    let path = folder.join("flushes-of-the-bench");
    let file = File::create(&path).unwrap();
    let started = Instant::now();
    let mut n_flushes = 0_u32;
    while started.elapsed() < FLUSHING {
        file.write_all_at(&[0; 4096], 0).unwrap();
        file.sync_data().unwrap();
        n_flushes += 1;
    }
    let per_second = f64::from(n_flushes) / started.elapsed().as_secs_f64();
    fs::remove_file(path).unwrap();
    per_second
}

/// Returns the folder in which the database writes.
async fn folder(store: &Store) -> PathBuf {
    match store.location() {
        Location::Sqlite(path) => path.parent().unwrap().to_owned(),
        Location::Postgres(_) => testing::server_folder(store).await,
    }
}

async fn measure(store: Store, database: &str, limit: f64) {
    let queue = Queue::with_limits(
        store.clone(),
        Limits { waiting: 1_000_000, waiting_in_lane: 1_000_000 },
    );
    let folder = folder(&store).await;
    let (mut disk, mut jobs) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        disk.push(flushes(&folder));
        jobs.push(accept(&queue, round).await);
    }
    disk.sort_by(f64::total_cmp);
    jobs.sort_by(f64::total_cmp);
    let median = jobs[ROUNDS / 2];
    println!(
        "\n{{\"bench\":\"queue\",\"database\":\"{database}\",\"producers\":{PRODUCERS},\
         \"jobs\":{},\"jobs_per_second\":{median:.0},\"slowest_round\":{:.0},\
         \"fastest_round\":{:.0},\"flushes_per_second\":{:.0},\"limit\":{limit}}}",
        ROUNDS * PRODUCERS * EACH,
        jobs[0],
        jobs[ROUNDS - 1],
        disk[ROUNDS / 2],
    );
    assert!(median >= limit, "{median:.0} jobs a second, and the limit is {limit}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement; scripts/bench runs it"]
async fn jobs_accepted_on_sqlite() {
    testing::on_sqlite(|store| measure(store, "sqlite", 2000.0)).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement; scripts/bench runs it"]
async fn jobs_accepted_on_postgres() {
    testing::on_postgres(|store| measure(store, "postgres", 1000.0)).await;
}
