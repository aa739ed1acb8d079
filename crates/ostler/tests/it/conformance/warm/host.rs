//! Several sessions of an agent in one host, by the library.

use std::time::Duration;

use ostler_core::{
    CliAgent, EventBody, Host, Memo, PoolLimits, TurnReport, TurnRequest, registry::Agent as _,
};
use tokio::{runtime::Runtime, time::timeout};

use super::{for_every_warm_agent, until_all_gone};
use crate::{
    conformance::{Facts, rig::Rig},
    support::LIMIT,
};

for_every_warm_agent! {
    two_sessions_of_a_host_run_side_by_side
    a_spare_takes_a_session_that_was_left
    a_process_that_was_idle_too_long_goes_and_its_session_goes_on
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

async fn ask(
    agent: &CliAgent,
    request: &TurnRequest,
    memo: Option<&Memo>,
    prompt: &str,
) -> TurnReport {
    let request = TurnRequest { prompt: prompt.to_owned(), ..request.clone() };
    let request = match memo {
        Some(memo) => request.resume(memo.clone()),
        None => request,
    };
    let turn = agent.start(request).await.unwrap();
    let report = timeout(LIMIT, turn.end()).await.unwrap().unwrap();
    assert!(report.error.is_none(), "{prompt}: {:?}", report.error);
    report
}

fn shares(facts: &Facts) -> bool {
    let warm = ostler_core::agent::find(facts.agent).unwrap().warm.unwrap();
    warm.sessions_per_process > 1
}

async fn close(host: &Host) {
    assert!(host.shutdown(Duration::from_secs(30)).await, "not everything ended in time");
}

fn two_sessions_of_a_host_run_side_by_side(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let (agent, host, request) = rig.library(PoolLimits::default());
    runtime().block_on(async {
        let prompt = |text: &str| TurnRequest { prompt: text.to_owned(), ..request.clone() };
        let mut slow = agent.start(prompt("sim:slow=60000")).await.unwrap();
        let begun = async {
            while let Some(event) = slow.next().await {
                if matches!(event.body, EventBody::Output { .. }) {
                    return;
                }
            }
            panic!("the slow turn ended");
        };
        timeout(LIMIT, begun).await.unwrap();
        let quick = ask(&agent, &request, None, "My name is Ada.").await;
        let memo = quick.memo.unwrap();
        let again = ask(&agent, &request, Some(&memo), "sim:history").await;
        let text = again.response_text.unwrap();
        assert!(text.starts_with("I remember 2 prompts; the first was: My name is Ada."), "{text}");
        let n_processes = if shares(facts) { 1 } else { 2 };
        assert_eq!(host.pool_stats().await.started, n_processes);
        slow.cancel();
        let slow = timeout(LIMIT, slow.end()).await.unwrap().unwrap();
        assert_eq!(slow.error.unwrap().kind.code(), "cancelled");
        assert_ne!(slow.session_id.as_ref(), Some(&memo.id));
        close(&host).await;
    });
    until_all_gone(&rig);
}

fn a_spare_takes_a_session_that_was_left(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let (agent, host, request) = rig.library(PoolLimits::default());
    let runtime = runtime();
    let left = runtime.block_on(async {
        let first = ask(&agent, &request, None, "My name is Ada.").await;
        close(&host).await;
        first.memo.unwrap()
    });
    let (agent, host, request) = rig.library(PoolLimits { spares: 1, ..PoolLimits::default() });
    runtime.block_on(async {
        ask(&agent, &request, None, "Somebody else.").await;
        let before = host.pool_stats().await;
        let report = ask(&agent, &request, Some(&left), "sim:history").await;
        let text = report.response_text.unwrap();
        assert!(text.starts_with("I remember 2 prompts; the first was: My name is Ada."), "{text}");
        assert_eq!(report.session_id.as_ref(), Some(&left.id));
        let warm = ostler_core::agent::find(facts.agent).unwrap().warm.unwrap();
        let reused = host.pool_stats().await.reused - before.reused;
        assert_eq!(reused == 1, (warm.adopts)(&left), "{reused} reused");
        close(&host).await;
    });
    until_all_gone(&rig);
}

fn a_process_that_was_idle_too_long_goes_and_its_session_goes_on(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let limits = PoolLimits { idle: Duration::ZERO, ..PoolLimits::default() };
    let (agent, host, request) = rig.library(limits);
    runtime().block_on(async {
        let first = ask(&agent, &request, None, "My name is Ada.").await;
        until_all_gone(&rig);
        let again = ask(&agent, &request, first.memo.as_ref(), "sim:history").await;
        let text = again.response_text.unwrap();
        assert!(text.starts_with("I remember 2 prompts; the first was: My name is Ada."), "{text}");
        close(&host).await;
    });
    until_all_gone(&rig);
}
