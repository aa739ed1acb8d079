//! What a script may say: a closed set of steps, read strictly, with errors
//! that name the step. Playing them is `play`'s business.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::Error;
use super::agent::Agent;
use super::signal::Signal;
use super::stage::Stream;

/// Steps in order, and the folder that their relative paths start from: the
/// script's own, because the agent's working directory is the caller's choice.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) folder: PathBuf,
    pub(super) steps: Vec<Step>,
}

/// One thing to do, written as `{"do":"line","text":"hello"}`. A script that
/// ends without an end of its own exits with 0.
///
/// Standard input is left unread unless a step reads it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Step {
    /// Prints a text and a newline.
    Line {
        text: String,
        #[serde(default)]
        to: Stream,
    },
    /// Prints a text without a newline, for partial lines.
    Text {
        text: String,
        #[serde(default)]
        to: Stream,
    },
    /// Prints a JSON value as one line.
    Json {
        value: serde_json::Value,
        #[serde(default)]
        to: Stream,
    },
    /// Prints bytes, given in hexadecimal (spaces are allowed), for what is not
    /// UTF-8.
    Bytes {
        hex: Hex,
        #[serde(default)]
        to: Stream,
    },
    /// Prints lines that are no part of the protocol.
    Banner {
        lines: Vec<String>,
        #[serde(default)]
        to: Stream,
    },
    /// Prints the content of a file.
    File {
        path: PathBuf,
        #[serde(default)]
        to: Stream,
    },
    /// Prints bytes that look random and are the same for the same seed;
    /// newlines are among them.
    Garbage {
        bytes: u64,
        #[serde(default = "one")]
        seed: u64,
        #[serde(default)]
        to: Stream,
    },
    /// Prints `prefix`, `bytes` times `x`, `suffix` and a newline.
    HugeLine {
        bytes: u64,
        #[serde(default)]
        prefix: String,
        #[serde(default)]
        suffix: String,
        #[serde(default)]
        to: Stream,
    },
    /// Prints whole lines until at least `bytes` are written. In the template,
    /// `{n}` is the number of the line and `{pad}` what makes the line, with
    /// its newline, `line_bytes` long.
    Flood {
        bytes: u64,
        #[serde(default = "flood_line")]
        line_bytes: usize,
        #[serde(default = "flood_template")]
        template: String,
        #[serde(default)]
        to: Stream,
    },
    Delay {
        ms: u64,
    },
    /// Waits until a file exists, so that a test can hold the script without
    /// a clock.
    WaitFor {
        path: PathBuf,
        #[serde(default = "a_minute")]
        max_s: u64,
    },
    /// Reads one line of standard input.
    ReadLine {
        report: Option<PathBuf>,
    },
    /// Reads standard input until it is closed.
    ReadStdin {
        report: Option<PathBuf>,
    },
    /// Writes arguments, environment and working directory to a file.
    Report {
        path: PathBuf,
        #[serde(default)]
        stdin: StdinUse,
    },
    /// Lets go of a standard stream, as if the program had closed it.
    Close {
        stream: Handle,
    },
    /// Children that are spawned later inherit this.
    IgnoreSignals {
        signals: Vec<Signal>,
    },
    /// From here on, prints and exits when the signal comes.
    OnSignal {
        signal: Signal,
        #[serde(default)]
        print: String,
        #[serde(default)]
        to: Stream,
        #[serde(default)]
        after_ms: u64,
        exit: u8,
    },
    /// Starts a process that only sleeps.
    Spawn {
        kind: Kinship,
        sleep_s: u64,
        pid_file: Option<PathBuf>,
        #[serde(default)]
        output: Output,
    },
    /// Does nothing until killed; bounded, so that a forgotten one goes away.
    Hang {
        #[serde(default = "ten_minutes")]
        max_s: u64,
    },
    Die {
        signal: Signal,
    },
    Exit {
        code: u8,
        stderr: Option<String>,
    },
    /// Plays `<case>.stdout` and `<case>.stderr` and ends as `<case>.exit` says.
    Capture {
        case: PathBuf,
        chunk_bytes: Option<NonZeroUsize>,
        #[serde(default)]
        line_delay_ms: u64,
    },
    /// Plays an agent with the arguments that the script was given.
    Agent {
        name: Agent,
        home: Option<PathBuf>,
        pace_ms: Option<u64>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Handle {
    Stdin,
    Stdout,
    Stderr,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StdinUse {
    #[default]
    Leave,
    Read,
}

/// How a spawned process relates to the script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kinship {
    /// In the script's session and process group.
    Child,
    /// A child in a session of its own, out of reach of the group's signals.
    OwnSession,
    /// Forked twice, in a session of its own, without any environment variable
    /// that could identify it.
    Daemon,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Output {
    /// Holds the script's stdout and stderr open.
    #[default]
    Inherit,
    Null,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Hex(pub(super) Vec<u8>);

impl TryFrom<String> for Hex {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let digits: Option<Vec<u8>> = text
            .chars()
            .filter(|char| !char.is_whitespace())
            .map(|char| char.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
            .collect();
        let digits = digits.ok_or_else(|| format!("`{text}` is not hexadecimal"))?;
        let (pairs, rest) = digits.as_chunks::<2>();
        if !rest.is_empty() {
            return Err(format!("`{text}` has half a byte at its end"));
        }
        Ok(Self(pairs.iter().map(|[high, low]| high << 4 | low).collect()))
    }
}

impl Script {
    pub(super) fn read(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path).map_err(Error::file("read the script", path))?;
        let steps = parse(&text)
            .map_err(|text| Error::Usage(format!("script {}: {text}", path.display())))?;
        let folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
        Ok(Self { folder, steps })
    }
}

/// Reads the steps; the message of a failure says which step and why.
pub(super) fn parse(text: &str) -> Result<Vec<Step>, String> {
    let json = match text.strip_prefix("#!") {
        Some(rest) => rest.find('\n').and_then(|end| rest.get(end..)).unwrap_or_default(),
        None => text,
    };
    let raw: Vec<&RawValue> =
        serde_json::from_str(json).map_err(|error| format!("not a JSON list of steps: {error}"))?;
    raw.iter()
        .zip(1..)
        .map(|(step, number)| {
            serde_json::from_str(step.get()).map_err(|error| {
                let start: String = step.get().chars().take(60).collect();
                format!("step {number} ({start}): {error}")
            })
        })
        .collect()
}

fn one() -> u64 {
    1
}

fn a_minute() -> u64 {
    60
}

fn ten_minutes() -> u64 {
    600
}

fn flood_line() -> usize {
    80
}

fn flood_template() -> String {
    "{n} {pad}".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_may_start_with_an_interpreter_line() {
        let steps = parse("#!/bin/ostler scripted\n[{\"do\":\"exit\",\"code\":3}]").unwrap();
        assert_eq!(steps, [Step::Exit { code: 3, stderr: None }]);
    }

    #[test]
    fn what_a_step_leaves_out_has_a_default() {
        let steps = parse(r#"[{"do":"hang"},{"do":"line","text":"a"},{"do":"garbage","bytes":9}]"#);
        let expected = [
            Step::Hang { max_s: 600 },
            Step::Line { text: "a".into(), to: Stream::Stdout },
            Step::Garbage { bytes: 9, seed: 1, to: Stream::Stdout },
        ];
        assert_eq!(steps.unwrap(), expected);
    }

    #[test]
    fn hexadecimal_may_have_spaces() {
        assert_eq!(Hex::try_from("ff 00\n7B".to_owned()), Ok(Hex(vec![0xff, 0, 0x7b])));
    }

    #[test]
    fn a_wrong_step_is_named_by_its_number_and_its_mistake() {
        for (script, number, part) in [
            (r#"[{"do":"exit","code":0},{"do":"jump"}]"#, 2, "unknown variant `jump`"),
            (r#"[{"do":"line"}]"#, 1, "missing field `text`"),
            (r#"[{"do":"line","text":"a","colour":"red"}]"#, 1, "unknown field `colour`"),
            (r#"[{"do":"hang","mx_s":1}]"#, 1, "unknown field `mx_s`"),
            (r#"[{"do":"exit","code":300}]"#, 1, "300"),
            (r#"[{"do":"die","signal":"NOPE"}]"#, 1, "unknown signal `NOPE`"),
            (r#"[{"do":"bytes","hex":"0"}]"#, 1, "half a byte"),
            (r#"[{"do":"bytes","hex":"zz"}]"#, 1, "not hexadecimal"),
            (r#"[{"do":"agent","name":"clyde"}]"#, 1, "`clyde`"),
            (r#"[{"do":"capture","case":"x","chunk_bytes":0}]"#, 1, "nonzero"),
            (r#"[7]"#, 1, "invalid type"),
        ] {
            let message = parse(script).unwrap_err();
            assert!(message.starts_with(&format!("step {number} (")), "{script}: {message}");
            assert!(message.contains(part), "{script}: {message}");
        }
    }

    #[test]
    fn a_script_that_is_no_list_is_refused() {
        for text in ["", "{}", "[", "#!/bin/ostler scripted"] {
            let message = parse(text).unwrap_err();
            assert!(message.starts_with("not a JSON list of steps"), "{text}: {message}");
        }
    }
}
