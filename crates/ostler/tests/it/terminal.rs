//! The program on a terminal, as a person would use it.

use std::{
    io::{Read, Write},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{Arc, Mutex},
    thread::JoinHandle,
};

use crate::support::{Place, until};

/// A terminal on which the program runs.
pub(crate) struct Terminal {
    child: Child,
    keys: Option<ChildStdin>,
    shown: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
    /// How much of it was looked at.
    seen: usize,
}

impl Terminal {
    /// Runs the program with these arguments, which a shell reads.
    pub(crate) fn start(place: &Place, args: &str) -> Self {
        // In place of the shell, which would take Ctrl-C as meant for itself, too.
        let line = format!("exec {} {args}", env!("CARGO_BIN_EXE_ostler"));
        let mut child = Command::new("script")
            .args(["-qec", &line, "/dev/null"])
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("TERM", "xterm")
            .env("HOME", place.path("home"))
            .env("OSTLER_DATA_DIR", place.path("data"))
            .env("TMPDIR", place.path("tmp"))
            .current_dir(place.work())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("`script` provides the terminal");
        let shown = Arc::new(Mutex::new(Vec::new()));
        let (mut from, to) = (child.stdout.take().unwrap(), Arc::clone(&shown));
        let reader = std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(n_read @ 1..) = from.read(&mut piece) {
                to.lock().unwrap().extend_from_slice(&piece[..n_read]);
            }
        });
        let keys = child.stdin.take();
        Self { child, keys, shown, reader: Some(reader), seen: 0 }
    }

    /// Presses keys.
    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.as_mut().unwrap().write_all(keys.as_bytes()).unwrap();
    }

    /// Types a line.
    pub(crate) fn enter(&mut self, line: &str) {
        self.press(&format!("{line}\r"));
    }

    /// Waits until a text is shown after what was waited for before; returns
    /// what was shown up to it.
    pub(crate) fn wait_for(&mut self, text: &str) -> String {
        let seen = self.seen;
        let (shown, end) = until(&format!("{text:?} is shown"), || {
            let shown = self.shown.lock().unwrap();
            let new = String::from_utf8_lossy(&shown[seen..]).into_owned();
            let end = new.find(text)? + text.len();
            Some((new[..end].to_owned(), end))
        });
        self.seen += end;
        shown
    }

    /// Waits for the end; returns the exit code and what was shown last.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let status = until("the program has ended", || self.child.try_wait().unwrap());
        self.reader.take().unwrap().join().unwrap();
        let shown = self.shown.lock().unwrap();
        (status.code(), String::from_utf8_lossy(&shown[self.seen..]).into_owned())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
