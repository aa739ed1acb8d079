//! Waiting for other processes: until one says that it is ready, as it tells a
//! service manager, and until one has ended.

use std::{
    fs, io,
    os::unix::{fs::PermissionsExt as _, net::UnixDatagram},
    path::{Path, PathBuf},
    process::{Child, ExitStatus},
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, pidfd_open},
};

/// How long a process may take to be ready, or to be gone after it was told.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);
/// How often one that is not ready yet is looked at, whether it has ended.
const LOOK: Duration = Duration::from_millis(500);

/// Where a process says that it is ready.
pub(crate) struct Ready {
    socket: UnixDatagram,
    path: PathBuf,
}

impl Ready {
    /// Listens in a folder, which others may write to it in.
    pub(crate) fn listen(folder: &Path) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let path = folder.join(format!("ready{}", NUMBER.fetch_add(1, Ordering::Relaxed)));
        let socket = UnixDatagram::bind(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        socket.set_read_timeout(Some(LOOK)).unwrap();
        Self { socket, path }
    }

    /// Returns the variable that leads a process here.
    pub(crate) fn variable(&self) -> (&'static str, &Path) {
        ("NOTIFY_SOCKET", &self.path)
    }

    /// Waits until the process says it; the error is what happened instead.
    pub(crate) fn wait(&self, child: &mut Child) -> Result<(), String> {
        let deadline = Instant::now() + LIMIT;
        let mut buffer = [0; 4096];
        while Instant::now() < deadline {
            match self.socket.recv(&mut buffer) {
                Ok(length) => {
                    let said = String::from_utf8_lossy(&buffer[..length]).into_owned();
                    if said.lines().any(|line| line == "READY=1") {
                        return Ok(());
                    }
                }
                // A wait with a time limit is also cut short where this program is
                // stopped and goes on.
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                    ) =>
                {
                    if let Some(status) = child.try_wait().unwrap() {
                        return Err(format!("it ended with {status}"));
                    }
                }
                Err(error) => panic!("{error}"),
            }
        }
        Err("it is not ready in time".to_owned())
    }
}

impl Drop for Ready {
    fn drop(&mut self) {
        fs::remove_file(&self.path).ok();
    }
}

/// Waits until a process has ended; nothing, if it does not in time.
pub(crate) fn ended(child: &mut Child) -> Option<ExitStatus> {
    let process = pidfd_open(Pid::from_child(child), PidfdFlags::empty()).unwrap();
    let limit = Timespec { tv_sec: i64::try_from(LIMIT.as_secs()).unwrap(), tv_nsec: 0 };
    poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&limit)).unwrap();
    child.try_wait().unwrap()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_that_ends_before_it_is_ready_is_told_from_one_that_is() {
        let folder = tempfile::tempdir().unwrap();
        let ready = Ready::listen(folder.path());
        let mut child = Command::new("sh").args(["-c", "exit 3"]).spawn().unwrap();
        assert!(ready.wait(&mut child).unwrap_err().contains('3'));
        let (name, path) = ready.variable();
        assert_eq!(name, "NOTIFY_SOCKET");
        UnixDatagram::unbound().unwrap().send_to(b"STATUS=x\nREADY=1", path).unwrap();
        assert_eq!(ready.wait(&mut child), Ok(()));
    }

    #[test]
    fn a_wait_goes_on_after_this_program_was_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let ready = Ready::listen(folder.path());
        // Each is long enough to be noticed, and one of them meets the wait.
        let script = "for i in 1 2 3 4 5; do \
             kill -STOP $PPID; sleep 0.03; kill -CONT $PPID; sleep 0.03; done; exit 3";
        let mut child = Command::new("sh").args(["-c", script]).spawn().unwrap();
        assert!(ready.wait(&mut child).unwrap_err().contains('3'));
    }

    #[test]
    fn the_end_of_a_process_is_waited_for() {
        let mut child = Command::new("sh").args(["-c", "exit 3"]).spawn().unwrap();
        assert_eq!(ended(&mut child).unwrap().code(), Some(3));
    }
}
