//! Trees of processes where there is no keeper: Unix systems other than Linux.
//!
//! Best effort: the leader gets a session of its own, and the end of the tree
//! is the end of its process group. A tool that leaves the group outlives it,
//! and so does the tree when Ostler itself is killed.
#![expect(
    unsafe_code,
    reason = "signals to process groups and code between fork and exec have no safe interface"
)]

use std::io;

use libc::{c_int, pid_t};
use tokio::process::{Child, Command};

use super::image::{self, Image};

/// A process group. Dropping it ends it.
pub(super) struct Tree {
    leader: pid_t,
}

/// Starts `image` in a process group of its own. The child's process is its leader.
pub(super) fn spawn(mut command: Command, image: Image) -> io::Result<(Child, Tree)> {
    // SAFETY: everything in here is async-signal-safe, and the closure owns
    // what it uses, made before the fork.
    unsafe {
        command.pre_exec(move || {
            libc::setsid();
            image::reset_signal_effects();
            Err(image.execute())
        });
    }
    let child = command.spawn()?;
    // Without an id, no signal is ever sent: 0 would mean our own group.
    let leader = child.id().and_then(|id| pid_t::try_from(id).ok());
    let leader = leader.unwrap_or(pid_t::MAX);
    Ok((child, Tree { leader }))
}

impl Tree {
    /// Sends a signal to the leader.
    pub(super) fn signal(&self, number: c_int) {
        // SAFETY: `kill` has no preconditions.
        unsafe {
            libc::kill(self.leader, number);
        }
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        // SAFETY: `kill` has no preconditions. The group's id stays taken for
        // as long as it has members.
        unsafe {
            libc::kill(self.leader.wrapping_neg(), libc::SIGKILL);
        }
    }
}
