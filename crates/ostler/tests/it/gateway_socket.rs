//! The gateway as its user meets it at the command line: `send`, `run --daemon`,
//! `sessions` and `queue`, with the scripted agent as the CLI.

mod asked;
mod outbound;
mod raw;
mod sent;
mod store;

use std::{
    os::unix::net::UnixStream,
    process::{Child, Stdio},
};

use serde_json::{Value, json};

use crate::support::{Outcome, Place, Running, signal, until};

/// A gateway of a test's own.
pub(crate) struct Serving {
    place: Place,
    child: Child,
}

impl Serving {
    /// Starts one whose agent is the scripted Claude, with all its words.
    pub(crate) fn start() -> Self {
        let place = Place::new();
        let program = place.script(&json!([{ "do": "agent", "name": "claude" }]));
        Self::with_program(place, "claude", program.to_str().unwrap())
    }

    pub(crate) fn with_program(place: Place, agent: &str, program: &str) -> Self {
        let child = serve(&place, agent, program);
        Self { place, child }
    }

    fn run(&self, args: &[&str]) -> Outcome {
        self.place.run(args)
    }

    /// Runs a command that prints one object and succeeds.
    fn object(&self, args: &[&str]) -> Value {
        let outcome = self.run(args);
        assert_eq!(outcome.code, Some(0), "{args:?}: {}{}", outcome.stdout, outcome.stderr);
        outcome.json()
    }

    /// Returns a job as the queue knows it.
    fn job(&self, id: &str) -> Value {
        self.object(&["queue", "show", id, "--output", "json"])
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        signal(self.child.id(), "TERM");
        self.child.wait().ok();
    }
}

/// Starts a gateway, and waits until it takes connections.
fn serve(place: &Place, agent: &str, program: &str) -> Child {
    let mut command = place.ostler(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("AGENT_BACKEND", agent).env("BACKEND_CLI_PATH", program);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().unwrap();
    let socket = place.path("data/daemon.sock");
    until("the gateway listens", || UnixStream::connect(&socket).ok());
    child
}

#[test]
fn a_turn_in_the_gateway_looks_like_one_here() {
    let serving = Serving::start();
    let here = |args: &[&str]| {
        let program = serving.place.path("agent").to_str().unwrap().to_owned();
        let mut all = vec!["run", "--bin", &program, "--permissions", "read-only"];
        all.extend(args);
        serving.run(&all)
    };
    let there = |args: &[&str]| {
        let mut all = vec!["run", "--daemon", "--permissions", "read-only"];
        all.extend(args);
        serving.run(&all)
    };
    let (text, expected) = (there(&["hello"]), here(&["hello"]));
    assert_eq!((text.code, &text.stdout), (Some(0), &expected.stdout), "{}", text.stderr);
    let (object, expected) =
        (there(&["--output", "json", "hello"]), here(&["--output", "json", "hello"]));
    let names = |object: &Value| object.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&object.json()), names(&expected.json()));
    assert_eq!(object.json()["response_text"], expected.json()["response_text"]);
    let events = there(&["--output", "stream-json", "sim:tool"]).events();
    let types = events.types();
    assert_eq!((types[0], *types.last().unwrap()), ("started", "complete"));
    assert!(types.contains(&"tool_use"), "{types:?}");
    assert_eq!(
        events.of_type("started").next().unwrap()["cwd"],
        serving.place.work().to_str().unwrap()
    );
}

#[test]
fn a_session_goes_on_by_continue() {
    let serving = Serving::start();
    let run = |args: &[&str]| {
        let mut all = vec!["run", "--daemon", "--output", "json"];
        all.extend(args);
        serving.object(&all)
    };
    let first = run(&["one"]);
    let second = run(&["--continue", "sim:history"]);
    assert_eq!(second["session_id"], first["session_id"]);
    let session = first["session_id"].as_str().unwrap();
    let third = run(&["--session", session, "sim:history"]);
    for (object, count) in [(second, 2), (third, 3)] {
        let text = object["response_text"].as_str().unwrap().to_owned();
        assert!(text.contains(&format!("so far: {count}")), "{text}");
    }
}

#[test]
fn the_exit_codes_are_those_of_run() {
    let serving = Serving::start();
    for (args, code, says) in [
        (&["--continue", "x"][..], 2, "--continue"),
        (&["sim:crash"], 1, "Claude CLI error"),
        (&["--timeout", "1s", "sim:hang"], 124, "Query timed out"),
        (&["--agent", "nobody", "x"], 2, "nobody"),
        (&["--agent", "codex", "x"], 3, "codex"),
        (&[""], 2, "prompt required"),
        (&["--bin", "/bin/true", "x"], 2, "--bin"),
        (&["--env", "A=b", "x"], 2, "--env"),
        (&["--transcript", "t", "x"], 2, "--transcript"),
        (&["--agent-arg", "y", "x"], 2, "--agent-arg"),
        (&["--dry-run", "x"], 2, "--dry-run"),
    ] {
        let mut all = vec!["run", "--daemon"];
        all.extend(args);
        let outcome = serving.run(&all);
        assert_eq!(outcome.code, Some(code), "{args:?}: {}{}", outcome.stdout, outcome.stderr);
        assert!(outcome.stderr.contains(says), "{args:?}: {}", outcome.stderr);
        assert_eq!(outcome.stdout, "");
    }
    let failed =
        serving.run(&["run", "--daemon", "--output", "stream-json", "--agent", "codex", "x"]);
    assert_eq!(failed.events().last()["error"]["kind"], "spawn_failed");
    let long = "x".repeat(5 * 1024 * 1024);
    let outcome = serving.place.run_with_input(&["run", "--daemon"], long.as_bytes());
    assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("4 MiB"), "{}", outcome.stderr);
}

#[test]
fn ctrl_c_cancels_the_turn_in_the_gateway() {
    let serving = Serving::start();
    let args = ["run", "--daemon", "--output", "stream-json", "sim:hang"];
    let mut run = Running::start(serving.place.ostler(&args));
    run.wait_for(|event| event["type"] == "started");
    run.signal("INT");
    let (code, events) = run.finish();
    assert_eq!(code, Some(130));
    assert_eq!(events.last()["error"]["kind"], "cancelled");
    let jobs = serving.object(&["queue", "list", "--output", "json"]);
    assert_eq!(jobs["jobs"][0]["state"], "cancelled");
}

#[test]
fn without_a_gateway_it_is_said_how_to_start_one() {
    let place = Place::new();
    for args in
        [&["send", "hello"][..], &["send", "--wait", "hello"], &["run", "--daemon", "hello"]]
    {
        let outcome = place.run(args);
        assert_eq!(outcome.code, Some(1), "{args:?}");
        assert!(outcome.stderr.contains("ostler serve"), "{}", outcome.stderr);
    }
    drop(std::os::unix::net::UnixListener::bind(place.path("data/daemon.sock")).unwrap());
    let outcome = place.run(&["send", "hello"]);
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.stderr.contains("nobody listens"), "{}", outcome.stderr);
}

#[test]
fn a_job_outlives_the_gateway_that_had_it_and_who_followed_it_is_told() {
    let mut serving = Serving::start();
    let args = ["run", "--daemon", "--output", "stream-json", "sim:hang"];
    let mut command = serving.place.ostler(&args);
    command.stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let jobs = ["queue", "list", "--state", "running", "--output", "json"];
    let job = until("the turn runs", || {
        serving.object(&jobs)["jobs"][0]["id"].as_str().map(str::to_owned)
    });
    serving.child.kill().unwrap();
    serving.child.wait().unwrap();
    let outcome = child.wait_with_output().unwrap();
    assert_eq!(outcome.status.code(), Some(1));
    let stderr = String::from_utf8(outcome.stderr).unwrap();
    assert!(stderr.contains(&job) && stderr.contains("closed the connection"), "{stderr}");
    let program = serving.place.path("agent");
    serving.child = serve(&serving.place, "claude", program.to_str().unwrap());
    until("the turn runs again", || (serving.job(&job)["attempt"] == 2).then_some(()));
    serving.run(&["queue", "cancel", &job]);
    until("the turn is cancelled", || (serving.job(&job)["state"] == "cancelled").then_some(()));
}
