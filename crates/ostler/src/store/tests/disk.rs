//! A disk that is really full: a small file system in memory, which the test
//! runs itself in once more, for it is mounted for that process only.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};

use super::*;
use crate::queue::{EnqueueError, LaneId, Limits, NewJob, Queue};

/// Tells the test in the small file system where that is.
const PLACE: &str = "OSTLER_TEST_SMALL_DISK";
/// Stands in for what else is on the disk, and can be removed.
const BALLAST: usize = 1 << 20;

fn environment(name: &str) -> Option<String> {
    #[expect(clippy::disallowed_methods, reason = "how the test tells itself where to work")]
    std::env::var(name).ok()
}

/// Makes a command of a shell that has a small file system in a folder.
fn in_small_file_system(folder: &Path, shell: &str) -> std::process::Command {
    #[expect(clippy::disallowed_methods, reason = "a file system needs a process of its own")]
    let mut command = std::process::Command::new("unshare");
    let mount = format!("mount -t tmpfs -o size=3m none {} && {shell}", folder.display());
    command.args(["--map-root-user", "--mount", "sh", "-c", &mount, "sh"]);
    command.stdin(Stdio::null());
    command
}

#[tokio::test]
async fn on_a_full_disk_jobs_are_refused_and_none_that_was_accepted_is_lost() {
    if let Some(folder) = environment(PLACE) {
        return fill(&PathBuf::from(folder)).await;
    }
    let folder = tempfile::tempdir().unwrap();
    let probe = in_small_file_system(folder.path(), "true").output().unwrap();
    if !probe.status.success() {
        let why = String::from_utf8_lossy(&probe.stderr);
        assert_ne!(environment("CI").as_deref(), Some("true"), "{why}");
        eprintln!("skipped: no file system can be mounted here: {why}");
        return;
    }
    let name = "store::tests::disk::\
                on_a_full_disk_jobs_are_refused_and_none_that_was_accepted_is_lost";
    let outcome = in_small_file_system(folder.path(), "exec \"$@\"")
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(PLACE, folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&outcome.stdout).into_owned()
        + &String::from_utf8_lossy(&outcome.stderr);
    assert!(outcome.status.success() && said.contains("1 passed"), "{said}");
}

async fn enqueue(queue: &Queue, number: usize) -> Result<(), EnqueueError> {
    let payload = format!("{{\"text\":\"{}\"}}", "x".repeat(5_000));
    let job = NewJob::new("prompt", &payload);
    queue.enqueue(LaneId::new(number % 7), job, NOW).await.map(drop)
}

/// Fills the small file system with jobs, and goes on when there is room again.
async fn fill(folder: &Path) {
    let ballast = folder.join("ballast");
    fs::write(&ballast, vec![0; BALLAST]).unwrap();
    let location = Location::in_folder(folder);
    let store = Store::open(&location, Use::Gateway).await.unwrap();
    let queue =
        Queue::with_limits(store.clone(), Limits { waiting: 10_000, waiting_in_lane: 10_000 });
    let mut n_accepted = 0;
    let error = loop {
        match enqueue(&queue, n_accepted).await {
            Ok(()) => n_accepted += 1,
            Err(error) => break error,
        }
        assert!(n_accepted < 1_000, "the disk is not small");
    };
    assert!(n_accepted > 0);
    assert!(matches!(error, EnqueueError::Store(StoreError::Full(_))), "{error:?}");
    // What was accepted can be read while the disk is full.
    let stats = queue.stats().await.unwrap();
    assert_eq!(stats.ready + stats.waiting, n_accepted as u64);
    // Once there is room, the same gateway goes on.
    fs::remove_file(&ballast).unwrap();
    for _ in 0..10 {
        enqueue(&queue, n_accepted).await.unwrap();
        n_accepted += 1;
    }
    store.close().await;
    let store = Store::open(&location, Use::Gateway).await.unwrap();
    let stats = Queue::new(store.clone()).stats().await.unwrap();
    assert_eq!(stats.ready + stats.waiting, n_accepted as u64);
    assert_eq!(store.check().await.unwrap(), []);
    store.close().await;
}
