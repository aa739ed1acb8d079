//! Which processes are kept, and which go.

use std::{os::unix::fs::symlink, time::Duration};

use ostler_core::{
    CliAgent, EventBody, PoolLimits, PoolStats, TurnRequest,
    event::{Mode, Status},
    failure::FailureKind,
    registry::Agent as _,
};

use crate::{
    Place, ended, eventually, failure, memo, ours,
    parrot::{FLOCK, PARROT, TWIN},
    rest, text, until_kind,
};

fn limits() -> PoolLimits {
    PoolLimits::default()
}

#[tokio::test]
async fn an_idle_process_goes_and_its_session_goes_on_in_another() {
    for spec in [&PARROT, &FLOCK] {
        let place = Place::with_limits(PoolLimits { idle: Duration::ZERO, ..limits() });
        let first = place.run(spec, "count").await;
        eventually("the idle process is gone", async || ours(place.dir.path()).is_empty()).await;
        let second = place.go_on(spec, &memo(&first), "count").await;
        assert_eq!((text(&second), &second.session_id), ("1", &first.session_id));
        assert!(place.host.pool_stats().await.evicted >= 1);
        place.close().await;
    }
}

#[tokio::test]
async fn of_too_many_parked_processes_the_longest_idle_goes() {
    let place = Place::with_limits(PoolLimits { parked: 2, ..limits() });
    let mut memos = Vec::new();
    for _ in 0..3 {
        memos.push(memo(&place.run(&PARROT, "say hi").await));
    }
    eventually("one was evicted", async || place.host.pool_stats().await.parked == 2).await;
    assert_eq!(text(&place.go_on(&PARROT, &memos[2], "count").await), "2");
    assert_eq!(text(&place.go_on(&PARROT, &memos[0], "count").await), "1");
    place.close().await;
}

#[tokio::test]
async fn a_process_that_was_killed_while_parked_is_replaced_and_the_next_turn_says_so() {
    for spec in [&PARROT, &FLOCK] {
        let place = Place::new();
        let first = place.run(spec, "pid").await;
        let pid: i32 = text(&first).parse().unwrap();
        #[expect(unsafe_code, reason = "the standard library sends no signals")]
        // SAFETY: `kill` has no preconditions.
        let sent = unsafe { libc::kill(pid, libc::SIGKILL) };
        assert_eq!(sent, 0);
        eventually("its death is noticed", async || place.host.pool_stats().await.died == 1).await;
        let request = place.request("count").resume(memo(&first));
        let (events, second) = rest(place.start(spec, request).await).await;
        assert_eq!((text(&second), second.is_error()), ("1", false));
        assert!(events.iter().any(|event| matches!(&event.body,
            EventBody::Status(Status::Warning { text }) if text.contains("had ended"))));
        let third = place.go_on(spec, &memo(&second), "count").await;
        assert_eq!(text(&third), "2");
        place.close().await;
    }
}

#[tokio::test]
async fn a_replaced_program_retires_its_processes() {
    let place = Place::new();
    let program = place.dir.path().join("agent");
    symlink("/bin/dash", &program).unwrap();
    let agent = CliAgent::new(&PARROT, place.host.clone()).with_program(&program);
    let first = ended(agent.start(place.request("count")).await.unwrap()).await;
    std::fs::remove_file(&program).unwrap();
    symlink("/bin/bash", &program).unwrap();
    let request = place.request("count").resume(memo(&first));
    let second = ended(agent.start(request).await.unwrap()).await;
    assert_eq!(text(&second), "1", "the session went on in a new process");
    assert_eq!(place.host.pool_stats().await.outdated, 1);
    place.close().await;
}

#[tokio::test]
async fn other_options_mean_another_process_for_the_same_session() {
    let place = Place::new();
    let first = place.run(&PARROT, "count").await;
    let mut request = place.request("count").resume(memo(&first));
    request.options.extra_args = vec!["--other".into()];
    let second = ended(place.start(&PARROT, request).await).await;
    assert_eq!((text(&second), &second.session_id), ("1", &first.session_id));
    eventually("the first process is gone", async || place.host.pool_stats().await.parked == 1)
        .await;
    place.close().await;
}

#[tokio::test]
async fn a_turn_with_a_process_of_its_own_takes_the_session_over() {
    let place = Place::new();
    let first = place.run(&PARROT, "say hi").await;
    let mut request = TurnRequest::new("alone", place.dir.path()).resume(memo(&first));
    request.mode = Mode::OneShot;
    let second = ended(place.start(&PARROT, request).await).await;
    assert_eq!((text(&second), second.mode), ("alone", Mode::OneShot));
    assert_eq!(place.host.pool_stats().await, PoolStats { started: 1, ..PoolStats::default() });
    place.close().await;
}

#[tokio::test]
async fn a_session_that_somebody_else_has_open_is_waited_for() {
    let place = Place::new();
    let first = place.run(&PARROT, "say hi").await;
    let same = Place { dir: tempfile::tempdir().unwrap(), host: other_host(&place) };
    let mut request = place.request("say hi").resume(memo(&first));
    request.timeout = Duration::from_millis(100);
    let second = ended(same.start(&PARROT, request).await).await;
    assert_eq!(failure(&second), FailureKind::SessionBusy);
    place.host.shutdown(crate::LIMIT).await;
    let third = same.go_on(&PARROT, &memo(&first), "say now").await;
    assert_eq!(text(&third), "now");
    same.close().await;
}

/// Returns another Ostler with the same data folder.
fn other_host(place: &Place) -> ostler_core::Host {
    let variables = place.host.environment().clone();
    ostler_core::Host::new(ostler_core::HostConfig::from_environment(variables))
}

#[tokio::test]
async fn a_spare_is_kept_for_the_next_session_of_a_kind() {
    let place = Place::with_limits(PoolLimits { spares: 1, ..limits() });
    place.run(&PARROT, "say hi").await;
    let stats = place.host.pool_stats().await;
    assert_eq!((stats.started, stats.reused), (2, 0));
    place.run(&PARROT, "say hi").await;
    let stats = place.host.pool_stats().await;
    assert_eq!((stats.started, stats.reused), (3, 1));
    place.close().await;
}

#[tokio::test]
async fn parked_processes_that_take_too_much_memory_go() {
    let place =
        Place::with_limits(PoolLimits { memory: 1, round: Duration::from_millis(20), ..limits() });
    place.run(&PARROT, "say hi").await;
    let mut busy = place.start(&PARROT, place.request("wait")).await;
    until_kind(&mut busy, "output").await;
    eventually("the parked one is gone", async || place.host.pool_stats().await.evicted == 1).await;
    assert_eq!(place.host.pool_stats().await.busy, 1, "a busy one stays");
    drop(busy);
    place.close().await;
}

#[tokio::test]
async fn many_short_turns_leave_nothing_behind() {
    let place = Place::new();
    let mut known = memo(&place.run(&FLOCK, "say hi").await);
    let before = own_memory();
    for number in 0..1000 {
        let report = place.go_on(&FLOCK, &known, &format!("say {number}")).await;
        assert_eq!(text(&report), number.to_string());
        known = memo(&report);
    }
    let grown = own_memory().saturating_sub(before);
    assert!(grown < 4 * 1024 * 1024, "it grew by {grown} bytes");
    assert_eq!(place.host.pool_stats().await.started, 1);
    place.close().await;
}

fn own_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
    let kilobytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kilobytes * 1024
}

/// Shutting down in the midst of what the pool does must not wait for its next round.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shutting_down_right_behind_a_turn_does_not_wait_for_the_pool() {
    for _ in 0..60 {
        let place = Place::with_limits(PoolLimits { round: Duration::MAX, ..limits() });
        place.run(&FLOCK, "say hi").await;
        place.close().await;
    }
}

#[tokio::test]
async fn two_names_for_one_program_share_no_process() {
    let place = Place::new();
    let first = place.run(&FLOCK, "pid").await;
    let second = place.run(&TWIN, "pid").await;
    assert_ne!(text(&first), text(&second));
    let again = place.go_on(&TWIN, &memo(&second), "pid").await;
    assert_eq!(text(&again), text(&second));
    place.close().await;
}
