//! Standard output through a file: nothing is lost, whenever the writer ends.

use std::{fs, path::PathBuf, time::Duration};

use ostler_core::{
    agent::{Signal, Stdin},
    event::Stream,
    proc::{self, Proc, ProcEvent, Spawn, SpawnError},
};
use tempfile::TempDir;
use tokio::time::{Instant, timeout};

use super::{Ended, LIMIT, next_line, path_env, plain, run, within, words};

/// A shell script whose standard output goes to a file in a folder of its own.
struct Script {
    folder: TempDir,
    proc: Proc,
}

impl Script {
    fn start(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stdout");
        let proc = proc::spawn(Spawn {
            program: "/bin/sh".as_ref(),
            args: &words(&["-c", script]),
            env: &path_env(),
            cwd: folder.path(),
            stdin: Stdin::Null,
            stdout: Some(&path),
        })
        .unwrap();
        Self { folder, proc }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_come_while_the_process_runs() {
    let mut script = Script::start("mkfifo go; echo one; cat go; echo two >&2; printf end");
    assert_eq!(next_line(&mut script.proc).await, "one");
    fs::write(script.path("go"), "from outside\n").unwrap();
    let ended = run(script.proc).await;
    assert_eq!(
        ended,
        Ended {
            stdout: b"from outside\nend\n".to_vec(),
            stderr: b"two\n".to_vec(),
            code: Some(0),
            signal: None,
        }
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn half_a_line_waits_for_its_other_half() {
    let mut script = Script::start("mkfifo go; printf 'first '; echo up >&2; cat go; echo third");
    assert_eq!(next_line(&mut script.proc).await, "up");
    let early = timeout(Duration::from_millis(120), script.proc.next()).await;
    assert!(early.is_err(), "half a line was told: {early:?}");
    fs::write(script.path("go"), "second\n").unwrap();
    assert_eq!(run(script.proc).await, plain("first second\nthird\n", 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_written_right_before_the_exit_arrives() {
    for code in [0, 3] {
        let script = Script::start(&format!("printf 'last words'; exit {code}"));
        assert_eq!(run(script.proc).await, plain("last words\n", code));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_megabytes_arrive_though_nobody_reads_before_the_end() {
    let line = "x".repeat(999);
    let script = Script::start(&format!("yes {line} | head -n 20000; echo done >&2"));
    let path = script.path("stdout");
    let limit = Instant::now() + LIMIT;
    while fs::metadata(&path).unwrap().len() < 20_000_000 {
        assert!(Instant::now() < limit, "the writer should not wait for a reader");
        tokio::task::yield_now().await;
    }
    let ended = run(script.proc).await;
    assert_eq!((ended.stdout.len(), ended.code), (20_000_000, Some(0)));
    assert_eq!(ended.stderr, b"done\n");
    assert!(ended.stdout.chunks(1000).all(|chunk| chunk == format!("{line}\n").as_bytes()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_writer_had_written_arrives() {
    let mut script = Script::start("printf 'half a line'; echo up >&2; exec sleep 600");
    assert_eq!(next_line(&mut script.proc).await, "up");
    script.proc.kill();
    let ended = run(script.proc).await;
    assert_eq!((ended.stdout, ended.signal), (b"half a line\n".to_vec(), Some(libc::SIGKILL)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_ends_it_as_with_a_pipe() {
    let mut script = Script::start("trap 'echo bye; exit 5' TERM; echo up; sleep 600 & wait");
    assert_eq!(next_line(&mut script.proc).await, "up");
    script.proc.signal(Signal::Term);
    assert_eq!(run(script.proc).await, plain("bye\n", 5));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_when_waiting_for_a_file_is_given_up_again_and_again() {
    let mut script = Script::start("seq 1 50000");
    let mut received = Vec::new();
    let limit = Instant::now() + LIMIT;
    loop {
        assert!(Instant::now() < limit);
        match timeout(Duration::ZERO, script.proc.next()).await {
            Err(_) => tokio::task::yield_now().await,
            Ok(ProcEvent::Line { from, bytes, .. }) => {
                assert_eq!(from, Stream::Stdout);
                received.push(String::from_utf8(bytes).unwrap());
            }
            Ok(ProcEvent::StdinClosed) => {}
            Ok(ProcEvent::Exited { code, .. }) => {
                assert_eq!(code, Some(0));
                break;
            }
        }
    }
    let expected: Vec<String> = (1..=50_000).map(|n| n.to_string()).collect();
    assert!(received == expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_writer_outside_the_tree_cannot_hold_up_the_end() {
    let mut script = Script::start("echo up; exec sleep 600");
    assert_eq!(next_line(&mut script.proc).await, "up");
    let mut outsider = fs::OpenOptions::new().append(true).open(script.path("stdout")).unwrap();
    script.proc.kill();
    let exited = within(async {
        loop {
            std::io::Write::write_all(&mut outsider, b"more\n").unwrap();
            if let ProcEvent::Exited { signal, .. } = script.proc.next().await {
                return signal;
            }
        }
    });
    assert_eq!(exited.await, Some(libc::SIGKILL));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_cannot_be_made_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing/stdout");
    let taken = folder.path().join("taken");
    fs::write(&taken, "of somebody else").unwrap();
    for path in [&missing, &taken] {
        let error = proc::spawn(Spawn {
            program: "/bin/sh".as_ref(),
            args: &words(&["-c", "echo never"]),
            env: &path_env(),
            cwd: folder.path(),
            stdin: Stdin::Null,
            stdout: Some(path),
        })
        .unwrap_err();
        assert!(matches!(error, SpawnError::Output { .. }), "{error:?}");
        assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    }
    assert_eq!(fs::read_to_string(taken).unwrap(), "of somebody else");
}
