//! `ostler serve`: runs the gateway until it is told to stop.

use std::{
    io, net::SocketAddr, os::unix::process::CommandExt as _, path::PathBuf, process::Command,
};

use clap::Args;
use ostler_core::failure::chain;
use serde_json::json;

use super::{Exit, signals::Signals};
use crate::{
    config::{Flag, Loader, Problems},
    daemon::{Daemon, Parts, Then},
};

#[derive(Args, Debug)]
pub(crate) struct ServeArgs {
    /// Where to listen for HTTP [default: $OSTLER_LISTEN, else gateway.listen, else 127.0.0.1:8474]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
}

/// Runs the gateway.
pub(crate) async fn run(args: ServeArgs, mut loader: Loader) -> Result<Exit, Problems> {
    if let Some(listen) = args.listen {
        let value = json!(listen.to_string());
        loader.flags.push(Flag { name: "--listen", key: "gateway.listen", value });
    }
    // Looked up now: a newer one may lie in its place later.
    let program = std::env::current_exe();
    let parts = Parts::read(loader).await?;
    let mut signals = match Signals::listen() {
        Ok(signals) => signals,
        Err(error) => {
            tracing::error!(%error, "cannot listen for signals");
            return Ok(Exit::Failed);
        }
    };
    let started = tokio::select! {
        started = Box::pin(Daemon::start(parts)) => started,
        // A hook may take long.
        _ = signals.next() => {
            tracing::warn!("stopped before it was ready");
            return Ok(Exit::Cancelled);
        }
    };
    let daemon = match started {
        Ok(daemon) => daemon,
        Err(error) => {
            tracing::error!("the gateway did not start: {}", chain(&error));
            return Ok(Exit::Failed);
        }
    };
    let then = tokio::select! {
        _ = signals.next() => Then::End,
        () = daemon.restart_asked() => Then::StartAgain,
    };
    tracing::info!("stopping; a second signal stops at once");
    tokio::select! {
        () = daemon.stop(then) => {
            tracing::info!("stopped");
            Ok(match then {
                Then::End => Exit::Answered,
                Then::StartAgain => start_again(program),
            })
        }
        _ = signals.next() => {
            tracing::warn!("stopped at once; what ran is resumed by the next gateway");
            Ok(Exit::Cancelled)
        }
    }
}

/// Becomes the program that lies where this one was started from, with the same
/// arguments; returns only if that does not work.
#[expect(clippy::disallowed_methods, reason = "it starts no process but becomes one")]
fn start_again(program: io::Result<PathBuf>) -> Exit {
    let error = match program {
        Ok(program) => Command::new(program).args(std::env::args_os().skip(1)).exec(),
        Err(error) => error,
    };
    tracing::error!(%error, "the gateway could not be started again");
    Exit::Failed
}
