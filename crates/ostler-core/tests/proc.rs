//! Real processes, started from a host with several threads.
#![cfg(unix)]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test ends where something is not as expected, in its helpers too"
)]

#[cfg(target_os = "linux")]
#[path = "proc/tree.rs"]
mod tree;

#[path = "proc/tail.rs"]
mod tail;

use std::{
    ffi::OsString,
    fs,
    future::Future,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

use ostler_core::{
    agent::{Signal, Stdin},
    event::Stream,
    proc::{self, Proc, ProcEvent, Spawn, SpawnError},
};
use tokio::time::{Instant, timeout};

const LIMIT: Duration = Duration::from_secs(20);

fn words(args: &[&str]) -> Vec<OsString> {
    args.iter().map(OsString::from).collect()
}

fn path_env() -> Vec<(OsString, OsString)> {
    vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())]
}

fn start(program: &str, args: &[&str], stdin: Stdin) -> Proc {
    proc::spawn(Spawn {
        program: Path::new(program),
        args: &words(args),
        env: &path_env(),
        cwd: Path::new("/"),
        stdin,
        stdout: None,
    })
    .unwrap()
}

fn shell(script: &str) -> Proc {
    start("/bin/sh", &["-c", script], Stdin::Null)
}

fn refused(program: &Path, cwd: &Path) -> SpawnError {
    proc::spawn(Spawn { program, args: &[], env: &[], cwd, stdin: Stdin::Null, stdout: None })
        .unwrap_err()
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    timeout(LIMIT, future).await.expect("it should not take so long")
}

async fn next_line(proc: &mut Proc) -> String {
    match within(proc.next()).await {
        ProcEvent::Line { bytes, .. } => String::from_utf8(bytes).unwrap(),
        ProcEvent::StdinClosed => panic!("no line, but a closed input"),
        ProcEvent::Exited { code, signal } => panic!("no line, but the end: {code:?} {signal:?}"),
    }
}

#[derive(Debug, Default, PartialEq)]
struct Ended {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    code: Option<i32>,
    signal: Option<i32>,
}

async fn run(mut proc: Proc) -> Ended {
    within(async {
        let mut ended = Ended::default();
        loop {
            match proc.next().await {
                ProcEvent::Line { from, bytes, cut } => {
                    assert!(!cut);
                    let stream = match from {
                        Stream::Stdout => &mut ended.stdout,
                        Stream::Stderr => &mut ended.stderr,
                    };
                    stream.extend(bytes);
                    stream.push(b'\n');
                }
                ProcEvent::StdinClosed => {}
                ProcEvent::Exited { code, signal } => {
                    (ended.code, ended.signal) = (code, signal);
                    return ended;
                }
            }
        }
    })
    .await
}

#[tokio::test]
async fn of_a_process_whose_heads_are_kept_there_are_no_lines_and_only_the_first_bytes() {
    let script = "printf 'one\\ntwo'; yes | head -c 3000000; printf 'a\\n\\377' >&2";
    let mut proc = shell(script);
    proc.keep_heads(6);
    loop {
        match within(proc.next()).await {
            ProcEvent::Line { bytes, .. } => panic!("a line: {bytes:?}"),
            ProcEvent::StdinClosed => {}
            ProcEvent::Exited { code, .. } => {
                assert_eq!(code, Some(0));
                break;
            }
        }
    }
    assert_eq!((proc.stdout_head(), proc.stderr_head()), (&b"one\ntw"[..], &b"a\n\xff"[..]));
    proc.forget_stderr_head();
    assert!(proc.stderr_head().is_empty());
}

fn plain(stdout: &str, code: i32) -> Ended {
    Ended { stdout: stdout.into(), code: Some(code), ..Ended::default() }
}

fn by_signal(signal: i32) -> Ended {
    Ended { signal: Some(signal), ..Ended::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn both_streams_and_the_exit_code_arrive() {
    let ended = run(shell("echo out; echo err >&2; printf end; exit 7")).await;
    assert_eq!(
        ended,
        Ended {
            stdout: b"out\nend\n".to_vec(),
            stderr: b"err\n".to_vec(),
            code: Some(7),
            signal: None,
        }
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn after_the_end_there_is_only_the_end() {
    let mut proc = shell("exit 3");
    for _ in 0..3 {
        let exited = ProcEvent::Exited { code: Some(3), signal: None };
        assert_eq!(within(proc.next()).await, exited);
        proc.signal(Signal::Term);
        proc.kill();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn death_by_a_signal_is_told_as_such() {
    for signal in [libc::SIGTERM, libc::SIGKILL, libc::SIGSEGV, libc::SIGHUP] {
        let ended = run(shell(&format!("kill -{signal} $$"))).await;
        assert_eq!(ended, by_signal(signal));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_reaches_the_leader_only() {
    let script = "trap 'echo outer; exit 5' TERM; \
        sh -c 'trap \"echo inner\" TERM; echo up; sleep 600 & wait' & wait";
    let mut proc = shell(script);
    assert_eq!(next_line(&mut proc).await, "up");
    proc.signal(Signal::Term);
    assert_eq!(run(proc).await, plain("outer\n", 5));
}

#[tokio::test(flavor = "multi_thread")]
async fn five_megabytes_are_echoed_without_a_deadlock() {
    let mut sent = Vec::new();
    while sent.len() < 5 * 1024 * 1024 {
        sent.extend(format!("line {} of a long prompt\n", sent.len()).bytes());
    }
    let ended = run(start("/bin/cat", &[], Stdin::Bytes(sent.clone()))).await;
    assert_eq!(ended.code, Some(0));
    assert!(ended.stdout == sent);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_when_waiting_is_given_up_again_and_again() {
    let mut sent = Vec::new();
    while sent.len() < 300_000 {
        sent.extend(format!("{}\n", sent.len()).bytes());
    }
    let mut proc = start("/bin/cat", &[], Stdin::Bytes(sent.clone()));
    let mut received = Vec::new();
    let limit = Instant::now() + LIMIT;
    loop {
        assert!(Instant::now() < limit);
        match timeout(Duration::ZERO, proc.next()).await {
            Err(_) => tokio::task::yield_now().await,
            Ok(ProcEvent::Line { bytes, .. }) => {
                received.extend(bytes);
                received.push(b'\n');
            }
            Ok(ProcEvent::StdinClosed) => {}
            Ok(ProcEvent::Exited { code, .. }) => {
                assert_eq!(code, Some(0));
                break;
            }
        }
    }
    assert!(received == sent);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_need_not_read_its_input() {
    let input = Stdin::Bytes(vec![b'x'; 1024 * 1024]);
    let ended = run(start("/bin/sh", &["-c", "exec 0<&-; echo done"], input)).await;
    assert_eq!(ended, plain("done\n", 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn input_ends_for_every_kind_of_it() {
    for stdin in [Stdin::Null, Stdin::Bytes(Vec::new())] {
        assert_eq!(run(start("/bin/cat", &[], stdin)).await, plain("", 0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_environment_is_exactly_what_was_given() {
    let env = vec![
        ("ONE".into(), "1".into()),
        ("EMPTY".into(), "".into()),
        ("WITH".into(), "a=b c".into()),
    ];
    let proc = proc::spawn(Spawn {
        program: Path::new("/usr/bin/env"),
        args: &[],
        env: &env,
        cwd: Path::new("/"),
        stdin: Stdin::Null,
        stdout: None,
    })
    .unwrap();
    assert_eq!(run(proc).await, plain("ONE=1\nEMPTY=\nWITH=a=b c\n", 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_and_directory_arrive_as_given() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let proc = proc::spawn(Spawn {
        program: Path::new("/bin/sh"),
        args: &words(&["-c", "pwd; printf '%s\n' \"$@\"", "sh", "-x", "", "a b", "*"]),
        env: &path_env(),
        cwd: &folder,
        stdin: Stdin::Null,
        stdout: None,
    })
    .unwrap();
    let expected = format!("{}\n-x\n\na b\n*\n", folder.display());
    assert_eq!(run(proc).await, plain(&expected, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relative_program_is_relative_to_the_host() {
    let up = "../".repeat(40);
    let program = PathBuf::from(format!("{up}bin/echo"));
    let folder = tempfile::tempdir().unwrap();
    let proc = proc::spawn(Spawn {
        program: &program,
        args: &words(&["hello"]),
        env: &[],
        cwd: folder.path(),
        stdin: Stdin::Null,
        stdout: None,
    })
    .unwrap();
    assert_eq!(run(proc).await, plain("hello\n", 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_program_is_not_found() {
    let root = Path::new("/");
    for program in ["/does/not/exist", "/etc/passwd/x", "sh"] {
        let error = refused(Path::new(program), root);
        assert!(matches!(error, SpawnError::NotFound { .. }), "{error:?}");
        assert!(error.to_string().contains(program));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_program_is_not_executable() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str, mode| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    };
    let cases = [
        (folder.path().to_owned(), "directory"),
        (file("plain", "#!/bin/sh\n", 0o644), "permission"),
        (file("text", "echo hello\n", 0o755), "interpreter line"),
        (file("lost", "#!/does/not/exist\n", 0o755), "names"),
    ];
    for (program, why) in cases {
        let mut error = refused(&program, Path::new("/"));
        // A test of another thread may be between fork and exec, with the file
        // still open for writing.
        while matches!(&error, SpawnError::Io { source, .. }
            if source.raw_os_error() == Some(libc::ETXTBSY))
        {
            error = refused(&program, Path::new("/"));
        }
        assert!(matches!(error, SpawnError::NotExecutable { .. }), "{error:?}");
        assert!(error.to_string().contains(why), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_directory_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    for program in ["/bin/sh", "/does/not/exist"] {
        let error = refused(Path::new(program), &missing);
        assert!(
            matches!(&error, SpawnError::BadDirectory { directory, .. } if *directory == missing),
            "{error:?}"
        );
        let file = refused(Path::new(program), Path::new("/etc/passwd"));
        assert!(matches!(file, SpawnError::BadDirectory { .. }), "{file:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_zero_byte_in_an_argument_is_refused() {
    let error = proc::spawn(Spawn {
        program: Path::new("/bin/echo"),
        args: &words(&["a\0b"]),
        env: &[],
        cwd: Path::new("/"),
        stdin: Stdin::Null,
        stdout: None,
    })
    .unwrap_err();
    assert!(matches!(error, SpawnError::Io { .. }), "{error:?}");
}
