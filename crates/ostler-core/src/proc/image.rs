//! The program to run, in the form the kernel takes it.
//!
//! Built before the fork, because the child of a process with several threads
//! must not allocate. The standard library's own way to execute is not used:
//! it falls back to a shell for files that are no programs.
#![expect(
    unsafe_code,
    reason = "executing and resetting signals between fork and exec has no safe interface"
)]

use std::{
    ffi::{CString, OsStr, OsString},
    io,
    os::{
        raw::{c_char, c_int},
        unix::ffi::OsStrExt,
    },
    path::Path,
    ptr,
};

/// The largest signal number of any system this runs on.
const LAST_SIGNAL: c_int = 64;

/// A program with its arguments and its environment.
pub(super) struct Image {
    program: CString,
    arguments: Words,
    environment: Words,
}

impl Image {
    /// Fails when a word has a zero byte in it.
    pub(super) fn new(
        program: &Path,
        args: &[OsString],
        env: &[(OsString, OsString)],
    ) -> io::Result<Self> {
        let program = CString::new(program.as_os_str().as_bytes())?;
        let mut arguments = vec![program.clone()];
        for argument in args {
            arguments.push(CString::new(argument.as_bytes())?);
        }
        let mut environment = Vec::with_capacity(env.len());
        for (name, value) in env {
            environment.push(CString::new(assignment(name, value))?);
        }
        Ok(Self { program, arguments: Words::new(arguments), environment: Words::new(environment) })
    }

    /// Becomes the program; returns only when that is not possible.
    ///
    /// Async-signal-safe.
    pub(super) fn execute(&self) -> io::Error {
        // SAFETY: the path and both lists are zero-terminated and live in
        // `self`, which nobody changes.
        unsafe {
            libc::execve(
                self.program.as_ptr(),
                self.arguments.pointers.as_ptr(),
                self.environment.pointers.as_ptr(),
            );
        }
        io::Error::last_os_error()
    }
}

/// A list of strings with the null-terminated list of their addresses.
struct Words {
    pointers: Vec<*const c_char>,
    _words: Vec<CString>,
}

impl Words {
    fn new(words: Vec<CString>) -> Self {
        let ends = [ptr::null()];
        let pointers = words.iter().map(|word| word.as_ptr()).chain(ends).collect();
        Self { pointers, _words: words }
    }
}

// SAFETY: the pointers lead into the strings beside them, which are on the
// heap, never change and are dropped together with them.
unsafe impl Send for Words {}
// SAFETY: as above; nothing is ever written through them.
unsafe impl Sync for Words {}

/// Gives every signal its default effect.
///
/// A host that was started in the background ignores SIGINT, and its agents
/// would inherit that, deaf to their stop plan. Async-signal-safe.
pub(super) fn reset_signal_effects() {
    for signal in 1..=LAST_SIGNAL {
        // SAFETY: this is the only thread of a forked child. Numbers that
        // cannot be set are refused, which changes nothing.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
        }
    }
}

fn assignment(name: &OsStr, value: &OsStr) -> Vec<u8> {
    [name.as_bytes(), value.as_bytes()].join(&b'=')
}
