//! Many at once, and much that waits.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering},
    },
    time::Instant,
};

use tokio::task::JoinSet;

use super::*;

const LANES: usize = 50;
const JOBS: usize = 2_000;
const WORKERS: usize = 8;
const PRODUCERS: usize = 64;

/// What is known of a lane while jobs of it run.
#[derive(Default)]
struct Watch {
    is_busy: AtomicBool,
    last_seq: AtomicI64,
}

fn no_limits() -> Limits {
    Limits { waiting: u32::MAX - 1, waiting_in_lane: u32::MAX - 1 }
}

/// Enqueues from many sides at once, and prints how fast that was.
async fn produce(queue: &Queue, n_jobs: usize, n_producers: usize) {
    let mut producers = JoinSet::new();
    let started = Instant::now();
    for producer in 0..n_producers {
        let queue = queue.clone();
        producers.spawn(async move {
            for number in (producer..n_jobs).step_by(n_producers) {
                let key = with_key(&number.to_string());
                queue.enqueue(lane(&(number % LANES).to_string()), key, NOW).await.unwrap();
            }
        });
    }
    producers.join_all().await;
    let per_second = n_jobs as f64 / started.elapsed().as_secs_f64();
    eprintln!("{n_jobs} jobs from {n_producers} producers: {per_second:.0} a second");
}

on_both! {
    async fn workers_never_overlap_in_a_lane_and_keep_its_order(store: Store) {
        let queue = Queue::with_limits(store.clone(), no_limits());
        let lanes: Arc<Vec<Watch>> = Arc::new((0..LANES).map(|_| Watch::default()).collect());
        let n_done = Arc::new(AtomicUsize::new(0));
        let mut workers = JoinSet::new();
        let started = Instant::now();
        for worker in 0..WORKERS {
            let (queue, lanes, n_done) = (queue.clone(), Arc::clone(&lanes), Arc::clone(&n_done));
            let mut wakeups = store.wakeups(Topic::Jobs);
            workers.spawn(async move {
                let owner = WorkerId::new(worker);
                while n_done.load(Ordering::Acquire) < JOBS {
                    let Some((job, ticket)) = queue.claim(&owner, NOW, LEASE).await.unwrap() else {
                        tokio::select! {
                            _ = wakeups.next() => {}
                            () = tokio::time::sleep(Duration::from_millis(50)) => {}
                        }
                        continue;
                    };
                    let watch = &lanes[job.lane.as_str().parse::<usize>().unwrap()];
                    assert!(!watch.is_busy.swap(true, Ordering::AcqRel), "two at once");
                    tokio::task::yield_now().await;
                    // One in ten is given back once, and comes again before the next.
                    let end = if job.seq % 10 == 0 && job.attempt == 1 {
                        JobEnd::Release
                    } else {
                        let before = watch.last_seq.swap(job.seq, Ordering::AcqRel);
                        assert!(before < job.seq, "out of order");
                        n_done.fetch_add(1, Ordering::AcqRel);
                        JobEnd::Done
                    };
                    watch.is_busy.store(false, Ordering::Release);
                    let end = queue.finish(&ticket, end, NOW).await.unwrap();
                    assert!(matches!(end, Finished::Now(..)), "{end:?}");
                }
            });
        }
        produce(&queue, JOBS, WORKERS).await;
        workers.join_all().await;
        let per_second = JOBS as f64 / started.elapsed().as_secs_f64();
        eprintln!("{JOBS} jobs through {WORKERS} workers: {per_second:.0} a second");
        let stats = queue.stats().await.unwrap();
        assert_eq!((stats.done, stats.running, stats.ready), (JOBS as u64, 0, 0));
    }

    async fn the_same_messages_from_many_sides_become_one_job_each(store: Store) {
        let queue = Queue::with_limits(store, no_limits());
        let mut sides = JoinSet::new();
        for _ in 0..4 {
            let queue = queue.clone();
            sides.spawn(async move { produce(&queue, 50, 4).await });
        }
        sides.join_all().await;
        let stats = queue.stats().await.unwrap();
        assert_eq!(stats.ready + stats.waiting, 50);
    }

    async fn many_producers_share_the_flushes_of_the_disk(store: Store) {
        let queue = Queue::with_limits(store, no_limits());
        produce(&queue, JOBS, PRODUCERS).await;
        let stats = queue.stats().await.unwrap();
        assert_eq!(stats.ready + stats.waiting, JOBS as u64);
    }
}
