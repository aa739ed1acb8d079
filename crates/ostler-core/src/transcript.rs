//! Every raw line of an agent, for bug reports and fixtures.

use std::{
    fs,
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    event::{EventBody, Status, Stream},
    outbox::Outbox,
};

/// Who said a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// We did.
    Stdin,
    /// The agent did.
    Stdout,
    /// The agent did, on the side.
    Stderr,
}

impl Said {
    pub(crate) fn by(stream: Stream) -> Self {
        match stream {
            Stream::Stdout => Self::Stdout,
            Stream::Stderr => Self::Stderr,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Stdin => "stdin",
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// Writes every raw line down, with its stream and time.
#[derive(Debug)]
pub(crate) struct Transcript {
    file: fs::File,
    started: Instant,
}

impl Transcript {
    /// Makes the file, readable for nobody else: prompts and answers go into it.
    ///
    /// Only a regular file will do. A pipe could hold up the turn, and opening
    /// one without a reader would even wait for it, hence non-blocking.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let file = fs::File::options()
            .create(true)
            .write(true)
            .truncate(true)
            .mode(0o600)
            .custom_flags(libc::O_NONBLOCK)
            .open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        Ok(Self { file, started: Instant::now() })
    }

    /// Writes a line down, if there is a transcript. One that cannot be written
    /// ends, and the turn's reader is told.
    pub(crate) fn note(this: &mut Option<Self>, said: Said, bytes: &[u8], outbox: &mut Outbox) {
        let Some(transcript) = this else {
            return;
        };
        let line = String::from_utf8_lossy(bytes).into_owned();
        if !transcript.write(said.name(), &line.into()) {
            let text = "the transcript could not be written; it ends here".to_owned();
            outbox.push(None, EventBody::Status(Status::Warning { text }));
            *this = None;
        }
    }

    /// Returns whether the line could be written.
    pub(crate) fn write(&mut self, what: &str, value: &Value) -> bool {
        let ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let mut line = json!({ "ms": ms, "from": what, "line": value }).to_string();
        line.push('\n');
        self.file.write_all(line.as_bytes()).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_refused_and_a_file_is_for_its_owner_only() {
        use std::os::unix::fs::PermissionsExt;
        assert!(Transcript::create(Path::new("/dev/null")).is_err());
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("raw.jsonl");
        assert!(Transcript::create(&path).unwrap().write("stdout", &"x".into()));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(r#""from":"stdout""#) && text.ends_with('\n'), "{text}");
    }
}
