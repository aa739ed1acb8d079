//! The gateway's socket: how programs of the same user on this machine talk to
//! it, in JSON objects, one a line. docs/gateway-socket.md has the protocol.
//!
//! `message` is what can be said, `lines` reads it. `client` is one end; the
//! other is `listen` (the socket), `server` (who may connect) and `caller` (one
//! connection). What is asked is done by the gateway, not here.

mod caller;
pub(crate) mod client;
mod lines;
pub(crate) mod listen;
pub(crate) mod message;
pub(crate) mod server;
#[cfg(test)]
mod tests;

use std::{
    io,
    path::{Path, PathBuf},
};

use tokio::net::UnixStream;

/// The name of the socket in the data folder.
const FILE: &str = "daemon.sock";

/// How long the path of a socket may be, which is up to the system.
pub(crate) const LONGEST_PATH: usize = if cfg!(target_os = "linux") { 107 } else { 103 };

/// Returns where the gateway of a data folder listens.
pub(crate) fn path(data_dir: &Path) -> PathBuf {
    data_dir.join(FILE)
}

/// Returns the user who is at the other end, if that is somebody else.
fn stranger(stream: &UnixStream) -> io::Result<Option<u32>> {
    let theirs = stream.peer_cred()?.uid();
    Ok(Some(theirs).filter(|uid| *uid != rustix::process::geteuid().as_raw()))
}
