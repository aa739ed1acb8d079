//! Connections: how many there are, what each may cost before a request is whole,
//! and how they end. Each is a task that is owned by the one that accepts them.
//!
//! An answer may take as long as it takes, for a stream of events is one. What
//! bounds it is that somebody reads it: the system gives a connection up if what
//! was sent is not taken for a while, and asks after silent ones.

use std::{io, net::SocketAddr, time::Duration};

use axum::{Router, extract::ConnectInfo};
use hyper::{
    Request,
    body::Incoming,
    server::conn::http1,
    service::{Service as _, service_fn},
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
    service::TowerToHyperService,
};
use rustix::net::sockopt;
use tokio::{
    net::{TcpListener, TcpStream},
    task::{JoinError, JoinSet},
    time,
};
use tokio_util::sync::CancellationToken;

/// How long to wait before accepting again when the system could not: no more
/// files can be open, perhaps.
const PAUSE: Duration = Duration::from_secs(1);
/// How long a connection is silent before the system asks whether it is alive,
/// how often it asks, and how many times.
const SILENCE: Duration = Duration::from_secs(60);
const ASK: Duration = Duration::from_secs(15);
const TIMES: u32 = 4;

/// What connections may cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// How many there are at once. Others wait to be accepted.
    pub(super) connections: usize,
    /// How long the head of a request may take to arrive, also the first.
    pub(super) head_within: Duration,
    /// How many headers it has.
    pub(super) headers: usize,
    /// How long it is, in bytes.
    pub(super) head: usize,
    /// How much of an answer is held for somebody who is slow to take it, in bytes:
    /// by this process, and by the system, which would take megabytes for each.
    pub(super) held: usize,
    pub(super) held_by_system: usize,
    /// How long what was sent may wait to be taken by the other side.
    pub(super) unread: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connections: 10_000,
            head_within: Duration::from_secs(10),
            headers: 64,
            head: 16 * 1024,
            held: 64 * 1024,
            held_by_system: 256 * 1024,
            unread: Duration::from_secs(120),
        }
    }
}

/// Answers calls until it is told to stop, and then those that are under way.
/// Dropping it drops them.
pub(super) async fn serve(
    listener: TcpListener,
    router: Router,
    bounds: Bounds,
    stop: CancellationToken,
) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(bounds.head_within)
        .max_headers(bounds.headers)
        .max_header_size(bounds.head)
        .max_buf_size(bounds.held);
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    loop {
        // All of them lose nothing when another one is first.
        tokio::select! {
            () = stop.cancelled() => break,
            Some(ended) = connections.join_next() => look_at(ended),
            (stream, peer) = accept(&listener), if connections.len() < bounds.connections => {
                prepare(&stream, bounds);
                let service = TowerToHyperService::new(router.clone());
                let service = service_fn(move |mut request: Request<Incoming>| {
                    request.extensions_mut().insert(ConnectInfo(peer));
                    service.call(request)
                });
                let connection = http.serve_connection(TokioIo::new(stream), service);
                connections.spawn(graceful.watch(connection));
            }
        }
    }
    drop(listener);
    tokio::join!(graceful.shutdown(), async {
        while let Some(ended) = connections.join_next().await {
            look_at(ended);
        }
    });
}

/// Accepts a connection, however long that takes.
async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            // The other side was gone before.
            Err(error) if is_of_one(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "no connection can be accepted for now");
                time::sleep(PAUSE).await;
            }
        }
    }
}

/// Whether an error is about one connection, so that the next can be accepted.
fn is_of_one(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// Tells the system how much to hold for a connection and when to give it up. Where
/// it cannot be told one of them, it is told the others all the same.
pub(super) fn prepare(stream: &TcpStream, bounds: Bounds) {
    let held = sockopt::set_socket_send_buffer_size(stream, bounds.held_by_system);
    for told in [
        stream.set_nodelay(true),
        held.map_err(io::Error::from),
        ask_after(stream).map_err(io::Error::from),
        give_up_unread(stream, bounds.unread),
    ] {
        if let Err(error) = told {
            tracing::debug!(%error, "a connection is used as it is");
        }
    }
}

/// Has the system ask after a connection that is silent.
fn ask_after(stream: &TcpStream) -> rustix::io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, SILENCE)?;
    sockopt::set_tcp_keepintvl(stream, ASK)?;
    sockopt::set_tcp_keepcnt(stream, TIMES)
}

#[cfg(target_os = "linux")]
fn give_up_unread(stream: &TcpStream, after: Duration) -> io::Result<()> {
    let millis = u32::try_from(after.as_millis()).unwrap_or(u32::MAX);
    Ok(sockopt::set_tcp_user_timeout(stream, millis)?)
}

/// Other systems only ask after silent connections.
#[cfg(not(target_os = "linux"))]
fn give_up_unread(_: &TcpStream, _: Duration) -> io::Result<()> {
    Ok(())
}

/// Tells of a connection that ended in a way that nobody foresaw.
fn look_at(ended: Result<Result<(), hyper::Error>, JoinError>) {
    match ended {
        Ok(Ok(())) => {}
        // It is the caller who left, was slow, or spoke something else.
        Ok(Err(error)) => tracing::debug!(%error, "a connection has ended"),
        Err(error) if error.is_panic() => tracing::error!("answering a request panicked"),
        Err(_) => {}
    }
}
