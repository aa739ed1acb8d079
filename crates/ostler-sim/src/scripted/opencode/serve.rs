//! Plays `opencode serve`: sessions over HTTP, and a stream of what happens in
//! them.
//!
//! The one place of the scripted agent where a runtime runs, in its only thread:
//! a server hears many callers at once. Ends by a signal, like the real one.

mod call;
mod event;
mod fault;
mod flat;
mod record;
mod routes;
mod shared;
mod stream;
mod turn;
mod voice;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::mpsc;

use self::shared::{Shared, Speech};
use super::super::agent::Props;
use super::super::given::Given;
use super::super::stage::{Stage, Stream};
use super::super::{End, Error};

pub(in crate::scripted) use self::fault::is_word;

/// Where the real one listens if that is free.
const USUAL_PORT: u16 = 4096;
/// How many turns may wait to begin.
const AHEAD: usize = 16;

/// Serves until the process is ended.
pub(super) fn serve(given: &Given, props: &Props, stage: &mut Stage<'_>) -> Result<End, Error> {
    let port = match given.value("--port").map(str::parse) {
        None => 0,
        Some(Ok(port)) => port,
        Some(Err(_)) => return Err(Error::Usage("--port needs a number".to_owned())),
    };
    let speech = match given.value(super::SPEECH) {
        None => Speech::Own,
        Some("flat") => Speech::Flat,
        Some(other) => {
            return Err(Error::Usage(format!("{} cannot be `{other}`", super::SPEECH)));
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(Error::io("no runtime"))?;
    runtime.block_on(async {
        let listener = listen(port).await?;
        let address = listener.local_addr().map_err(Error::io("no address"))?;
        let (begins, mut begun) = mpsc::channel(AHEAD);
        let shared = Arc::new(Shared::new(props, speech, begins)?);
        if shared.login.is_none() {
            let text = "Warning: OPENCODE_SERVER_PASSWORD is not set; server is unsecured.";
            stage.write_line(Stream::Stdout, text)?;
        }
        let line = format!("opencode server listening on http://{address}");
        stage.write_line(Stream::Stdout, &line)?;
        let app = axum::Router::new().fallback(routes::handle).with_state(shared);
        let serving = async { axum::serve(listener, app).await };
        tokio::pin!(serving);
        loop {
            tokio::select! {
                ended = &mut serving => {
                    ended.map_err(Error::io("the server ended"))?;
                    return Ok(End::Exit(0));
                }
                // Faults that concern the whole process, and its streams.
                Some(turn) = begun.recv() => {
                    let turn: shared::Begin = turn;
                    turn.faults.begin(stage)?;
                    // Whoever asked may be gone.
                    turn.done.send(()).ok();
                }
            }
        }
    })
}

async fn listen(port: u16) -> Result<TcpListener, Error> {
    let at = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    if port == 0
        && let Ok(listener) = TcpListener::bind(at(USUAL_PORT)).await
    {
        return Ok(listener);
    }
    let failed = Error::io(format!("ServeError: could not listen on port {port}"));
    TcpListener::bind(at(port)).await.map_err(failed)
}
