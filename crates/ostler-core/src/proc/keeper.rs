//! The keeper: a small process between Ostler and one agent, on Linux.
//!
//! The child that the runtime forks does not become the agent. It forks once
//! more; the second child becomes the agent, the *leader* of the tree, and the
//! first one stays as its keeper. The keeper is the subreaper of the tree:
//! whoever loses their parent becomes the keeper's child, in whatever session
//! or group they are. It waits for one of three things — the leader's end, the
//! end of its control socket (which the kernel also closes when Ostler is
//! killed), or a signal that ends — then kills its children until none is left
//! and ends the way the leader did. So waiting for the keeper means waiting for
//! the whole tree.
//!
//! The keeper is a fork of a process with several threads and never executes
//! another program. Whatever it does must be async-signal-safe: no allocation,
//! no locks, no standard I/O, no panics.
#![expect(
    unsafe_code,
    reason = "after a fork only system calls may be used, not the standard library"
)]

use std::{
    io::{self, Write},
    mem::MaybeUninit,
    net::Shutdown,
    os::{
        fd::{AsRawFd, RawFd},
        unix::net::UnixStream,
    },
    ptr,
};

use libc::{c_int, c_ulong, pid_t};
use tokio::process::{Child, Command};

use super::{
    descendants,
    image::{self, Image},
};

/// How long the keeper tries. A process in an uninterruptible sleep, or one
/// that became another user, must not keep the keeper forever.
const KILL_LIMIT_MS: i64 = 5000;
/// How long the leader's group may take to die before `/proc` is searched.
const FIRST_PAUSE_MS: i64 = 5;
/// The longest pause between two searches.
const LONGEST_PAUSE_MS: i64 = 320;

/// An argument that a system call does not look at. Arguments of variable
/// lists have the width of a register, always.
const NONE: c_ulong = 0;

/// The control socket of a keeper. Dropping it ends the tree.
pub(super) struct Tree {
    control: UnixStream,
}

/// Starts `image` under a keeper. The child's process is the keeper.
pub(super) fn spawn(mut command: Command, image: Image) -> io::Result<(Child, Tree)> {
    let (control, far_end) = UnixStream::pair()?;
    control.set_nonblocking(true)?;
    // SAFETY: `split` and `execute` are async-signal-safe. The closure owns
    // what they use, made before the fork.
    unsafe {
        command.pre_exec(move || {
            split(far_end.as_raw_fd())?;
            Err(image.execute())
        });
    }
    Ok((command.spawn()?, Tree { control }))
}

impl Tree {
    /// Sends a signal to the leader.
    pub(super) fn signal(&self, number: c_int) {
        if let Ok(byte) = u8::try_from(number) {
            // A keeper that is gone has no leader, and one whose socket is full
            // has more signals than anybody needs.
            (&self.control).write_all(&[byte]).ok();
        }
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        // Closing alone would wait for a child of another thread that has been
        // forked but does not execute yet: it holds a copy.
        self.control.shutdown(Shutdown::Both).ok();
    }
}

/// Forks the forked child again; returns in the leader only.
fn split(control: RawFd) -> io::Result<()> {
    let signals = signal_set(Signals::All);
    // SAFETY: plain system calls on values of our own. The raw call to clone is
    // a fork without the handlers that libraries register with `fork`, which
    // are not async-signal-safe.
    let (keeper, leader) = unsafe {
        libc::setsid();
        if libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1 as c_ulong, NONE, NONE, NONE) < 0 {
            return Err(io::Error::last_os_error());
        }
        // The host's handlers must run neither in the keeper nor in the leader.
        libc::sigprocmask(libc::SIG_SETMASK, &raw const signals, ptr::null_mut());
        image::reset_signal_effects();
        (libc::getpid(), fork())
    };
    match leader {
        ..0 => Err(io::Error::last_os_error()),
        0 => {
            become_leader(keeper);
            Ok(())
        }
        1.. => keep(control, leader),
    }
}

/// # Safety
/// The child may use async-signal-safe functions only.
unsafe fn fork() -> pid_t {
    let end_signal = libc::SIGCHLD as c_ulong;
    // SAFETY: without a stack of its own and without shared memory, this is a
    // fork. s390x takes the first two arguments the other way round.
    let pid = unsafe {
        if cfg!(target_arch = "s390x") {
            libc::syscall(libc::SYS_clone, NONE, end_signal, NONE, NONE, NONE)
        } else {
            libc::syscall(libc::SYS_clone, end_signal, NONE, NONE, NONE, NONE)
        }
    };
    pid_t::try_from(pid).unwrap_or(-1)
}

fn become_leader(keeper: pid_t) {
    let no_signals = signal_set(Signals::None);
    // SAFETY: plain system calls on values of our own. The parent-death signal
    // is bound to the thread that forked, and the keeper has only one.
    unsafe {
        libc::setpgid(0, 0);
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as c_ulong, NONE, NONE, NONE);
        if libc::getppid() != keeper {
            libc::_exit(1);
        }
        // The host opens its descriptors so that executing closes them, but
        // those it was given by whoever started it would be passed on. Kernels
        // before 5.11 refuse this, and there they are.
        libc::syscall(
            libc::SYS_close_range,
            3 as c_ulong,
            c_int::MAX as c_ulong,
            libc::CLOSE_RANGE_CLOEXEC as c_ulong,
        );
        libc::sigprocmask(libc::SIG_SETMASK, &raw const no_signals, ptr::null_mut());
    }
}

/// The life of the keeper.
fn keep(control: RawFd, leader: pid_t) -> ! {
    let signals = signal_set(Signals::All);
    // SAFETY: plain system calls on values of our own. All descriptors but the
    // control socket belong to the host's copy in this process, which no code
    // of the host will ever use: this function does not return.
    let signal_fd = unsafe {
        libc::setpgid(leader, leader);
        // Held open, these would keep spawn waiting, the agent's pipes open and
        // the control sockets of other keepers alive.
        if libc::dup2(control, 0) < 0 {
            end_like(None, leader);
        }
        close_from(1);
        libc::chdir(c"/".as_ptr());
        libc::prctl(libc::PR_SET_NAME, c"ostler-keeper".as_ptr(), NONE, NONE, NONE);
        // The host's memory is in here: no core dumps, no debuggers.
        libc::prctl(libc::PR_SET_DUMPABLE, NONE, NONE, NONE, NONE);
        libc::signalfd(-1, &raw const signals, libc::SFD_NONBLOCK)
    };
    if signal_fd >= 0 {
        watch(0, signal_fd, leader);
    }
    let status = end_tree(signal_fd, leader);
    end_like(status, leader)
}

/// Returns when the tree has to end.
fn watch(control: RawFd, signal_fd: RawFd, leader: pid_t) {
    loop {
        let mut waits = [poll_in(control), poll_in(signal_fd)];
        // SAFETY: the list is ours and as long as we say.
        unsafe {
            libc::poll(waits.as_mut_ptr(), 2, -1);
        }
        if pass_signals(control, leader) || is_asked_to_end(signal_fd) || has_ended(leader) {
            return;
        }
    }
}

/// Passes signals from the socket to the leader; returns whether it was closed.
fn pass_signals(control: RawFd, leader: pid_t) -> bool {
    loop {
        let mut signal = 0_u8;
        // SAFETY: the byte is ours. The leader's id stays taken until it is
        // waited for, which happens only after this.
        let n_read =
            unsafe { libc::recv(control, (&raw mut signal).cast(), 1, libc::MSG_DONTWAIT) };
        match n_read {
            // SAFETY: see above.
            1.. => unsafe {
                libc::kill(leader, c_int::from(signal));
            },
            0 => return true,
            ..0 => match errno() {
                libc::EAGAIN => return false,
                libc::EINTR => {}
                _ => return true,
            },
        }
    }
}

/// Takes all signals that wait; returns whether one of them means the end.
fn is_asked_to_end(signal_fd: RawFd) -> bool {
    let mut asked = false;
    let mut info = MaybeUninit::<libc::signalfd_siginfo>::zeroed();
    loop {
        // SAFETY: the record is ours and as long as we say; any bytes in it,
        // zeros included, are a valid one.
        let (n_read, signal) = unsafe {
            let size = size_of::<libc::signalfd_siginfo>();
            let n_read = libc::read(signal_fd, info.as_mut_ptr().cast(), size);
            (n_read, info.assume_init_ref().ssi_signo)
        };
        match n_read {
            1.. => {
                let ends = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT];
                asked |= ends.iter().any(|end| u32::try_from(*end) == Ok(signal));
            }
            ..0 if errno() == libc::EINTR => {}
            ..=0 => return asked,
        }
    }
}

/// Buries orphans; returns whether the leader is dead, which it leaves unburied.
fn has_ended(leader: pid_t) -> bool {
    loop {
        let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
        let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT | libc::__WALL;
        // SAFETY: `info` is ours and writable, and zeros are a valid one.
        let dead = unsafe {
            let failed = libc::waitid(libc::P_ALL, 0, info.as_mut_ptr(), options) != 0;
            if failed { -1 } else { info.assume_init_ref().si_pid() }
        };
        match dead {
            0 => return false,
            _ if dead == leader => return true,
            // SAFETY: a null pointer says that the status is not wanted.
            1.. => unsafe {
                libc::waitpid(dead, ptr::null_mut(), libc::WNOHANG | libc::__WALL);
            },
            ..0 if errno() == libc::EINTR => {}
            ..0 => return true,
        }
    }
}

/// Kills children until there are none; returns how the leader ended.
fn end_tree(signal_fd: RawFd, leader: pid_t) -> Option<c_int> {
    let mut burial = Burial { leader, status: None, n_buried: 0 };
    descendants::kill_child(leader);
    let limit = now_ms().saturating_add(KILL_LIMIT_MS);
    // Most trees are the leader and its group: usually nobody is left to search.
    let mut n_expected = usize::MAX;
    let mut pause = FIRST_PAUSE_MS;
    while !burial.wait(signal_fd, n_expected, pause) && now_ms() < limit {
        n_expected = burial.n_buried.saturating_add(descendants::kill_children());
        pause = pause.saturating_mul(2).min(LONGEST_PAUSE_MS);
    }
    burial.status
}

struct Burial {
    leader: pid_t,
    status: Option<c_int>,
    n_buried: usize,
}

impl Burial {
    /// Waits until `n_expected` are buried or the pause is over; returns whether
    /// no child is left.
    fn wait(&mut self, signal_fd: RawFd, n_expected: usize, pause_ms: i64) -> bool {
        let until = now_ms().saturating_add(pause_ms);
        loop {
            if self.bury() {
                return true;
            }
            let left = until.saturating_sub(now_ms());
            if self.n_buried >= n_expected || left <= 0 {
                return false;
            }
            let mut waits = [poll_in(signal_fd)];
            // SAFETY: the list is ours and as long as we say. Without a signal
            // descriptor this is a plain pause.
            unsafe {
                libc::poll(waits.as_mut_ptr(), 1, c_int::try_from(left).unwrap_or(1));
            }
            is_asked_to_end(signal_fd);
        }
    }

    /// Waits for all who are dead; returns whether no child is left.
    fn bury(&mut self) -> bool {
        loop {
            let mut status = 0;
            // SAFETY: the status is ours and writable.
            let dead = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG | libc::__WALL) };
            match dead {
                0 => return false,
                1.. => {
                    self.n_buried = self.n_buried.saturating_add(1);
                    if dead == self.leader {
                        self.status = Some(status);
                    }
                }
                ..0 if errno() == libc::EINTR => {}
                ..0 => return true,
            }
        }
    }
}

/// Ends the keeper the way the leader ended.
fn end_like(status: Option<c_int>, leader: pid_t) -> ! {
    let status = status.unwrap_or_else(|| {
        descendants::kill_child(leader);
        libc::SIGKILL
    });
    if libc::WIFEXITED(status) {
        // SAFETY: ending has no preconditions.
        unsafe { libc::_exit(libc::WEXITSTATUS(status)) }
    }
    let signal = libc::WTERMSIG(status);
    let only_this = signal_set(Signals::Only(signal));
    // SAFETY: plain system calls on values of our own. All signals have their
    // default effect, so the one that ended the leader ends this process.
    unsafe {
        libc::kill(libc::getpid(), signal);
        libc::sigprocmask(libc::SIG_UNBLOCK, &raw const only_this, ptr::null_mut());
        libc::_exit(signal.saturating_add(128));
    }
}

/// Closes all descriptors from `first` on.
///
/// # Safety
/// Nobody in this process may use them any more.
unsafe fn close_from(first: RawFd) {
    // SAFETY: the caller vouches for the descriptors; the limit is ours to write.
    unsafe {
        if libc::syscall(libc::SYS_close_range, first as c_ulong, c_int::MAX as c_ulong, NONE) == 0
        {
            return;
        }
        // Kernels before 5.9.
        let mut limit = MaybeUninit::<libc::rlimit>::zeroed();
        libc::getrlimit(libc::RLIMIT_NOFILE, limit.as_mut_ptr());
        let last = RawFd::try_from(limit.assume_init_ref().rlim_cur)
            .unwrap_or(RawFd::MAX)
            .min(1024 * 1024);
        for fd in first..last {
            libc::close(fd);
        }
    }
}

enum Signals {
    All,
    None,
    Only(c_int),
}

fn signal_set(signals: Signals) -> libc::sigset_t {
    let mut set = MaybeUninit::zeroed();
    // SAFETY: the set is ours, and zeros are a valid one.
    unsafe {
        match signals {
            Signals::All => libc::sigfillset(set.as_mut_ptr()),
            Signals::None => libc::sigemptyset(set.as_mut_ptr()),
            Signals::Only(signal) => libc::sigaddset(set.as_mut_ptr(), signal),
        };
        set.assume_init()
    }
}

fn poll_in(fd: RawFd) -> libc::pollfd {
    libc::pollfd { fd, events: libc::POLLIN, revents: 0 }
}

fn now_ms() -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time is ours and writable.
    unsafe {
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now);
    }
    now.tv_sec.saturating_mul(1000).saturating_add(now.tv_nsec.wrapping_div(1_000_000))
}

fn errno() -> c_int {
    // SAFETY: the address is always valid for the calling thread.
    unsafe { *libc::__errno_location() }
}
