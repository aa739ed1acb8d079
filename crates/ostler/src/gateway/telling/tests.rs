//! What is told of the end of an attempt.

use super::*;
use crate::{gateway::inbound::Origin, id::JobId};

fn news(turn: Option<TurnId>) -> News {
    let base = Happening {
        turn,
        origin: Some(Origin::Person),
        job: Some(JobId::new()),
        session_id: Some("old".to_owned()),
        ..Happening::of_gateway(HookEvent::Error, Millis(0))
    };
    News { base, wishes: Wishes::default(), reset: None }
}

fn end(error: Option<&str>, is_released: bool, forgets: bool) -> End {
    End {
        response_text: error.is_none().then(|| "answer".to_owned()),
        error: error.map(|kind| (kind.to_owned(), "why".to_owned())),
        session_id: None,
        is_released,
        forgets,
        taken: Vec::new(),
    }
}

#[test]
fn the_end_of_an_attempt_is_told_as_what_it_is() {
    use HookEvent::{AfterTurn, Error, SessionReset};
    let turn = Some(TurnId::new());
    let (done, crashed, lost) = (None, Some("crashed"), Some("session_lost"));
    for (turn, end, state, told) in [
        (
            turn,
            end(done, false, false),
            JobState::Done,
            vec![(AfterTurn, Some(Outcome::Done), None)],
        ),
        (
            turn,
            end(crashed, false, false),
            JobState::Dead,
            vec![(AfterTurn, Some(Outcome::Dead), None), (Error, Some(Outcome::Dead), None)],
        ),
        (
            turn,
            end(crashed, false, false),
            JobState::Ready,
            vec![(AfterTurn, Some(Outcome::Retry), None)],
        ),
        (
            turn,
            end(lost, false, true),
            JobState::Ready,
            vec![(AfterTurn, Some(Outcome::Retry), None), (SessionReset, None, Some(Reason::Lost))],
        ),
        (
            turn,
            end(Some("timeout"), false, true),
            JobState::Ready,
            vec![
                (AfterTurn, Some(Outcome::Retry), None),
                (SessionReset, None, Some(Reason::Failed)),
            ],
        ),
        (
            turn,
            end(Some("cancelled"), false, false),
            JobState::Cancelled,
            vec![(AfterTurn, Some(Outcome::Cancelled), None)],
        ),
        (
            turn,
            end(Some("cancelled"), true, false),
            JobState::Ready,
            vec![(AfterTurn, Some(Outcome::Released), None)],
        ),
        (
            None,
            end(done, false, true),
            JobState::Done,
            vec![(SessionReset, None, Some(Reason::Asked))],
        ),
        (
            None,
            end(Some("invalid_request"), false, false),
            JobState::Dead,
            vec![(Error, Some(Outcome::Dead), None)],
        ),
    ] {
        let all = news(turn).happenings(&end, state);
        let all: Vec<_> = all.iter().map(|it| (it.event, it.outcome, it.reason)).collect();
        assert_eq!(all, told, "{end:?} {state:?}");
    }
}

#[test]
fn a_reset_names_the_session_that_ended() {
    let all = news(None).happenings(&end(None, false, true), JobState::Done);
    assert_eq!(all[0].session_id.as_deref(), Some("old"));
}

#[test]
fn what_a_turn_was_told_while_it_ran_is_part_of_its_text() {
    let mut news = news(Some(TurnId::new()));
    news.base.text = Some("one".to_owned());
    let end = End { taken: vec!["two".to_owned(), "three".to_owned()], ..end(None, false, true) };
    let all = news.happenings(&end, JobState::Done);
    assert_eq!(all[0].text.as_deref(), Some("one\n\ntwo\n\nthree"));
    let before = news.of_reset(Reason::Asked, None);
    assert_eq!(before.text.as_deref(), Some("one"));
}

#[test]
fn an_end_that_the_store_did_not_take_is_told_as_a_failure_without_an_answer() {
    let mut end = end(None, false, true);
    end.is_not_stored();
    let all = news(Some(TurnId::new())).happenings(&end, JobState::Dead);
    assert_eq!(all.len(), 2);
    for told in all {
        let kind = told.error.map(|(kind, _)| kind);
        assert_eq!((kind.as_deref(), told.response_text), (Some("internal"), None));
    }
}
