//! The gateway's end of the socket: who may connect, and how many. What is said
//! on a connection is dealt with in `caller`.

use std::{sync::Arc, time::Duration};

use tokio::{
    net::{UnixListener, UnixStream},
    sync::Semaphore,
    time,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    caller::Caller,
    listen::Listening,
    message::{Refused, Reply},
    stranger,
};
use crate::gateway::Gateway;

/// How many may be connected at once.
const MAX_CONNECTIONS: usize = 256;
/// The wait after a connection could not be taken.
const PAUSE: Duration = Duration::from_millis(100);

/// The gateway's end of the socket.
#[derive(Debug)]
pub(crate) struct Server {
    tasks: TaskTracker,
    /// No more connections are taken.
    closing: CancellationToken,
    /// Those there are come to their end.
    stopping: CancellationToken,
    /// They are cut.
    cut: CancellationToken,
}

impl Server {
    /// Begins to take connections.
    pub(crate) fn start(listening: Listening, gateway: Gateway) -> Self {
        let server = Self {
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
            stopping: CancellationToken::new(),
            cut: CancellationToken::new(),
        };
        let door = Door {
            gateway,
            tasks: server.tasks.clone(),
            stopping: server.stopping.clone(),
            cut: server.cut.clone(),
            places: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
        };
        let closing = server.closing.clone();
        server.tasks.spawn(async move {
            closing.run_until_cancelled(door.take_all(&listening.listener)).await;
        });
        server
    }

    /// Takes no more connections. Those there are go on: whoever follows a turn
    /// is told how it ends.
    pub(crate) fn close(&self) {
        self.closing.cancel();
    }

    /// Tells whoever follows what is stored, and ends all connections; those
    /// that are not read from are cut when the time is up.
    pub(crate) async fn stop(self, limit: Duration) {
        self.closing.cancel();
        self.stopping.cancel();
        self.tasks.close();
        if time::timeout(limit, self.tasks.wait()).await.is_err() {
            self.cut.cancel();
            self.tasks.wait().await;
        }
    }
}

/// Lets people in.
struct Door {
    gateway: Gateway,
    tasks: TaskTracker,
    stopping: CancellationToken,
    cut: CancellationToken,
    places: Arc<Semaphore>,
}

impl Door {
    async fn take_all(&self, listener: &UnixListener) {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => self.take(stream),
                Err(error) => {
                    tracing::warn!(%error, "a connection to the socket could not be taken");
                    time::sleep(PAUSE).await;
                }
            }
        }
    }

    fn take(&self, stream: UnixStream) {
        match stranger(&stream) {
            Ok(None) => {}
            Ok(Some(uid)) => {
                tracing::warn!(uid, "another user tried to connect to the socket");
                return turn_away(&stream, "forbidden", "the gateway is another user's");
            }
            Err(error) => {
                tracing::debug!(%error, "somebody connected to the socket who cannot be known");
                return;
            }
        }
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            let why = format!("{MAX_CONNECTIONS} connections are open, which is the limit");
            return turn_away(&stream, "too_many_connections", &why);
        };
        let caller = Caller::new(stream, self.gateway.clone(), self.stopping.clone());
        let cut = self.cut.clone();
        self.tasks.spawn(async move {
            cut.run_until_cancelled(caller.talk()).await;
            drop(place);
        });
    }
}

/// Says why there is no connection. A new one has room for that, or nobody listens.
fn turn_away(stream: &UnixStream, code: &str, message: &str) {
    let refused = Refused { code: code.to_owned(), message: message.to_owned() };
    let line = serde_json::to_string(&Reply::Refused(refused)).unwrap_or_default();
    stream.try_write(format!("{line}\n").as_bytes()).ok();
}
