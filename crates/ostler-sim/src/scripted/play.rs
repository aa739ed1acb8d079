//! Plays a script, step by step, until one of them ends it.

use std::path::Path;
use std::time::{Duration, Instant};

use super::agent::Props;
use super::capture::{self, Capture};
use super::command::Environment;
use super::noise;
use super::os::{self, Reaction};
use super::report::{self, Received};
use super::script::{Handle, Hex, Script, StdinUse, Step};
use super::stage::{Stage, Stream};
use super::{End, Error};

const POLL: Duration = Duration::from_millis(2);

pub(super) fn script(
    script: &Script,
    environment: &Environment,
    stage: &mut Stage<'_>,
) -> Result<End, Error> {
    for one in &script.steps {
        if let Some(end) = step(one, &script.folder, environment, stage)? {
            return Ok(end);
        }
    }
    Ok(End::Exit(0))
}

fn step(
    step: &Step,
    folder: &Path,
    environment: &Environment,
    stage: &mut Stage<'_>,
) -> Result<Option<End>, Error> {
    match step {
        Step::Line { text, to } => stage.write_line(*to, text)?,
        Step::Text { text, to } => stage.write(*to, text.as_bytes())?,
        Step::Json { value, to } => stage.write_line(*to, &value.to_string())?,
        Step::Bytes { hex: Hex(bytes), to } => stage.write(*to, bytes)?,
        Step::Banner { lines, to } => {
            for line in lines {
                stage.write_line(*to, line)?;
            }
        }
        Step::File { path, to } => {
            let path = folder.join(path);
            let bytes = std::fs::read(&path).map_err(Error::file("read", &path))?;
            stage.write(*to, &bytes)?;
        }
        Step::Garbage { bytes, seed, to } => noise::garbage(*bytes, *seed, *to, stage)?,
        Step::HugeLine { bytes, prefix, suffix, to } => {
            stage.write(*to, prefix.as_bytes())?;
            noise::fill(*bytes, *to, stage)?;
            stage.write_line(*to, suffix)?;
        }
        Step::Flood { bytes, line_bytes, template, to } => {
            noise::flood(*bytes, *line_bytes, template, *to, stage)?;
        }
        Step::Delay { ms } => os::wait(Duration::from_millis(*ms)),
        Step::WaitFor { path, max_s } => {
            wait_for(&folder.join(path), Duration::from_secs(*max_s))?;
        }
        Step::ReadLine { report } => {
            let bytes = stage.read_line()?;
            write_received(report.as_deref(), folder, &bytes)?;
        }
        Step::ReadStdin { report } => {
            let bytes = stage.read_to_end()?;
            write_received(report.as_deref(), folder, &bytes)?;
        }
        Step::Report { path, stdin } => {
            let bytes = match stdin {
                StdinUse::Leave => None,
                StdinUse::Read => Some(stage.read_to_end()?),
            };
            let received = bytes.as_deref().map(Received::new);
            report::write_call(&folder.join(path), &stage.argv, received)?;
        }
        Step::Close { stream } => close(*stream, stage)?,
        Step::IgnoreSignals { signals } => {
            for signal in signals {
                os::ignore(*signal).map_err(Error::io(format!("could not ignore {signal}")))?;
            }
        }
        Step::OnSignal { signal, print, to, after_ms, exit } => {
            let reaction = Reaction {
                to: *to,
                print: print.clone().into_bytes(),
                after: Duration::from_millis(*after_ms),
                exit: *exit,
            };
            os::on_signal(*signal, reaction)
                .map_err(Error::io(format!("could not react to {signal}")))?;
        }
        Step::Spawn { kind, sleep_s, pid_file, output } => {
            let pid = os::spawn_sleeper(*kind, *sleep_s, *output)
                .map_err(Error::io("could not start `sleep`"))?;
            if let Some(pid_file) = pid_file {
                report::write(&folder.join(pid_file), pid.to_string().as_bytes())?;
            }
        }
        Step::Hang { max_s } => os::wait(Duration::from_secs(*max_s)),
        Step::Die { signal } => return Ok(Some(End::Signal(*signal))),
        Step::Exit { code, stderr } => {
            if let Some(text) = stderr {
                stage.write_line(Stream::Stderr, text)?;
            }
            return Ok(Some(End::Exit(*code)));
        }
        Step::Capture { case, chunk_bytes, line_delay_ms } => {
            let capture = Capture::read(&folder.join(case))?;
            let delay = Duration::from_millis(*line_delay_ms);
            return capture::play(&capture, *chunk_bytes, delay, stage).map(Some);
        }
        Step::Agent { name, home, pace_ms } => {
            let home = home.as_ref().map(|home| folder.join(home));
            let props = Props::new(home, *pace_ms, environment)?;
            return name.play(&props, stage).map(Some);
        }
    }
    Ok(None)
}

fn wait_for(path: &Path, patience: Duration) -> Result<(), Error> {
    let started = Instant::now();
    while !path.exists() {
        if started.elapsed() >= patience {
            let source = std::io::ErrorKind::TimedOut.into();
            return Err(Error::Io { what: format!("{} did not appear", path.display()), source });
        }
        os::wait(POLL);
    }
    Ok(())
}

fn write_received(report: Option<&Path>, folder: &Path, bytes: &[u8]) -> Result<(), Error> {
    match report {
        Some(path) => report::write_json(&folder.join(path), &Received::new(bytes)),
        None => Ok(()),
    }
}

fn close(handle: Handle, stage: &mut Stage<'_>) -> Result<(), Error> {
    match handle {
        Handle::Stdin => {}
        Handle::Stdout => stage.silence(Stream::Stdout),
        Handle::Stderr => stage.silence(Stream::Stderr),
    }
    os::let_go(handle).map_err(Error::io("could not close a stream"))
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::scripted::inbox::Inbox;
    use crate::scripted::script::parse;

    #[derive(Debug, PartialEq)]
    struct Played {
        end: End,
        stdout: Vec<u8>,
        stderr: Vec<u8>,
    }

    fn play_in(folder: &Path, stdin: &str, steps: &str) -> Played {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let script = Script { folder: folder.to_path_buf(), steps: parse(steps).unwrap() };
        let mut stage = Stage {
            stdin: Inbox::new(io::Cursor::new(stdin)),
            stdout: Box::new(&mut stdout),
            stderr: Box::new(&mut stderr),
            argv: vec!["-p".into(), "hello".into()],
        };
        let end = super::script(&script, &Environment::default(), &mut stage).unwrap();
        drop(stage);
        Played { end, stdout, stderr }
    }

    fn play(steps: &str) -> Played {
        play_in(Path::new(""), "", steps)
    }

    #[test]
    fn lines_texts_values_and_bytes_arrive_as_written() {
        let played = play(
            r#"[{"do":"banner","lines":["Welcome","!"]},{"do":"text","text":"par"},
                {"do":"line","text":"tial"},{"do":"json","value":{"type":"x"}},
                {"do":"bytes","hex":"ff 0a"},{"do":"line","text":"oops","to":"stderr"}]"#,
        );
        assert_eq!(played.stdout, b"Welcome\n!\npartial\n{\"type\":\"x\"}\n\xff\n");
        assert_eq!(played.stderr, b"oops\n");
        assert_eq!(played.end, End::Exit(0));
    }

    #[test]
    fn nothing_is_played_after_the_end() {
        let played =
            play(r#"[{"do":"exit","code":7,"stderr":"gone"},{"do":"line","text":"still here"}]"#);
        assert_eq!(played.end, End::Exit(7));
        assert_eq!((played.stdout, played.stderr), (vec![], b"gone\n".to_vec()));
    }

    #[test]
    fn garbage_is_the_same_for_the_same_seed_only() {
        let garbage = |seed: u64| {
            play(&format!(r#"[{{"do":"garbage","bytes":100000,"seed":{seed}}}]"#)).stdout
        };
        assert_eq!(garbage(1).len(), 100_000);
        assert_eq!(garbage(1), garbage(1));
        assert_ne!(garbage(1), garbage(2));
        assert!(std::str::from_utf8(&garbage(1)).is_err());
    }

    #[test]
    fn a_huge_line_is_one_line_that_can_be_an_event() {
        let played =
            play(r#"[{"do":"huge_line","bytes":200000,"prefix":"{\"text\":\"","suffix":"\"}"}]"#);
        let line = played.stdout.strip_suffix(b"\n").unwrap();
        let value: serde_json::Value = serde_json::from_slice(line).unwrap();
        assert_eq!(value["text"].as_str().map(str::len), Some(200_000));
    }

    #[test]
    fn a_flood_is_made_of_lines_of_the_asked_length() {
        let played = play(
            r#"[{"do":"flood","bytes":100000,"line_bytes":50,"template":"{\"n\":{n},\"p\":\"{pad}\"}"}]"#,
        );
        assert_eq!(played.stdout.len(), 100_000);
        let text = String::from_utf8(played.stdout).unwrap();
        for (line, number) in text.lines().zip(1..) {
            assert_eq!(line.len(), 49);
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!(value["n"], number);
        }
    }

    #[test]
    fn files_are_found_beside_the_script() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("part.txt"), b"no newline").unwrap();
        let played = play_in(folder.path(), "", r#"[{"do":"file","path":"part.txt"}]"#);
        assert_eq!(played.stdout, b"no newline");
    }

    #[test]
    fn reports_say_what_was_read_and_how_the_cli_was_called() {
        let folder = tempfile::tempdir().unwrap();
        play_in(
            folder.path(),
            "first\nsecond",
            r#"[{"do":"read_line","report":"line.json"},
                {"do":"report","path":"call.json","stdin":"read"}]"#,
        );
        let read = |name: &str| -> serde_json::Value {
            serde_json::from_slice(&std::fs::read(folder.path().join(name)).unwrap()).unwrap()
        };
        assert_eq!(read("line.json")["text"], "first\n");
        assert_eq!(read("call.json")["argv"], serde_json::json!(["-p", "hello"]));
        assert_eq!(read("call.json")["stdin"]["text"], "second");
        assert_eq!(read("call.json")["pid"], std::process::id());
    }

    #[test]
    fn waiting_for_a_file_that_never_comes_fails_by_its_name() {
        let failure = wait_for(Path::new("/no/such/file"), Duration::ZERO).unwrap_err();
        assert!(failure.to_string().contains("/no/such/file did not appear"), "{failure}");
    }
}
