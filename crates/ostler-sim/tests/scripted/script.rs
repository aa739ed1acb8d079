//! Scripts and captures that behave.

use std::io::{ErrorKind, Read};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use ostler_sim::scripted::executable;
use serde_json::json;

use super::{PROGRAM, Scene, play, touch};

#[test]
fn a_partial_line_arrives_before_its_end() {
    let scene = Scene::new(json!([
        {"do": "text", "text": "par"},
        {"do": "wait_for", "path": "go"},
        {"do": "line", "text": "tial"},
    ]));
    let mut child = scene.start();
    let mut stdout = child.stdout.take().unwrap();
    let mut start = [0; 3];
    stdout.read_exact(&mut start).unwrap();
    assert_eq!(&start, b"par");
    touch(&scene.path("go"));
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "tial\n");
    assert!(child.wait().unwrap().success());
}

#[test]
fn an_executable_script_reports_how_it_was_called() {
    let scene = Scene::new(json!([]));
    let steps = json!([{"do": "report", "path": "call.json", "stdin": "read"}]);
    let path = scene.path("agent");
    std::fs::write(&path, executable(PROGRAM, &steps)).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    let played = loop {
        let mut command = Command::new(&path);
        command.args(["-p", "--", "--help"]).current_dir("/").env_clear().env("A", "b");
        command.stdin(Stdio::null());
        // While another test forks, its child briefly holds the file that was
        // just written, and the kernel refuses to run it.
        match command.spawn() {
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => {}
            Err(error) => panic!("{error}"),
            Ok(mut probe) => {
                probe.wait().unwrap();
                break play(command, "the prompt");
            }
        }
    };
    assert_eq!(played.code(), Some(0), "{}", played.stderr());
    let call = scene.json("call.json");
    assert_eq!(call["argv"], json!(["-p", "--", "--help"]));
    assert_eq!(call["env"], json!({"A": "b"}));
    assert_eq!(call["cwd"], "/");
    assert_eq!(call["stdin"]["text"], "the prompt");
}

#[test]
fn a_long_standard_input_is_read_whole() {
    let scene = Scene::new(json!([{"do": "read_stdin", "report": "stdin.json"}]));
    let prompt = "é".repeat(150_000);
    assert_eq!(play(scene.command(), &prompt).code(), Some(0));
    assert_eq!(scene.json("stdin.json")["bytes"], 300_000);
    assert_eq!(scene.json("stdin.json")["text"], prompt);
}

#[test]
fn a_line_of_fifty_megabytes_is_one_line() {
    let scene = Scene::new(json!([
        {"do": "huge_line", "bytes": 50_000_000, "prefix": "{\"text\":\"", "suffix": "\"}"},
    ]));
    let stdout = scene.play().stdout;
    assert_eq!(stdout.len(), 50_000_000 + 12);
    assert_eq!(stdout.iter().filter(|byte| **byte == b'\n').count(), 1);
}

#[test]
fn a_flood_on_stderr_leaves_stdout_alone() {
    let scene = Scene::new(json!([
        {"do": "flood", "bytes": 3_000_000, "to": "stderr"},
        {"do": "line", "text": "answer"},
    ]));
    let played = scene.play();
    assert_eq!(played.stderr.len(), 3_000_000);
    assert_eq!(played.stdout(), "answer\n");
}

#[test]
fn a_wrong_script_is_refused_before_anything_is_played() {
    let scene = Scene::new(json!([{"do": "line", "text": "x"}, {"do": "jump"}]));
    let played = scene.play();
    assert_eq!(played.code(), Some(2));
    assert_eq!(played.stdout(), "");
    assert!(played.stderr().contains("step 2"), "{}", played.stderr());
}

#[test]
fn a_capture_is_played_to_its_end() {
    let scene = Scene::new(json!([]));
    for (exit, code, signal) in [
        ("0\n", Some(0), None),
        ("143\n", Some(143), None),
        ("{\"exit_code\": 1, \"signal\": null}\n", Some(1), None),
        ("{\"exit_code\": null, \"signal\": \"SIGTERM\"}\n", None, Some(15)),
    ] {
        std::fs::write(scene.path("case.stdout"), "{\"a\":1}\n{\"b\":2}\nhalf").unwrap();
        std::fs::write(scene.path("case.stderr"), "warning\n").unwrap();
        std::fs::write(scene.path("case.exit"), exit).unwrap();
        let mut command = Command::new(PROGRAM);
        command.arg("--capture").arg(scene.path("case")).args(["--chunk", "3", "-p", "hello"]);
        let played = play(command, "");
        assert_eq!(played.stdout(), "{\"a\":1}\n{\"b\":2}\nhalf");
        assert_eq!(played.stderr(), "warning\n");
        assert_eq!((played.code(), played.signal()), (code, signal), "{exit}");
    }
}
