//! What an agent asks, and what becomes of it.

use std::time::Duration;

use ostler_core::{
    Event, EventBody, Turn,
    event::Status,
    failure::FailureKind,
    permission::{Answer, DecidedBy, Decision},
    turn::SayError,
};

use crate::{
    Place, ended, failure, memo,
    parrot::{FLOCK, PARROT},
    rest, text, until_kind,
};

fn resolutions(events: &[Event]) -> Vec<(&str, Decision, DecidedBy)> {
    let resolved = events.iter().filter_map(|event| match &event.body {
        EventBody::Status(Status::PermissionResolved { request, decision, by }) => {
            Some((request.as_str(), *decision, *by))
        }
        _ => None,
    });
    resolved.collect()
}

async fn asked(turn: &mut Turn) -> (String, String) {
    let event = until_kind(turn, "permission").await;
    let EventBody::Permission(permission) = event.body else { unreachable!() };
    assert!(permission.expires_at.is_some());
    assert_eq!(permission.options, ["allow", "allow_always", "deny"]);
    (permission.request, permission.title)
}

#[tokio::test]
async fn what_is_allowed_happens_and_what_is_denied_does_not() {
    for spec in [&PARROT, &FLOCK] {
        let place = Place::new();
        for (decision, words, answer) in [
            (Decision::Allow, None, "yes"),
            (Decision::Deny, Some("not today"), "no not today"),
            (Decision::Deny, None, "no denied"),
        ] {
            let mut turn = place.start(spec, place.request("ask rm x")).await;
            let (request, title) = asked(&mut turn).await;
            assert_eq!(title, "rm x");
            let said = Answer { decision, text: words.map(str::to_owned) };
            turn.answer(&request, said.clone()).await.unwrap();
            let again = turn.answer(&request, said).await.unwrap_err();
            assert!([SayError::NotAsked, SayError::Over].contains(&again), "{again}");
            let (events, report) = rest(turn).await;
            assert_eq!(resolutions(&events), [(request.as_str(), decision, DecidedBy::User)]);
            assert_eq!(text(&report), answer);
        }
        place.close().await;
    }
}

#[tokio::test]
async fn always_is_remembered_for_the_session_and_the_same_input_only() {
    let place = Place::new();
    let mut turn = place.start(&FLOCK, place.request("ask make test")).await;
    let (request, _) = asked(&mut turn).await;
    turn.answer(&request, Answer::new(Decision::AllowAlways)).await.unwrap();
    let known = memo(&ended(turn).await);
    let turn = place.start(&FLOCK, place.request("ask make test").resume(known.clone())).await;
    let (events, report) = rest(turn).await;
    assert_eq!(resolutions(&events), [("r2", Decision::Allow, DecidedBy::Session)]);
    assert!(!events.iter().any(|event| event.body.kind() == "permission"));
    assert_eq!(text(&report), "yes");
    for request in [place.request("ask make clean").resume(known), place.request("ask make test")] {
        let mut turn = place.start(&FLOCK, request).await;
        let (request, _) = asked(&mut turn).await;
        turn.answer(&request, Answer::new(Decision::Deny)).await.unwrap();
        ended(turn).await;
    }
    place.close().await;
}

#[tokio::test]
async fn always_outlives_the_process_that_had_the_session_open() {
    for spec in [&PARROT, &FLOCK] {
        let place = Place::new();
        let mut turn = place.start(spec, place.request("ask make test")).await;
        let (request, _) = asked(&mut turn).await;
        turn.answer(&request, Answer::new(Decision::AllowAlways)).await.unwrap();
        let known = memo(&ended(turn).await);
        assert_eq!(failure(&place.go_on(spec, &known, "die").await), FailureKind::Crashed);
        let turn = place.start(spec, place.request("ask make test").resume(known)).await;
        let (events, report) = rest(turn).await;
        assert_eq!(resolutions(&events), [("r1", Decision::Allow, DecidedBy::Session)]);
        assert_eq!(text(&report), "yes");
        place.close().await;
    }
}

#[tokio::test]
async fn what_nobody_answers_is_denied_and_silence_does_not_count_meanwhile() {
    let place = Place::new();
    let mut request = place.request("ask rm x");
    request.ask_timeout = Duration::from_millis(300);
    request.idle_timeout = Duration::from_millis(100);
    let (events, report) = rest(place.start(&PARROT, request).await).await;
    assert_eq!(resolutions(&events), [("r1", Decision::Deny, DecidedBy::Timeout)]);
    assert_eq!(text(&report), "no nobody answered within 300ms");
    place.close().await;
}

#[tokio::test]
async fn cancelling_denies_what_is_open_first() {
    for spec in [&PARROT, &FLOCK] {
        let place = Place::new();
        let known = memo(&place.run(spec, "say hi").await);
        let mut turn = place.start(spec, place.request("ask-twice").resume(known.clone())).await;
        asked(&mut turn).await;
        asked(&mut turn).await;
        turn.cancel();
        let (events, report) = rest(turn).await;
        let denied = |request| (request, Decision::Deny, DecidedBy::Cancel);
        assert_eq!(resolutions(&events), [denied("a-2"), denied("b-2")]);
        assert_eq!(failure(&report), FailureKind::Cancelled);
        assert_eq!(text(&place.go_on(spec, &known, "count").await), "3");
        place.close().await;
    }
}

#[tokio::test]
async fn a_request_that_the_agent_takes_back_needs_no_answer() {
    let place = Place::new();
    let (events, report) = rest(place.start(&PARROT, place.request("withdraw")).await).await;
    assert_eq!(resolutions(&events), [("w1", Decision::Deny, DecidedBy::Agent)]);
    assert_eq!(text(&report), "withdrew");
    place.close().await;
}

#[tokio::test]
async fn an_answer_to_nothing_is_refused_and_changes_nothing() {
    let place = Place::new();
    let mut turn = place.start(&PARROT, place.request("ask rm x")).await;
    let (request, _) = asked(&mut turn).await;
    let allow = || Answer::new(Decision::Allow);
    assert_eq!(turn.answer("nonsense", allow()).await, Err(SayError::NotAsked));
    turn.answer(&request, allow()).await.unwrap();
    let control = turn.control();
    assert_eq!(text(&ended(turn).await), "yes");
    assert_eq!(control.answer(&request, allow()).await, Err(SayError::Over));
    place.close().await;
}
