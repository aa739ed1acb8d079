//! What only the operating system can do: signals, processes that outlive the
//! script, letting go of a stream, waiting. The one module with unsafe code.
//!
//! The scripted agent has a single thread, so nothing here races with another
//! one.

#![expect(unsafe_code, reason = "signals and sessions exist only as calls of the C library")]

use std::fs::File;
use std::io::{self, PipeWriter, Read};
use std::mem::{ManuallyDrop, MaybeUninit};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::Duration;

use super::inbox::Source;
use super::script::{Handle, Kinship, Output};
use super::signal::Signal;
use super::stage::Stream;

/// A forgotten process goes away by itself.
pub(super) const FOREVER: Duration = Duration::from_secs(600);

#[expect(clippy::disallowed_methods, reason = "a single thread has nothing else to do")]
pub(super) fn wait(duration: Duration) {
    if !duration.is_zero() {
        std::thread::sleep(duration);
    }
}

pub(super) fn ignore(signal: Signal) -> io::Result<()> {
    set_action(signal, libc::SIG_IGN)
}

/// Standard input itself, past the standard library's buffer, so that whether
/// there is something to read is for the kernel to say.
pub(super) struct Stdin(ManuallyDrop<File>);

impl Default for Stdin {
    fn default() -> Self {
        // SAFETY: the number belongs to the process for as long as it runs, and
        // is never closed by way of this file.
        Self(ManuallyDrop::new(unsafe { File::from_raw_fd(libc::STDIN_FILENO) }))
    }
}

impl Read for Stdin {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Source for Stdin {
    fn wait(&mut self, at_most: Duration) -> io::Result<bool> {
        let mut asked = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // A part of a millisecond is still a pause.
        let ms = at_most.as_micros().div_ceil(1000);
        let ms = libc::c_int::try_from(ms).unwrap_or(libc::c_int::MAX);
        // SAFETY: the pointer is valid for the one entry that it is said to have.
        match unsafe { libc::poll(&raw mut asked, 1, ms) } {
            -1 => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => Ok(false),
                error => Err(error),
            },
            n_ready => Ok(n_ready > 0),
        }
    }
}

/// Somebody who never says anything.
pub(super) struct Nobody;

impl Read for Nobody {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        wait(FOREVER);
        Ok(0)
    }
}

impl Source for Nobody {
    fn wait(&mut self, at_most: Duration) -> io::Result<bool> {
        wait(at_most);
        Ok(false)
    }
}

/// What a signal handler does; it ends the process.
pub(super) struct Reaction {
    pub(super) to: Stream,
    pub(super) print: Vec<u8>,
    pub(super) after: Duration,
    pub(super) exit: u8,
}

/// Linux has 64 signals, other systems fewer.
static REACTIONS: [AtomicPtr<Reaction>; 65] = [const { AtomicPtr::new(ptr::null_mut()) }; 65];

pub(super) fn on_signal(signal: Signal, reaction: Reaction) -> io::Result<()> {
    let slot = usize::try_from(signal.number()).ok().and_then(|number| REACTIONS.get(number));
    let slot = slot.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    // The handler may run at any later moment, so its reaction is never freed.
    slot.store(Box::into_raw(Box::new(reaction)), Ordering::Release);
    let handler: extern "C" fn(libc::c_int) = react;
    set_action(signal, handler as libc::sighandler_t)
}

extern "C" fn react(number: libc::c_int) {
    let slot = usize::try_from(number).ok().and_then(|number| REACTIONS.get(number));
    let Some(slot) = slot else { return };
    // SAFETY: a slot is null or holds a leaked `Box` that nobody changes.
    let Some(reaction) = (unsafe { slot.load(Ordering::Acquire).as_ref() }) else {
        return;
    };
    let pause = libc::timespec {
        tv_sec: libc::time_t::try_from(reaction.after.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: reaction.after.subsec_nanos().into(),
    };
    // SAFETY: the three calls are async-signal-safe, and pointer and length
    // belong to one live buffer.
    unsafe {
        libc::write(fd(reaction.to), reaction.print.as_ptr().cast(), reaction.print.len());
        libc::nanosleep(&raw const pause, ptr::null_mut());
        libc::_exit(reaction.exit.into());
    }
}

/// Ends the process by a signal; returns only when that failed.
///
/// No core file is left behind, whatever the signal.
pub(super) fn die(signal: Signal) -> io::Error {
    let no_core = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    let mut only = MaybeUninit::<libc::sigset_t>::uninit();
    // KILL has no action to reset, and is not to be stopped by that.
    if signal.number() != libc::SIGKILL
        && let Err(error) = set_action(signal, libc::SIG_DFL)
    {
        return error;
    }
    // SAFETY: the pointers are valid for the calls; `sigemptyset` fills the set
    // before it is read.
    unsafe {
        libc::setrlimit(libc::RLIMIT_CORE, &raw const no_core);
        libc::sigemptyset(only.as_mut_ptr());
        libc::sigaddset(only.as_mut_ptr(), signal.number());
        libc::sigprocmask(libc::SIG_UNBLOCK, only.as_ptr(), ptr::null_mut());
        libc::raise(signal.number());
    }
    io::Error::last_os_error()
}

/// Puts `/dev/null` in the place of a standard stream. The number stays taken,
/// so that no later file becomes stdout by accident.
pub(super) fn let_go(handle: Handle) -> io::Result<()> {
    let null = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
    let number = match handle {
        Handle::Stdin => libc::STDIN_FILENO,
        Handle::Stdout => libc::STDOUT_FILENO,
        Handle::Stderr => libc::STDERR_FILENO,
    };
    // SAFETY: both are open file descriptors of this process.
    check(unsafe { libc::dup2(null.as_raw_fd(), number) })
}

/// Starts `sleep` and returns its process id once it runs.
#[expect(clippy::disallowed_methods, reason = "the orphan is what the script is for")]
pub(super) fn spawn_sleeper(kinship: Kinship, seconds: u64, output: Output) -> io::Result<u32> {
    let mut command = Command::new("sleep");
    command.arg(seconds.to_string()).stdin(Stdio::null());
    if output == Output::Null {
        command.stdout(Stdio::null()).stderr(Stdio::null());
    }
    match kinship {
        Kinship::Child => Ok(command.spawn()?.id()),
        Kinship::OwnSession => {
            // SAFETY: `setsid` is async-signal-safe.
            unsafe { command.pre_exec(|| check(libc::setsid())) };
            Ok(command.spawn()?.id())
        }
        Kinship::Daemon => {
            let (mut reader, writer) = io::pipe()?;
            let pid_to = writer.as_raw_fd();
            command.env_clear();
            // SAFETY: `daemonize` makes only async-signal-safe calls, and the
            // pipe stays open until the command has been spawned.
            unsafe { command.pre_exec(move || daemonize(pid_to)) };
            command.spawn()?.wait()?;
            drop::<PipeWriter>(writer);
            let mut pid = [0; size_of::<libc::pid_t>()];
            reader.read_exact(&mut pid)?;
            Ok(libc::pid_t::from_ne_bytes(pid).unsigned_abs())
        }
    }
}

/// Leaves the session and forks once more; only the second child returns.
fn daemonize(pid_to: RawFd) -> io::Result<()> {
    // SAFETY: all calls are async-signal-safe; the buffer lives on the stack.
    unsafe {
        check(libc::setsid())?;
        match libc::fork() {
            -1 => Err(io::Error::last_os_error()),
            0 => Ok(()),
            pid => {
                let bytes = pid.to_ne_bytes();
                libc::write(pid_to, bytes.as_ptr().cast(), bytes.len());
                libc::_exit(0)
            }
        }
    }
}

fn set_action(signal: Signal, handler: libc::sighandler_t) -> io::Result<()> {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: an all-zero `sigaction` is valid (no flags, empty mask), and the
    // pointers are valid for the call. `handler` is a disposition constant or
    // `react`, which only makes async-signal-safe calls.
    check(unsafe {
        (*action.as_mut_ptr()).sa_sigaction = handler;
        libc::sigaction(signal.number(), action.as_ptr(), ptr::null_mut())
    })
}

fn fd(stream: Stream) -> RawFd {
    match stream {
        Stream::Stdout => libc::STDOUT_FILENO,
        Stream::Stderr => libc::STDERR_FILENO,
    }
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
