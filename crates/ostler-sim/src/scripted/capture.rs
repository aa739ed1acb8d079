//! Plays what a real CLI once printed, and ends as it ended. Finding out *what*
//! the bytes mean is not done here.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::signal::Signal;
use super::stage::{Stage, Stream};
use super::{End, Error, os};

#[derive(Debug)]
pub(super) struct Capture {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    exit: Exit,
}

/// How the recorded process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exit {
    End(End),
    /// The recording was cut off while the process was still running.
    Never,
}

/// Longer than any test waits.
const NEVER: Duration = Duration::from_secs(600);

impl Capture {
    /// Reads `<case>.stdout`, `<case>.stderr` (may be missing) and
    /// `<case>.exit`.
    pub(super) fn read(case: &Path) -> Result<Self, Error> {
        let stderr = beside(case, "stderr");
        let exit = beside(case, "exit");
        Ok(Self {
            stdout: read(&beside(case, "stdout"))?,
            stderr: if stderr.exists() { read(&stderr)? } else { Vec::new() },
            exit: parse_exit(&String::from_utf8_lossy(&read(&exit)?))
                .map_err(|text| Error::Usage(format!("capture {}: {text}", exit.display())))?,
        })
    }
}

/// Prints stderr first: the order between the streams was not recorded, and
/// what CLIs say there mostly comes before their answer.
///
/// Without a delay, chunks run over the ends of lines, as a pipe would cut
/// them; with one, each line is a piece of its own.
pub(super) fn play(
    capture: &Capture,
    chunk: Option<NonZeroUsize>,
    line_delay: Duration,
    stage: &mut Stage<'_>,
) -> Result<End, Error> {
    stage.write(Stream::Stderr, &capture.stderr)?;
    let lines: Vec<&[u8]> = if line_delay.is_zero() {
        vec![&capture.stdout]
    } else {
        capture.stdout.split_inclusive(|byte| *byte == b'\n').collect()
    };
    for line in lines {
        os::wait(line_delay);
        for piece in line.chunks(chunk.map_or(usize::MAX, NonZeroUsize::get)) {
            stage.write(Stream::Stdout, piece)?;
        }
    }
    match capture.exit {
        Exit::End(end) => Ok(end),
        Exit::Never => {
            os::wait(NEVER);
            Ok(End::Exit(0))
        }
    }
}

fn beside(case: &Path, ending: &str) -> PathBuf {
    // Case names contain dots (`prompt-9.9m-stdin`), so `with_extension` would
    // cut them.
    let mut name = case.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(Error::file("read", path))
}

#[derive(Deserialize)]
struct ExitLine {
    exit_code: Option<u8>,
    signal: Option<String>,
}

/// The last line is an exit code, minus a signal's number, `TIMEOUT`, or an
/// object with `exit_code` and `signal`; lines before it are remarks.
fn parse_exit(text: &str) -> Result<Exit, String> {
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default();
    let unclear = || format!("`{line}` does not say how the process ended");
    if line == "TIMEOUT" {
        return Ok(Exit::Never);
    }
    if line.starts_with('{') {
        let exit: ExitLine = serde_json::from_str(line).map_err(|_| unclear())?;
        return match (exit.signal, exit.exit_code) {
            (Some(name), _) => Signal::from_name(&name).map(End::Signal),
            (None, Some(code)) => Some(End::Exit(code)),
            (None, None) => None,
        }
        .map(Exit::End)
        .ok_or_else(unclear);
    }
    let number: i32 = line.parse().map_err(|_| unclear())?;
    let end = match u8::try_from(number) {
        Ok(code) => Some(End::Exit(code)),
        Err(_) => number.checked_neg().and_then(Signal::from_number).map(End::Signal),
    };
    end.map(Exit::End).ok_or_else(unclear)
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::scripted::inbox::Inbox;

    #[test]
    fn every_recorded_form_of_an_exit_is_understood() {
        let signal = |name| Exit::End(End::Signal(Signal::from_name(name).unwrap()));
        for (text, exit) in [
            ("0\n", Exit::End(End::Exit(0))),
            ("143", Exit::End(End::Exit(143))),
            ("-9\n", signal("KILL")),
            ("TIMEOUT\n", Exit::Never),
            ("{\"sent\":\"SIGTERM\"}\n143\n", Exit::End(End::Exit(143))),
            ("{\"exit_code\": 1, \"signal\": null, \"wall_s\": 0.1}\n", Exit::End(End::Exit(1))),
            ("{\"exit_code\": null, \"signal\": \"SIGTERM\"}", signal("TERM")),
        ] {
            assert_eq!(parse_exit(text), Ok(exit), "{text}");
        }
    }

    #[test]
    fn an_exit_that_says_nothing_is_refused() {
        for text in ["", "soon", "300", "-300", "{", r#"{"code":null,"spawn_error":"E2BIG"}"#] {
            assert!(parse_exit(text).is_err(), "{text}");
        }
    }

    /// Remembers each write on its own.
    struct Pieces<'a>(&'a mut Vec<Vec<u8>>);

    impl io::Write for Pieces<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.push(bytes.to_vec());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn pieces(chunk: usize, line_delay: Duration) -> Vec<Vec<u8>> {
        let capture = Capture {
            stdout: b"abc\nde\nf".to_vec(),
            stderr: Vec::new(),
            exit: Exit::End(End::Exit(0)),
        };
        let mut pieces = Vec::new();
        let mut stage = Stage {
            stdin: Inbox::new(io::Cursor::new("")),
            stdout: Box::new(Pieces(&mut pieces)),
            stderr: Box::new(io::sink()),
            argv: Vec::new(),
        };
        let end = play(&capture, NonZeroUsize::new(chunk), line_delay, &mut stage).unwrap();
        assert_eq!(end, End::Exit(0));
        drop(stage);
        pieces
    }

    #[test]
    fn chunks_run_over_the_ends_of_lines() {
        assert_eq!(pieces(3, Duration::ZERO), [&b"abc"[..], b"\nde", b"\nf"]);
    }

    #[test]
    fn with_a_delay_each_line_is_cut_on_its_own() {
        let delay = Duration::from_nanos(1);
        assert_eq!(pieces(3, delay), [&b"abc"[..], b"\n", b"de\n", b"f"]);
        assert_eq!(pieces(0, delay), [&b"abc\n"[..], b"de\n", b"f"]);
    }

    #[test]
    fn a_case_may_have_dots_in_its_name() {
        assert_eq!(beside(Path::new("a/prompt-9.9m"), "exit"), Path::new("a/prompt-9.9m.exit"));
    }
}
