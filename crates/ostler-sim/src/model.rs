//! A simulated model on loopback that real CLIs talk to.
//!
//! A word in the prompt (`sim:tool`, `sim:429=5`) chooses what it does; the
//! table [`BEHAVIOURS`] lists them all. It costs nothing, answers the same every
//! time and records what it was sent, so tests can assert on both sides of a
//! CLI.
//!
//! A request passes through five stages, each a file: a wire reads it into a
//! neutral conversation, the newest prompt chooses a behaviour, the behaviour
//! plans a neutral reply, the wire renders that, and the pace sends it. A new
//! API is one more file under `wire`; a new behaviour is one more row.

mod behaviour;
mod choice;
mod conversation;
mod log;
mod pace;
mod reply;
mod schema;
mod server;
mod settings;
mod tool;
mod wire;
mod word;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use behaviour::{BEHAVIOURS, Behaviour, HELLO, ONCE, echo, find, huge};
pub use log::Recorded;
pub use reply::{Charge, Usage};
pub use settings::{KEY, Settings, agents, settings};
pub use wire::{ANTHROPIC_USAGE, CHAT_USAGE, GEMINI_USAGE, RESPONSES_USAGE};

use choice::Seen;
use log::Log;
use server::Shared;

/// How a simulated model is started.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where it listens; loopback only. Port 0 takes a free one.
    pub address: SocketAddr,
    /// The word, with an argument if it takes one, for prompts without a word.
    pub fallback: String,
}

impl Default for Options {
    fn default() -> Self {
        Self { address: (Ipv4Addr::LOCALHOST, 0).into(), fallback: "text".to_owned() }
    }
}

/// A running simulated model. Dropping it stops it without waiting.
#[derive(Debug)]
pub struct Sim {
    address: SocketAddr,
    shared: Arc<Shared>,
    server: AbortHandle,
}

impl Sim {
    /// Starts listening.
    ///
    /// Fails when the address is not loopback, because the simulated model lets
    /// everybody in, or when it is taken. Needs a tokio runtime.
    pub async fn start(options: Options) -> io::Result<Self> {
        if !options.address.ip().is_loopback() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("the simulated model listens on loopback only, not on {}", options.address),
            ));
        }
        let listener = TcpListener::bind(options.address).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            log: Log::default(),
            fallback: options.fallback,
            started: Instant::now(),
            n_requests: AtomicU64::new(0),
            seen: Mutex::new(Seen::default()),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        });
        let serve = axum::serve(listener, server::router(Arc::clone(&shared)))
            .with_graceful_shutdown(shared.stop.clone().cancelled_owned());
        // The server gives up single connections by itself and never ends with
        // an error of its own.
        let server = shared.tasks.spawn(async move { serve.await.ok() }).abort_handle();
        Ok(Self { address, shared, server })
    }

    /// Returns the address it listens on.
    pub fn addr(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address as a URL without a path.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the newest requests, oldest first: at most 1000, and at most
    /// 64 MiB of bodies.
    pub fn requests(&self) -> Vec<Arc<Recorded>> {
        self.shared.log.since(0)
    }

    /// Stops: ends all answers that are under way, waits for open connections,
    /// at most five seconds.
    pub async fn stop(self) {
        self.shared.stop.cancel();
        self.shared.tasks.close();
        if tokio::time::timeout(STOP_LIMIT, self.shared.tasks.wait()).await.is_err() {
            self.server.abort();
        }
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        self.shared.stop.cancel();
    }
}

const STOP_LIMIT: Duration = Duration::from_secs(5);
