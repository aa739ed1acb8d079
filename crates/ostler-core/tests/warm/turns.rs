//! Turns in a process that is kept.

use std::time::Duration;

use ostler_core::{
    Event, EventBody,
    event::{Mode, Status},
    failure::FailureKind,
};
use tokio::time::{Instant, timeout};

use crate::{
    LIMIT, Place, ended, eventually, failure, memo, ours,
    parrot::{FLOCK, PARROT, REFUSED, SWALLOW},
    rest, text, until, until_kind,
};

#[tokio::test]
async fn further_turns_of_a_session_find_their_process_waiting() {
    for spec in [&PARROT, &FLOCK] {
        let place = Place::new();
        let first = place.run(spec, "pid").await;
        assert_eq!((first.mode, first.exit_code), (Mode::Warm, None));
        let second = place.go_on(spec, &memo(&first), "pid").await;
        assert_eq!(text(&first), text(&second));
        let third = place.go_on(spec, &memo(&second), "count").await;
        assert_eq!(text(&third), "3");
        assert_eq!(third.session_id, first.session_id);
        place.close().await;
    }
}

#[tokio::test]
async fn an_agent_that_cannot_be_kept_has_a_process_for_the_turn_and_says_so() {
    let place = Place::new();
    let turn = place.start(&SWALLOW, place.request("hello")).await;
    let (events, report) = rest(turn).await;
    assert_eq!((report.mode, text(&report)), (Mode::OneShot, "hello"));
    let warns = |event: &&Event| matches!(&event.body, EventBody::Status(Status::Warning { text }) if text.contains("cannot be kept running"));
    assert_eq!(events.iter().filter(warns).count(), 1);
    place.close().await;
}

#[tokio::test]
async fn events_are_numbered_from_one_and_complete_is_the_last() {
    let place = Place::new();
    let turn = place.start(&PARROT, place.request("say hello")).await;
    let (events, report) = rest(turn).await;
    let kinds: Vec<_> = events.iter().map(|event| event.body.kind()).collect();
    assert_eq!(kinds, ["started", "status", "output"]);
    assert!(events.iter().zip(1..).all(|(event, number)| event.seq == number));
    assert_eq!(text(&report), "hello");
    place.close().await;
}

#[tokio::test]
async fn sessions_of_a_shared_process_run_side_by_side() {
    let place = Place::new();
    let mut waiting = place.start(&FLOCK, place.request("wait")).await;
    until_kind(&mut waiting, "output").await;
    let other = place.run(&FLOCK, "say meanwhile").await;
    assert_eq!(text(&other), "meanwhile");
    assert_eq!(place.host.pool_stats().await.started, 1);
    waiting.cancel();
    assert_eq!(failure(&ended(waiting).await), FailureKind::Cancelled);
    place.close().await;
}

#[tokio::test]
async fn sessions_that_cannot_share_have_processes_of_their_own() {
    let place = Place::new();
    let mut waiting = place.start(&PARROT, place.request("wait")).await;
    until_kind(&mut waiting, "output").await;
    assert_eq!(text(&place.run(&PARROT, "say meanwhile").await), "meanwhile");
    assert_eq!(place.host.pool_stats().await.started, 2);
    drop(waiting);
    place.close().await;
}

#[tokio::test]
async fn a_second_turn_of_a_session_waits_for_the_first() {
    let place = Place::new();
    let known = memo(&place.run(&PARROT, "say hi").await);
    let mut first = place.start(&PARROT, place.request("wait").resume(known.clone())).await;
    until_kind(&mut first, "output").await;
    let mut second = place.start(&PARROT, place.request("say next").resume(known)).await;
    let queued = until_kind(&mut second, "status").await;
    assert!(
        matches!(&queued.body, EventBody::Status(status) if status.code_and_text().0 == "queued")
    );
    first.cancel();
    ended(first).await;
    assert_eq!(text(&ended(second).await), "next");
    assert_eq!(place.host.pool_stats().await.started, 1);
    place.close().await;
}

#[tokio::test]
async fn a_queued_turn_can_be_cancelled_and_leaves_the_running_one_alone() {
    let place = Place::new();
    let known = memo(&place.run(&PARROT, "say hi").await);
    let mut first = place.start(&PARROT, place.request("ask x").resume(known.clone())).await;
    until_kind(&mut first, "permission").await;
    let mut second = place.start(&PARROT, place.request("say next").resume(known)).await;
    until_kind(&mut second, "status").await;
    second.cancel();
    assert_eq!(failure(&ended(second).await), FailureKind::Cancelled);
    let allow = ostler_core::permission::Answer::new(ostler_core::permission::Decision::Allow);
    first.answer("r2", allow).await.unwrap();
    assert_eq!(text(&ended(first).await), "yes");
    place.close().await;
}

#[tokio::test]
async fn a_queued_turn_gives_up_when_its_own_time_is_over() {
    let place = Place::new();
    let known = memo(&place.run(&PARROT, "say hi").await);
    let mut first = place.start(&PARROT, place.request("wait").resume(known.clone())).await;
    until_kind(&mut first, "output").await;
    let mut request = place.request("say next").resume(known);
    request.timeout = Duration::from_millis(50);
    let second = ended(place.start(&PARROT, request).await).await;
    assert_eq!(failure(&second), FailureKind::SessionBusy);
    drop(first);
    place.close().await;
}

#[tokio::test]
async fn a_cancelled_turn_leaves_the_session_usable_and_no_tool_running() {
    for spec in [&PARROT, &FLOCK] {
        let place = Place::new();
        let known = memo(&place.run(spec, "say hi").await);
        let mut turn = place.start(spec, place.request("tool").resume(known.clone())).await;
        let EventBody::Output { text: tool, .. } = until_kind(&mut turn, "output").await.body
        else {
            unreachable!()
        };
        let tool = std::path::Path::new("/proc").join(tool);
        assert!(tool.exists());
        turn.cancel();
        assert_eq!(failure(&ended(turn).await), FailureKind::Cancelled);
        eventually("the tool is gone", async || !is_running(&tool)).await;
        assert_eq!(text(&place.go_on(spec, &known, "count").await), "3");
        assert_eq!(place.host.pool_stats().await.started, 1);
        place.close().await;
    }
}

/// Returns whether a process runs; one that nobody has waited for yet does not.
fn is_running(process: &std::path::Path) -> bool {
    let stat = std::fs::read_to_string(process.join("stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

#[tokio::test]
async fn an_agent_that_does_not_cancel_is_stopped_and_replaced() {
    let place = Place::new();
    let known = memo(&place.run(&PARROT, "say hi").await);
    let mut turn = place.start(&PARROT, place.request("stubborn").resume(known.clone())).await;
    until_kind(&mut turn, "output").await;
    turn.cancel();
    assert_eq!(failure(&ended(turn).await), FailureKind::Cancelled);
    assert_eq!(text(&place.go_on(&PARROT, &known, "count").await), "1");
    assert_eq!(place.host.pool_stats().await.started, 2);
    place.close().await;
}

#[tokio::test]
async fn one_stubborn_session_of_a_shared_process_does_not_harm_the_others() {
    let place = Place::new();
    let other = memo(&place.run(&FLOCK, "say hi").await);
    let mut waiting = place.start(&FLOCK, place.request("ask x").resume(other.clone())).await;
    until_kind(&mut waiting, "permission").await;
    let mut turn = place.start(&FLOCK, place.request("stubborn")).await;
    until_kind(&mut turn, "output").await;
    turn.cancel();
    assert_eq!(failure(&ended(turn).await), FailureKind::Cancelled);
    // The process takes nobody new, but ends only after its last turn.
    let fresh = place.run(&FLOCK, "count").await;
    assert_eq!(text(&fresh), "1");
    let allow = ostler_core::permission::Answer::new(ostler_core::permission::Decision::Allow);
    waiting.answer("r2", allow).await.unwrap();
    assert_eq!(text(&ended(waiting).await), "yes");
    assert_eq!(text(&place.go_on(&FLOCK, &other, "say again").await), "again");
    place.close().await;
}

#[tokio::test]
async fn killing_a_turn_ends_it_at_once() {
    for spec in [&PARROT, &FLOCK] {
        let place = Place::new();
        let mut turn = place.start(spec, place.request("stubborn")).await;
        until_kind(&mut turn, "output").await;
        let asked = Instant::now();
        turn.kill();
        assert_eq!(failure(&ended(turn).await), FailureKind::Cancelled);
        assert!(asked.elapsed() < Duration::from_secs(2), "it waited for the agent");
        place.close().await;
    }
}

#[tokio::test]
async fn a_process_that_dies_in_a_turn_fails_it_at_once_and_is_replaced() {
    for (prompt, words) in [
        ("die", "Parrot CLI error (exit 137): unknown error"),
        ("leave", "Parrot CLI error (exit 7): some last words\n"),
    ] {
        for spec in [&PARROT, &FLOCK] {
            let place = Place::new();
            let known = memo(&place.run(spec, "grumble").await);
            let report = place.go_on(spec, &known, prompt).await;
            assert_eq!((failure(&report), text(&report)), (FailureKind::Crashed, words));
            assert_eq!(report.exit_code, None, "a kept process has no exit of the turn's");
            assert_eq!(text(&place.go_on(spec, &known, "count").await), "1");
            let stats = place.host.pool_stats().await;
            assert_eq!((stats.started, stats.died), (2, 1));
            place.close().await;
        }
    }
}

#[tokio::test]
async fn a_turn_that_waited_for_one_whose_process_died_finds_another() {
    let place = Place::new();
    let known = memo(&place.run(&PARROT, "say hi").await);
    let mut first = place.start(&PARROT, place.request("tool").resume(known.clone())).await;
    until_kind(&mut first, "output").await;
    let mut second = place.start(&PARROT, place.request("count").resume(known)).await;
    until_kind(&mut second, "status").await;
    first.kill();
    assert_eq!(failure(&ended(first).await), FailureKind::Cancelled);
    let (events, report) = rest(second).await;
    assert_eq!(text(&report), "1", "it ran in a new process");
    assert!(events.iter().zip(2..).all(|(event, number)| event.seq == number));
    place.close().await;
}

#[tokio::test]
async fn two_turns_of_a_session_that_is_not_open_yet_share_one_process() {
    for spec in [&PARROT, &FLOCK] {
        let place = Place::new();
        let known = ostler_core::Memo::of_id(&spec.name, "from-before");
        let start = |prompt: &str| place.start(spec, place.request(prompt).resume(known.clone()));
        let (first, second) = tokio::join!(start("say one"), start("say two"));
        let (first, second) = tokio::join!(ended(first), ended(second));
        assert_eq!((text(&first), text(&second)), ("one", "two"));
        assert_eq!(place.host.pool_stats().await.started, 1);
        place.close().await;
    }
}

#[tokio::test]
async fn a_process_that_leaves_in_peace_before_it_is_ready_has_not_answered() {
    let place = Place::new();
    let mut request = place.request("say hi");
    request.options.model = Some("leave-at-once".into());
    let report = ended(place.start(&PARROT, request).await).await;
    assert_eq!(failure(&report), FailureKind::UnreadableOutput);
    place.close().await;
}

#[tokio::test]
async fn killing_a_turn_that_waits_leaves_the_running_one_alone() {
    let place = Place::new();
    let known = memo(&place.run(&PARROT, "say hi").await);
    let mut first = place.start(&PARROT, place.request("wait").resume(known.clone())).await;
    until_kind(&mut first, "output").await;
    let mut second = place.start(&PARROT, place.request("say next").resume(known)).await;
    until_kind(&mut second, "status").await;
    second.kill();
    assert_eq!(failure(&ended(second).await), FailureKind::Cancelled);
    first.steer("still there").await.unwrap();
    assert_eq!(text(&ended(first).await), "still there");
    place.close().await;
}

#[tokio::test]
async fn a_turn_behind_one_that_the_agent_does_not_end_finds_another_process() {
    let place = Place::new();
    let known = memo(&place.run(&FLOCK, "say hi").await);
    let mut first = place.start(&FLOCK, place.request("stubborn").resume(known.clone())).await;
    until_kind(&mut first, "output").await;
    let mut second = place.start(&FLOCK, place.request("count").resume(known)).await;
    until_kind(&mut second, "status").await;
    first.cancel();
    assert_eq!(failure(&ended(first).await), FailureKind::Cancelled);
    assert_eq!(text(&ended(second).await), "1");
    place.close().await;
}

/// Waits until the agent has printed everything.
async fn flooded(place: &Place) {
    let done = place.dir.path().join("flooded");
    eventually("everything is printed", async || done.exists()).await;
}

#[tokio::test]
async fn an_answer_to_a_turn_that_waits_for_its_reader_does_not_wait_for_it() {
    let place = Place::new();
    let turn = place.start(&PARROT, place.request("flood")).await;
    // Everything is said while most of the events wait for this reader.
    flooded(&place).await;
    let allow = ostler_core::permission::Answer::new(ostler_core::permission::Decision::Allow);
    let refused = timeout(LIMIT, turn.answer("nothing", allow)).await.unwrap();
    assert!(refused.is_err());
    ended(turn).await;
    place.close().await;
}

#[tokio::test]
async fn an_agent_that_never_gets_ready_ends_in_the_turns_own_time_limit() {
    let place = Place::new();
    let mut request = place.request("say hi");
    request.options.model = Some("slow-start".into());
    request.timeout = Duration::from_millis(200);
    let report = ended(place.start(&PARROT, request).await).await;
    assert_eq!(failure(&report), FailureKind::Timeout);
    place.close().await;
}

#[tokio::test]
async fn a_process_that_closes_its_input_fails_the_turn_at_once() {
    let place = Place::new();
    let mut turn = place.start(&PARROT, place.request("deaf")).await;
    until_kind(&mut turn, "output").await;
    let asked = Instant::now();
    let report = ended(turn).await;
    assert_eq!(failure(&report), FailureKind::Crashed);
    assert!(asked.elapsed() < Duration::from_secs(5), "it was noticed by a time limit");
    place.close().await;
}

#[tokio::test]
async fn garbage_on_its_output_is_told_and_survived() {
    let place = Place::new();
    let turn = place.start(&PARROT, place.request("garbage")).await;
    let (events, report) = rest(turn).await;
    let unknown: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.body {
            EventBody::Unknown { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(unknown, ["no\u{fffd}thing", "{\"half\":"]);
    assert_eq!(text(&report), "still there");
    place.close().await;
}

#[tokio::test]
async fn a_session_that_cannot_be_opened_fails_its_turn_and_leaves_no_memo() {
    for spec in [&PARROT, &FLOCK] {
        let place = Place::new();
        let report = place.run(spec, "lost").await;
        assert_eq!(failure(&report), FailureKind::SessionLost);
        place.close().await;
    }
}

#[tokio::test]
async fn a_session_that_a_process_refuses_at_once_says_why() {
    let place = Place::new();
    let mut known = memo(&place.run(&FLOCK, "say hi").await);
    known.id = REFUSED.to_owned();
    let report = place.go_on(&FLOCK, &known, "say hi").await;
    assert_eq!(failure(&report), FailureKind::SessionLost);
    assert_eq!(text(&place.run(&FLOCK, "count").await), "2");
    place.close().await;
}

#[tokio::test]
async fn an_agent_that_works_without_a_word_is_not_silent() {
    let place = Place::new();
    let mut request = place.request("hum");
    request.idle_timeout = Duration::from_secs(4);
    let report = ended(place.start(&FLOCK, request).await).await;
    assert_eq!(text(&report), "hummed");
    place.close().await;
}

#[tokio::test]
async fn deadlines_and_silence_end_a_turn_and_not_the_session() {
    for (timeout, idle, words) in [
        (Duration::from_millis(200), LIMIT, "no answer within 200ms"),
        (LIMIT, Duration::from_millis(200), "the agent printed nothing for 200ms"),
    ] {
        for spec in [&PARROT, &FLOCK] {
            let place = Place::new();
            let known = memo(&place.run(spec, "say hi").await);
            let mut request = place.request("silence").resume(known.clone());
            (request.timeout, request.idle_timeout) = (timeout, idle);
            let report = ended(place.start(spec, request).await).await;
            assert_eq!(text(&report), "Query timed out");
            assert_eq!(report.error.unwrap().message, words);
            assert_eq!(text(&place.go_on(spec, &known, "count").await), "3");
            place.close().await;
        }
    }
}

#[tokio::test]
async fn a_slow_reader_loses_nothing() {
    for spec in [&PARROT, &FLOCK] {
        let place = Place::new();
        let mut turn = place.start(spec, place.request("flood")).await;
        until_kind(&mut turn, "output").await;
        flooded(&place).await;
        let (events, report) = rest(turn).await;
        let mut all = String::from("0");
        for event in &events {
            if let EventBody::Output { text, .. } = &event.body {
                all.push_str(text);
            }
        }
        let expected: String = (0..3000).map(|number| number.to_string()).collect();
        assert_eq!(all, expected);
        assert_eq!(text(&report), "flooded");
        place.close().await;
    }
}

#[tokio::test]
async fn a_steered_turn_takes_the_text_and_an_agent_that_cannot_says_so() {
    let place = Place::new();
    let mut turn = place.start(&PARROT, place.request("wait")).await;
    until_kind(&mut turn, "output").await;
    turn.steer("go left").await.unwrap();
    until(&mut turn, |event| {
        matches!(&event.body, EventBody::Status(status) if status.code_and_text() == ("steered", "go left"))
    })
    .await;
    assert_eq!(text(&ended(turn).await), "go left");
    let mut turn = place.start(&FLOCK, place.request("wait")).await;
    until_kind(&mut turn, "output").await;
    assert_eq!(
        turn.steer("x").await.unwrap_err().to_string().split(';').next(),
        Some("the agent cannot be steered")
    );
    drop(turn);
    place.close().await;
}

#[tokio::test]
async fn a_turn_that_nobody_asked_for_has_events_and_an_end_of_its_own() {
    let place = Place::new();
    let (listener, mut unasked) = tokio::sync::mpsc::channel(4);
    let agent = place.agent(&PARROT).with_unasked(listener);
    let turn = ostler_core::registry::Agent::start(&agent, place.request("background")).await;
    let report = ended(turn.unwrap()).await;
    assert_eq!(text(&report), "begun");
    let own = timeout(LIMIT, unasked.recv()).await.unwrap().unwrap();
    let (events, own) = rest(own).await;
    assert!(matches!(&events[0].body, EventBody::Started(started)
        if started.trigger == ostler_core::event::Trigger::Agent
            && started.session_id == report.session_id));
    assert_eq!(text(&own), "done in the background");
    assert_eq!(own.session_id, report.session_id);
    assert_eq!(text(&place.go_on(&PARROT, &memo(&report), "count").await), "2");
    place.close().await;
}

#[tokio::test]
async fn nobody_listens_and_the_unasked_turn_still_ends_before_the_next_begins() {
    let place = Place::new();
    let report = place.run(&PARROT, "long-background").await;
    let next = place.start(&PARROT, place.request("count").resume(memo(&report))).await;
    let (events, next) = rest(next).await;
    assert_eq!(text(&next), "2");
    assert!(events.iter().any(|event| matches!(&event.body,
        EventBody::Status(status) if status.code_and_text().0 == "queued")));
    place.close().await;
}

#[tokio::test]
async fn a_dropped_turn_is_cancelled() {
    let place = Place::new();
    let known = memo(&place.run(&PARROT, "say hi").await);
    let mut turn = place.start(&PARROT, place.request("wait").resume(known.clone())).await;
    until_kind(&mut turn, "output").await;
    drop(turn);
    assert_eq!(text(&place.go_on(&PARROT, &known, "count").await), "3");
    place.close().await;
}

#[tokio::test]
async fn shutting_down_cancels_what_runs_and_leaves_nobody() {
    let place = Place::new();
    let mut turns = Vec::new();
    for spec in [&PARROT, &FLOCK] {
        let mut turn = place.start(spec, place.request("tool")).await;
        until_kind(&mut turn, "output").await;
        turns.push(turn);
    }
    let Place { dir, host } = place;
    let (all_ended, ()) = tokio::join!(host.shutdown(LIMIT), async {
        for turn in turns {
            assert_eq!(failure(&ended(turn).await), FailureKind::Cancelled);
        }
    });
    assert!(all_ended);
    assert!(ours(dir.path()).is_empty());
}
