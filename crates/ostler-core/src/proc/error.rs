//! Why a process did not start.
//!
//! The kernel's one number does not say which of the paths it means, so the
//! answer is looked up afterwards, from the paths as they are then.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use thiserror::Error;

use super::Spawn;

/// Why a process did not start.
#[derive(Debug, Error)]
pub enum SpawnError {
    /// There is no such file.
    #[error("program `{}` does not exist", program.display())]
    NotFound {
        /// What should have been started.
        program: PathBuf,
    },
    /// There is a file, but it cannot be run.
    #[error("program `{}` cannot be run: {why}", program.display())]
    NotExecutable {
        /// What should have been started.
        program: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The working directory is missing, or may not be entered.
    #[error("program `{}` cannot be run in `{}`: no such directory, or no access to it",
        program.display(), directory.display())]
    BadDirectory {
        /// What should have been started.
        program: PathBuf,
        /// Where.
        directory: PathBuf,
    },
    /// The file for its output cannot be made.
    #[error("program `{}` was not started: no file `{}` could be made for its output",
        program.display(), path.display())]
    Output {
        /// What should have been started.
        program: PathBuf,
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Anything else, for example too many processes or arguments too long.
    #[error("program `{}` could not be started", program.display())]
    Io {
        /// What should have been started.
        program: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl SpawnError {
    pub(super) fn new(spawn: &Spawn<'_>, source: io::Error) -> Self {
        let program = spawn.program.to_owned();
        // Asking for `.` inside of it also needs the right to enter it.
        if fs::metadata(spawn.cwd.join(".")).is_err() {
            let directory = spawn.cwd.to_owned();
            return Self::BadDirectory { program, directory };
        }
        match source.raw_os_error() {
            Some(libc::ENOENT | libc::ENOTDIR) if !exists(spawn.program) => {
                Self::NotFound { program }
            }
            Some(libc::ENOENT) => Self::NotExecutable {
                program,
                why: "the interpreter or loader it names does not exist",
            },
            Some(libc::EACCES) if spawn.program.is_dir() => {
                Self::NotExecutable { program, why: "it is a directory" }
            }
            Some(libc::EACCES | libc::EPERM) => {
                Self::NotExecutable { program, why: "permission denied" }
            }
            Some(libc::ENOEXEC) => Self::NotExecutable {
                program,
                why: "it is neither a binary for this system nor a script with an interpreter line",
            },
            _ => Self::Io { program, source },
        }
    }

    pub(super) fn not_found(program: &Path) -> Self {
        Self::NotFound { program: program.to_owned() }
    }
}

fn exists(path: &Path) -> bool {
    fs::metadata(path).is_ok()
}
