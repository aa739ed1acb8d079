//! What a program that builds on the library relies on.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::{fs, os::unix::fs::PermissionsExt, path::Path, time::Duration};

use ostler_core::{
    CliAgent, EventBody, Host, HostConfig, TurnReport, TurnRequest,
    agent::codex,
    event::Status,
    failure::FailureKind,
    registry::Agent as _,
    request::{Format, SessionArgs, Template},
};

const ID: &str = "01a1e088-9109-7530-b2ac-e9fa07582dea";

struct Place {
    dir: tempfile::TempDir,
    host: Host,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path();
        let environment = [
            ("PATH", format!("{}:/usr/bin:/bin", path.join("bin").display())),
            ("HOME", path.display().to_string()),
            ("TMPDIR", path.display().to_string()),
            ("OSTLER_DATA_DIR", path.join("data").display().to_string()),
        ];
        let environment = environment.into_iter().map(|(k, v)| (k.into(), v.into())).collect();
        let host = Host::new(HostConfig::from_environment(environment));
        Self { dir, host }
    }

    fn program(&self, name: &str, script: &str) {
        let bin = self.dir.path().join("bin");
        fs::create_dir_all(&bin).unwrap();
        fs::write(bin.join(name), format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn codex(&self) -> CliAgent {
        CliAgent::new(&codex::SPEC, self.host.clone()).with_program("codex")
    }

    fn request(&self, prompt: &str) -> TurnRequest {
        TurnRequest::new(prompt, self.dir.path())
    }

    async fn run(&self, request: TurnRequest) -> TurnReport {
        self.codex().start(request).await.unwrap().end().await.unwrap()
    }
}

fn lines(answer: &str) -> String {
    format!(
        r#"echo '{{"type":"thread.started","thread_id":"{ID}"}}'
echo '{{"type":"item.completed","item":{{"id":"i","type":"agent_message","text":"{answer}"}}}}'
echo '{{"type":"turn.completed","usage":{{"input_tokens":5,"output_tokens":2}}}}'"#
    )
}

#[tokio::test]
async fn a_turn_can_be_cancelled_by_its_session() {
    let place = Place::new();
    place.program(
        "codex",
        &format!("echo '{{\"type\":\"thread.started\",\"thread_id\":\"{ID}\"}}'; exec sleep 600"),
    );
    let agent = place.codex();
    let mut turn = agent.start(place.request("hi")).await.unwrap();
    while let Some(event) = turn.next().await {
        if matches!(event.body, EventBody::Status(Status::Session { .. })) {
            break;
        }
    }
    assert_eq!(agent.cancel_session("another"), 0);
    assert_eq!(agent.cancel_session(ID), 1);
    let report = turn.end().await.unwrap();
    assert_eq!(report.error.unwrap().kind, FailureKind::Cancelled);
    assert_eq!(agent.cancel_session(ID), 0);
}

#[tokio::test]
async fn a_cancel_before_the_process_has_started_counts_too() {
    let place = Place::new();
    place.program("codex", "exec sleep 600");
    let turn = place.codex().start(place.request("hi")).await.unwrap();
    turn.cancel();
    let report = turn.end().await.unwrap();
    assert_eq!(report.error.unwrap().kind, FailureKind::Cancelled);
}

#[tokio::test]
async fn dropping_a_turn_ends_its_process_and_shutdown_waits_for_that() {
    let place = Place::new();
    place.program("codex", "echo $$ > pid; echo ready; exec sleep 600");
    let mut turn = place.codex().start(place.request("hi")).await.unwrap();
    while let Some(event) = turn.next().await {
        if matches!(&event.body, EventBody::Unknown { text, .. } if text == "ready") {
            break;
        }
    }
    drop(turn);
    assert!(place.host.shutdown(Duration::from_secs(20)).await);
    let pid = fs::read_to_string(place.dir.path().join("pid")).unwrap();
    assert!(!Path::new("/proc").join(pid.trim()).exists(), "the process is still there");
    assert!(place.codex().start(place.request("hi")).await.is_err(), "the host is closed");
}

#[tokio::test]
async fn a_template_runs_another_program_and_its_output_is_read_whatever_it_is() {
    let place = Place::new();
    place.program("wrapper", &format!("echo a banner; {}", lines("from JSON")));
    place.program("plain", "echo \"text for $1\"");
    for (program, format, text) in [
        ("wrapper", Some(Format::Json), "from JSON"),
        ("wrapper", None, "from JSON"),
        ("plain", None, "text for hello"),
        ("plain", Some(Format::Text), "text for hello"),
    ] {
        let mut request = place.request("hello");
        let command = vec![program.to_owned(), "{{Body}}".to_owned()];
        request.options.template = Some(Template { command, format, ..Template::default() });
        let report = place.run(request).await;
        assert_eq!(report.error, None, "{program} {format:?}");
        assert_eq!(report.response_text.as_deref(), Some(text), "{program} {format:?}");
    }
}

#[tokio::test]
async fn another_program_gets_no_system_prompt_which_is_said() {
    let place = Place::new();
    for name in ["codex", "wrapper"] {
        place.program(name, "echo hello");
    }
    for (program, system, n_warnings) in
        [("wrapper", Some("Be brief."), 1), ("wrapper", None, 0), ("codex", Some("Be brief."), 0)]
    {
        let mut request = place.request("hello");
        let command = vec![program.to_owned(), "{{Body}}".to_owned()];
        request.options.template = Some(Template { command, ..Template::default() });
        request.options.system_prompt = system.map(str::to_owned);
        let mut turn = place.codex().start(request).await.unwrap();
        let mut n_told = 0;
        while let Some(event) = turn.next().await {
            let is_it = |text: &String| text.contains("does not get the system prompt");
            if matches!(&event.body, EventBody::Status(Status::Warning { text }) if is_it(text)) {
                n_told += 1;
            }
        }
        assert_eq!(n_told, n_warnings, "{program} {system:?}");
    }
}

#[tokio::test]
async fn a_message_that_is_too_long_for_a_template_is_the_callers_mistake() {
    let place = Place::new();
    place.program("wrapper", "echo hello");
    let mut request = place.request(&"x".repeat(128 * 1024));
    let command = vec!["wrapper".to_owned(), "{{Body}}".to_owned()];
    request.options.template = Some(Template { command, ..Template::default() });
    let failure = place.codex().start(request).await.err().unwrap().failure();
    assert_eq!((failure.kind, failure.kind.retryable()), (FailureKind::InvalidRequest, false));
    assert!(failure.message.contains("goes to standard input"), "{}", failure.message);
}

#[tokio::test]
async fn session_arguments_of_a_template_can_be_replaced() {
    let place = Place::new();
    place.program("codex", "echo \"$@\"");
    let mut request = place.request("hello");
    let resume = Some(vec!["--thread".to_owned(), "{{SessionId}}".to_owned()]);
    let session = SessionArgs { resume, ..SessionArgs::default() };
    let command = vec!["codex".to_owned(), "{{Body}}".to_owned()];
    request.options.template =
        Some(Template { command, format: Some(Format::Text), session, ..Template::default() });
    let report = place.run(request.resume(ostler_core::Memo::of_id("codex", ID))).await;
    let text = report.response_text.unwrap();
    assert!(text.starts_with("exec ") && text.ends_with(&format!("--thread {ID} hello")), "{text}");
}
