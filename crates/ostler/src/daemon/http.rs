//! The HTTP side of a gateway: where it may listen, and the server. What it
//! answers is in `api`.

mod server;

use std::{io, net::SocketAddr, time::Duration};

use axum::Router;
use thiserror::Error;
use tokio::net::TcpListener;

use self::server::Bounds;
use crate::background::Background;

/// Why a gateway cannot listen.
#[derive(Debug, Error)]
pub(crate) enum ListenError {
    /// Others could reach it, and nobody could show that he may.
    #[error(
        "{0} can be reached from other machines, and there is no key yet to tell callers by; make \
         one with `ostler keys create --name admin --scope admin`, or listen on 127.0.0.1 or \
         [::1] (gateway.listen, OSTLER_LISTEN or --listen)"
    )]
    Public(SocketAddr),
    #[error("could not listen on {address}; {}", advice(source))]
    Refused {
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
}

impl ListenError {
    /// Returns whether somebody else listens there.
    pub(super) fn is_taken(&self) -> bool {
        matches!(self, Self::Refused { source, .. } if source.kind() == io::ErrorKind::AddrInUse)
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the list of them is the system's, and open")]
fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            "another program does; stop it, or choose another port with gateway.listen, \
             OSTLER_LISTEN or --listen"
        }
        io::ErrorKind::AddrNotAvailable => {
            "this machine has no such address; choose another with gateway.listen, \
             OSTLER_LISTEN or --listen"
        }
        io::ErrorKind::PermissionDenied => {
            "this user may not; choose a port above 1023 with gateway.listen, OSTLER_LISTEN \
             or --listen"
        }
        _ => "choose another address with gateway.listen, OSTLER_LISTEN or --listen",
    }
}

/// Whether there is a key that can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keys {
    Some,
    None,
}

/// Decides whether an address may be listened on: only this machine's own, as
/// long as there are no keys to tell who asks.
pub(crate) fn may_listen(address: SocketAddr, keys: Keys) -> Result<(), ListenError> {
    let is_own = address.ip().to_canonical().is_loopback();
    if is_own || keys == Keys::Some { Ok(()) } else { Err(ListenError::Public(address)) }
}

/// Listens on an address.
pub(crate) async fn bind(address: SocketAddr, keys: Keys) -> Result<TcpListener, ListenError> {
    may_listen(address, keys)?;
    TcpListener::bind(address).await.map_err(|source| ListenError::Refused { address, source })
}

/// A server that runs.
#[derive(Debug)]
pub(crate) struct Http(Background);

impl Http {
    /// Answers calls.
    pub(crate) fn start(listener: TcpListener, router: Router) -> Self {
        Self::start_within(listener, router, Bounds::default())
    }

    fn start_within(listener: TcpListener, router: Router, bounds: Bounds) -> Self {
        Self(Background::start(|stop| server::serve(listener, router, bounds, stop)))
    }

    /// Takes no more calls, and returns when those under way are answered. Those
    /// that are not after this long end with the process.
    pub(crate) async fn stop(self, limit: Duration) {
        self.0.stop(limit).await;
    }
}

#[cfg(test)]
mod tests;
