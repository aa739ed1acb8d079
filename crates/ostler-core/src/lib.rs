//! Coding-agent CLIs behind one interface.
//!
//! ```no_run
//! use ostler_core::{
//!     CliAgent, EventBody, Host, HostConfig, TurnRequest, agent, registry::Agent as _,
//! };
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let host = Host::new(HostConfig::from_process());
//! let claude = CliAgent::new(agent::resolve_backend(None)?, host);
//!
//! let mut turn = claude.start(TurnRequest::new("What does this project do?", ".")).await?;
//! while let Some(event) = turn.next().await {
//!     match event.body {
//!         EventBody::Output { text, .. } => print!("{text}"),
//!         EventBody::ToolUse { tool, title, .. } => println!("[{tool}: {title}]"),
//!         EventBody::Complete(report) => {
//!             println!("\n{:?}, {:?} tokens", report.session_id, report.usage.total_tokens);
//!         }
//!         _ => {}
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Theory of operation
//!
//! An *agent* is a program of somebody else's that answers prompts with the
//! help of tools. All that differs between agents is in one record of facts
//! each, [`agent::AgentSpec`]: how to make its command line, how to stop it,
//! and a *dialect*, a state machine that turns what the process prints into
//! events. Specs and dialects do no I/O, so they are tested with recorded
//! output alone.
//!
//! A *turn* is one prompt and its answer. [`cli_agent::CliAgent`] checks the
//! request, finds the program, waits until nobody else uses the session, and
//! starts the process under a *keeper* that ends its whole tree with it. The
//! *driver* then feeds the dialect and carries out what it says, with an eye on
//! the clock and on the caller. A turn ends exactly once, with `complete`,
//! whatever happens; the *verdict* is made from the agent's last word, the exit
//! of its process and the driver's own reason.
//!
//! A *session* is the agent's own memory of a conversation. Its id and what
//! must be known to go on with it come back as a [`memo::Memo`].
//!
//! The modules are listed in reading order.
#![warn(missing_docs)]

pub mod event;
pub mod failure;
pub mod permission;
pub mod request;

pub mod agent;
mod identity;
pub mod memo;
mod protocol;
pub mod template;

pub mod binary;
pub mod environment;
pub mod lines;
pub mod proc;
pub mod run_dir;
pub mod version;

pub mod cli_agent;
mod driver;
pub mod handshake;
pub mod host;
mod lock;
mod one_shot;
mod outbox;
mod prepared;
pub mod registry;
mod running;
mod transcript;
pub mod turn;
mod verdict;
mod warm;

pub use cli_agent::CliAgent;
pub use event::{Event, EventBody, TurnReport};
pub use host::{Host, HostConfig};
pub use memo::Memo;
pub use request::TurnRequest;
pub use turn::Turn;
pub use warm::pool::{PoolLimits, PoolStats};
