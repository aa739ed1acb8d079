//! What hooks do when the gateway starts and stops.

use std::{future, time::Duration};

use tokio::time::{self, Instant};
use tokio_util::sync::CancellationToken;

use super::StartError;
use crate::{
    clock::Millis,
    config::{HookAction, HookEvent, OnFailure},
    gateway::{Gateway, follow::Followed, policy::Policy},
    hooks::{happening::Happening, runner::Runner},
    id::JobId,
};

/// How long the store may take to hear that a job is not wanted any more.
const CANCELLING: Duration = Duration::from_secs(2);

/// Runs the programs and calls the URLs of the start, before any work is begun.
/// Returns what happened, for those that come when the gateway is ready.
pub(super) async fn before_start(policy: &Policy) -> Result<Happening, StartError> {
    let happening = Happening::of_gateway(HookEvent::Start, Millis::now());
    let runner = Runner::new();
    for hook in policy.hooks.due(&happening) {
        if matches!(hook.action, HookAction::Instruction(_)) {
            continue;
        }
        let run = runner.run(&policy.hooks, hook, &happening).await;
        if let (Err(error), OnFailure::Fail) = (run, hook.on_failure) {
            let (hook, why) = (hook.name.clone(), error.to_string());
            return Err(StartError::Hook { hook, why });
        }
    }
    Ok(happening)
}

/// Gives the instructions of the start.
pub(super) async fn after_start(gateway: &Gateway, happening: &Happening) {
    for hook in gateway.policy().hooks.due(happening) {
        if let HookAction::Instruction(text) = &hook.action {
            gateway.instruct(hook, text, happening).await;
        }
    }
}

/// Does what is to be done before the gateway stops, in order, and waits for
/// it. At the deadline what is left is given up.
pub(super) async fn before_stop(gateway: &Gateway, deadline: Instant) {
    let over = CancellationToken::new();
    let grace = async {
        time::sleep_until(deadline).await;
        over.cancel();
        future::pending().await
    };
    tokio::select! {
        () = run_all(gateway, &over) => {}
        () = grace => {}
    }
}

/// Does it until the time is over.
async fn run_all(gateway: &Gateway, over: &CancellationToken) {
    let happening = Happening::of_gateway(HookEvent::Stop, Millis::now());
    let (policy, runner) = (gateway.policy(), Runner::new());
    for hook in policy.hooks.due(&happening) {
        let name = hook.name.as_str();
        let is_done = match &hook.action {
            _ if over.is_cancelled() => false,
            HookAction::Instruction(text) => {
                let follow = async {
                    match gateway.instruct(hook, text, &happening).await {
                        Some(job) => follow(gateway, job, over).await,
                        None => true,
                    }
                };
                let late = async {
                    over.cancelled().await;
                    time::sleep(CANCELLING).await;
                };
                tokio::select! {
                    is_done = follow => is_done,
                    // The store may be away.
                    () = late => false,
                }
            }
            HookAction::Command(_) | HookAction::Url(_) => {
                let run = runner.run(&policy.hooks, hook, &happening);
                over.run_until_cancelled(run).await.is_some()
            }
        };
        if !is_done {
            tracing::warn!(hook = name, "a hook did not end before the gateway had to stop");
        }
    }
}

/// Follows a job to its end; returns whether it came to that. One that did not is
/// cancelled: the next gateway must not begin with what was to be done at the
/// end of this one.
async fn follow(gateway: &Gateway, job: JobId, over: &CancellationToken) -> bool {
    let mut follower = gateway.follow(job);
    loop {
        match over.run_until_cancelled(follower.next()).await {
            Some(Ok(Followed::Events(_))) => {}
            Some(Ok(Followed::Ended(_) | Followed::Unknown)) => return true,
            Some(Err(error)) => {
                tracing::warn!(%error, "what came of an instruction cannot be seen");
                break;
            }
            None => break,
        }
    }
    if let Err(error) = gateway.cancel_job(job).await {
        tracing::warn!(%error, %job, "an instruction cannot be taken back");
    }
    false
}

#[cfg(test)]
mod tests;
