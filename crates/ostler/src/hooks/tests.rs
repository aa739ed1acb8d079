//! Which hooks are due, what they are told, and what becomes of those that do
//! not do as they should.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::sync::{Notify, oneshot};

use super::{
    happening::Reason,
    runner::Runner,
    testing::{hook, instruction, shell, url},
    *,
};
use crate::{
    channel::testing::Receiver,
    clock::Millis,
    id::{ConversationId, JobId, TurnId},
    store::conversations::Address,
};

const ALL: [HookEvent; 6] = [
    HookEvent::Start,
    HookEvent::Stop,
    HookEvent::BeforeTurn,
    HookEvent::AfterTurn,
    HookEvent::Error,
    HookEvent::SessionReset,
];

/// Makes something that happened in a conversation.
fn happened(event: HookEvent, origin: Origin) -> Happening {
    let turn = TurnId::new();
    Happening {
        subject: turn.to_string(),
        origin: Some(origin),
        conversation: Some((ConversationId::new(), Address::new("local", "main").unwrap())),
        job: Some(JobId::new()),
        attempt: Some(1),
        turn: Some(turn),
        agent: Some("pi".to_owned()),
        sender: Some("me".to_owned()),
        text: Some("what I said".to_owned()),
        outcome: Some(Outcome::Done),
        ..Happening::of_gateway(event, Millis(0))
    }
}

fn before_turn() -> Happening {
    happened(HookEvent::BeforeTurn, Origin::Person)
}

/// Runs one hook.
async fn run(hook: Hook, happening: &Happening) -> Result<Option<String>, String> {
    let hooks = Hooks::of(vec![hook.clone()]);
    Runner::new().run(&hooks, &hook, happening).await.map_err(|error| error.to_string())
}

fn on_turn(script: &str) -> Hook {
    shell("one", &[HookEvent::BeforeTurn], script)
}

#[test]
fn who_made_a_turn_says_which_hooks_follow() {
    use HookEvent::*;
    // By the origin: which events a command or URL hears of, and which an
    // instruction follows.
    let observed = [BeforeTurn, AfterTurn, Error, SessionReset];
    for (origin, observed, instructed) in [
        (Origin::Person, &observed[..], &observed[..]),
        (Origin::Heartbeat, &observed, &[BeforeTurn]),
        (Origin::Schedule, &observed, &[BeforeTurn]),
        (Origin::Hook, &observed, &[BeforeTurn]),
        (Origin::Run, &[], &[]),
    ] {
        let command = shell("command", &ALL, "");
        let instruction = instruction("instruction", &ALL, "x");
        let hooks = Hooks::of(vec![command, instruction]);
        for event in [BeforeTurn, AfterTurn, Error, SessionReset] {
            let happening = happened(event, origin);
            let due: Vec<_> = hooks.due(&happening).map(|hook| hook.name.as_str()).collect();
            let mut expected = Vec::new();
            expected.extend(observed.contains(&event).then_some("command"));
            expected.extend(instructed.contains(&event).then_some("instruction"));
            assert_eq!(due, expected, "{origin:?} {event:?}");
        }
    }
    let hooks = Hooks::of(vec![shell("a", &[Start], ""), instruction("b", &[Start, Stop], "x")]);
    let due = |event| hooks.due(&Happening::of_gateway(event, Millis(0))).count();
    assert_eq!((due(Start), due(Stop), due(Error)), (2, 1, 0));
}

#[test]
fn an_instruction_follows_only_a_turn_that_answered() {
    let hooks = Hooks::of(vec![
        instruction("tell", &[HookEvent::AfterTurn], "x"),
        shell("log", &[HookEvent::AfterTurn], ""),
    ]);
    for (outcome, n_due) in [
        (Outcome::Done, 2),
        (Outcome::Dead, 1),
        (Outcome::Cancelled, 1),
        (Outcome::Retry, 1),
        (Outcome::Released, 1),
    ] {
        let happening =
            Happening { outcome: Some(outcome), ..happened(HookEvent::AfterTurn, Origin::Person) };
        assert_eq!(hooks.due(&happening).count(), n_due, "{outcome:?}");
    }
}

#[test]
fn a_hook_can_be_for_some_channels_alone_and_all_are_in_the_order_of_the_file() {
    let of = |name: &str, channels: &[&str]| Hook {
        channels: Some(channels.iter().map(|channel| (*channel).to_owned()).collect()),
        ..shell(name, &[HookEvent::BeforeTurn], "")
    };
    let hooks = Hooks::of(vec![
        of("z", &["webhook", "local"]),
        of("b", &["webhook"]),
        shell("c", &[HookEvent::BeforeTurn], ""),
        of("a", &["local"]),
        of("none", &[]),
    ]);
    let due: Vec<_> = hooks.due(&before_turn()).map(|hook| hook.name.clone()).collect();
    assert_eq!(due, ["z", "c", "a"]);
}

#[tokio::test]
async fn a_command_reads_what_happened_and_has_nothing_else() {
    let happening =
        Happening { text: Some("$(touch /tmp/never) ; --help".to_owned()), ..before_turn() };
    let said =
        run(on_turn("cat; env | sort; echo \"arguments: $#\""), &happening).await.unwrap().unwrap();
    let (message, rest) = said.split_once('\n').unwrap();
    let message: Value = serde_json::from_str(message).unwrap();
    assert_eq!(message, happening.message(&on_turn("")));
    assert_eq!(message["text"], "$(touch /tmp/never) ; --help");
    assert!(!rest.contains("never") && !rest.contains("HOME"), "{rest}");
    for line in
        ["OSTLER_EVENT=before_turn", "OSTLER_HOOK=one", "PATH=/usr/bin:/bin", "arguments: 0"]
    {
        assert!(rest.lines().any(|other| other == line), "{line}: {rest}");
    }
}

#[test]
fn the_message_has_every_field_whether_it_means_anything_or_not() {
    let hook = shell("log", &ALL, "");
    let start = Happening::of_gateway(HookEvent::Start, Millis(1_500));
    let message = start.message(&hook);
    assert_eq!(
        message,
        json!({
            "event": "start", "hook": "log", "id": format!("{}:start:log", start.subject),
            "at": "1970-01-01T00:00:01.500Z", "conversation": null, "origin": null,
            "job": null, "attempt": null, "turn": null, "agent": null, "sender": null,
            "text": null, "response_text": null, "truncated": false, "error": null,
            "outcome": null, "session_id": null, "reason": null,
        })
    );
    let full = Happening {
        error: Some(("crashed".to_owned(), "it broke".to_owned())),
        session_id: Some("s1".to_owned()),
        reason: Some(Reason::Idle),
        text: Some("é".repeat(40_000)),
        ..happened(HookEvent::SessionReset, Origin::Person)
    };
    let message = full.message(&hook);
    assert_eq!(message.as_object().unwrap().len(), 18);
    assert_eq!(message["error"], json!({ "kind": "crashed", "message": "it broke" }));
    assert_eq!((&message["origin"], &message["reason"]), (&json!("person"), &json!("idle")));
    assert_eq!(message["conversation"]["channel"], "local");
    assert_eq!(message["id"], format!("{}:session_reset-idle:log", full.subject));
    let text = message["text"].as_str().unwrap();
    assert_eq!((text.len(), &message["truncated"]), (64 * 1024, &json!(true)));
}

#[tokio::test]
async fn what_a_command_prints_is_its_note() {
    for (script, note) in [
        ("echo; echo ' it is late '; echo", Some("it is late")),
        ("printf 'a\\0b\\nc'", Some("ab\nc")),
        ("true", None),
        ("echo '  '; echo why >&2", None),
    ] {
        let said = run(on_turn(script), &before_turn()).await.unwrap();
        assert_eq!(said.as_deref(), note, "{script}");
    }
}

#[tokio::test]
async fn a_command_that_fails_is_told_without_what_it_said() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("script");
    fs::write(&file, "#!/bin/sh\n").unwrap();
    let program = |name: &str| HookAction::Command(vec![name.to_owned()]);
    let on = &[HookEvent::BeforeTurn];
    for (hook, says) in [
        (on_turn("echo very-secret >&2; exit 3"), "it ended with exit code 3"),
        (on_turn("echo very-secret; kill -9 $$"), "it was ended by signal 9"),
        (hook("one", on, program("no-such-program")), "was not found in PATH"),
        (hook("one", on, program(file.to_str().unwrap())), "script"),
        (
            Hook { timeout: Duration::from_millis(200), ..on_turn("sleep 1000") },
            "longer than 200ms",
        ),
        (Hook { timeout: Duration::from_millis(200), ..on_turn("yes") }, "longer than 200ms"),
    ] {
        let error = run(hook, &before_turn()).await.unwrap_err();
        assert!(error.contains(says) && !error.contains("very-secret"), "{error}");
    }
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(
        run(hook("one", on, program(file.to_str().unwrap())), &before_turn()).await,
        Ok(None)
    );
}

/// Returns how much memory this process has had at most, in KiB.
fn most_memory() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_command_that_prints_a_gigabyte_costs_neither_memory_nor_the_turn() {
    let before = most_memory();
    // Without a single line end.
    let script = "head -c 1000000000 /dev/zero | tr '\\0' x; head -c 1000000 /dev/zero >&2";
    let said = run(on_turn(script), &before_turn()).await.unwrap().unwrap();
    assert_eq!(said.len(), 64 * 1024);
    // Other tests may run in the same process.
    assert!(most_memory() - before < 256 * 1024, "{} KiB", most_memory() - before);
}

#[tokio::test]
async fn a_child_that_holds_the_output_is_not_waited_for_and_does_not_stay() {
    let script = "setsid sh -c 'trap \"\" TERM HUP; sleep 1000; echo late' & echo $!";
    let pid = run(on_turn(script), &before_turn()).await.unwrap().unwrap();
    assert!(!Path::new("/proc").join(&pid).exists(), "{pid}");
}

#[tokio::test]
async fn a_url_is_posted_what_happened_and_answers_with_a_note() {
    let mut receiver = Receiver::start().await;
    for (header, body, note) in [
        (
            "Content-Type: application/json",
            r#"{"note": " mind the step "}"#,
            Ok(Some("mind the step")),
        ),
        ("Content-Type: application/json; charset=utf-8", r#"{"note": null}"#, Ok(None)),
        ("content-type: APPLICATION/JSON", r#"{"other": 1}"#, Ok(None)),
        ("Content-Type: application/json", "", Ok(None)),
        ("Content-Type: application/json", r#"{"note": 5}"#, Err("not a text")),
        ("Content-Type: application/json", "{", Err("not valid JSON")),
        ("Content-Type: text/plain; charset=utf-8", " it is late\n", Ok(Some("it is late"))),
        ("Content-Type: text/html", "<p>hello</p>", Ok(None)),
        ("X: y", "hello", Ok(None)),
    ] {
        let one = url("one", &[HookEvent::BeforeTurn], &format!("{}/x?y", receiver.url));
        let happening = before_turn();
        let (said, ()) = tokio::join!(run(one.clone(), &happening), async {
            let request = receiver.next().await;
            assert_eq!(request.path, "/x?y");
            assert_eq!(request.body, happening.message(&one));
            assert_eq!(request.key(), request.body["id"]);
            assert_eq!(request.headers["content-type"], "application/json");
            request.answer_with(200, header, body);
        });
        match note {
            Ok(note) => assert_eq!(said.unwrap().as_deref(), note, "{header} {body}"),
            Err(words) => assert!(said.unwrap_err().contains(words), "{body}"),
        }
    }
}

#[tokio::test]
async fn a_url_that_does_not_do_as_it_should_is_a_failure_that_does_not_name_it() {
    let mut receiver = Receiver::start().await;
    let (elsewhere, place) = (Receiver::start().await, format!("{}/very-secret", receiver.url));
    let one = |timeout| Hook { timeout, ..url("one", &[HookEvent::BeforeTurn], &place) };
    let patient = Duration::from_secs(60);
    let redirect = format!("Location: {}/", elsewhere.url);
    for (status, header, says) in [
        (500, "", "500 Internal Server Error"),
        (404, "", "404 Not Found"),
        (302, redirect.as_str(), "302 Found; redirects are not followed"),
        (307, redirect.as_str(), "redirects are not followed"),
    ] {
        let happening = before_turn();
        let (said, ()) = tokio::join!(run(one(patient), &happening), async {
            receiver.next().await.answer_with(status, header, "very-secret");
        });
        let error = said.unwrap_err();
        assert!(error.contains(says) && !error.contains("very-secret"), "{error}");
    }
    let mut elsewhere = elsewhere;
    assert!(elsewhere.try_next().is_none());
    // One that hangs, before its answer and in the middle of it.
    let (happening, soon) = (before_turn(), Duration::from_millis(300));
    let (said, ()) = tokio::join!(run(one(soon), &happening), async {
        receiver.next().await.hold().await;
    });
    assert_eq!(said.unwrap_err(), "it took longer than 300ms");
    let gone = url("one", &[HookEvent::BeforeTurn], "http://127.0.0.1:9/very-secret");
    let error = run(gone, &before_turn()).await.unwrap_err();
    assert!(!error.contains("very-secret"), "{error}");
}

#[tokio::test]
async fn of_an_answer_without_end_only_the_start_is_read() {
    let mut receiver = Receiver::start().await;
    let length = 1_000_000_000;
    for (kind, event, expected) in [
        ("text/plain", HookEvent::BeforeTurn, Ok(Some(64 * 1024))),
        ("application/json", HookEvent::BeforeTurn, Err(())),
        ("text/plain", HookEvent::AfterTurn, Ok(None)),
    ] {
        let one = url("one", &[event], &receiver.url);
        let happening = happened(event, Origin::Person);
        let (said, ()) = tokio::join!(run(one, &happening), async {
            let head = format!("HTTP/1.1 200 Test\r\nContent-Type: {kind}\r\n");
            let start = "x".repeat(1_000_000);
            let answer = format!("{head}Content-Length: {length}\r\n\r\n{start}");
            receiver.next().await.answer_raw(answer);
        });
        let said = said.map(|note| note.map(|note| note.len()));
        assert_eq!(said.map_err(drop), expected, "{kind} {event:?}");
    }
}

#[tokio::test]
async fn what_runs_beside_is_bounded_and_what_is_too_much_is_dropped() {
    let runner = Runner::new();
    let (open, happening) = (Arc::new(Notify::new()), before_turn());
    let (sender, mut done) = tokio::sync::mpsc::unbounded_channel();
    for number in 0..200 {
        let (open, sender) = (Arc::clone(&open), sender.clone());
        runner.beside(&happening, async move {
            open.notified().await;
            sender.send(number).unwrap();
            open.notify_one();
        });
    }
    drop(sender);
    open.notify_one();
    let mut ran = Vec::new();
    while let Some(number) = done.recv().await {
        ran.push(number);
    }
    ran.sort_unstable();
    assert_eq!(ran, (0..108).collect::<Vec<_>>());
    runner.stop(Duration::from_secs(60)).await;
}

#[tokio::test]
async fn a_hook_that_hangs_beside_is_ended_when_the_gateway_stops() {
    struct Tell(Option<oneshot::Sender<()>>);
    impl Drop for Tell {
        fn drop(&mut self) {
            self.0.take().unwrap().send(()).ok();
        }
    }
    let runner = Runner::new();
    let (sender, ended) = oneshot::channel();
    let tell = Tell(Some(sender));
    runner.beside(&before_turn(), async move {
        let _tell = tell;
        std::future::pending::<()>().await;
    });
    runner.stop(Duration::from_millis(50)).await;
    ended.await.unwrap();
}
