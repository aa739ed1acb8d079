//! What goes wrong on purpose.

use reqwest::Method;

use super::rig::{BOB, Rig};
use crate::{support::LIMIT, twilio_double::Fault};

impl Rig {
    fn try_send(&self) -> reqwest::Result<u16> {
        let (user, password) = (self.twilio.account_sid(), self.twilio.auth_token());
        let (path, from) = (self.path("/Messages.json"), self.ours(BOB));
        let form = [("To", BOB), ("From", from.as_str()), ("Body", "x")];
        self.call_as(&user, &password, Method::POST, &path, &form).map(|answer| answer.status)
    }

    fn n_sent(&self) -> usize {
        self.twilio.messages_to(BOB).len()
    }
}

#[test]
fn requests_too_many_are_not_done_and_say_when_to_come_again() {
    let rig = Rig::new();
    rig.twilio.limit_next(1, Some(7));
    rig.twilio.limit_next(1, None);
    let path = rig.path("/Messages.json");
    let answer = rig.get(&path);
    assert_eq!((answer.code(), answer.headers["retry-after"].as_str()), ((429, 20429), "7"));
    let answer = rig.get(&path);
    assert_eq!((answer.code(), answer.headers.get("retry-after")), ((429, 20429), None));
    let answer = rig.get(&path);
    assert_eq!((answer.status, answer.headers["twilio-concurrent-requests"].as_str()), (200, "1"));
    assert_eq!(rig.twilio.limited(), 2);
}

#[test]
fn more_requests_at_once_than_the_limit_are_refused() {
    let rig = Rig::new();
    rig.twilio.limit(1);
    rig.twilio.hang_next(1);
    let begun = rig.begin(&rig.path("/Messages.json"));
    assert_eq!(rig.try_send().unwrap(), 429);
    rig.twilio.relax();
    assert_eq!(rig.try_send().unwrap(), 201);
    begun.abort();
}

#[test]
fn a_request_that_fails_is_done_or_not_as_planned() {
    let rig = Rig::new();
    for (fault, status, n_sent) in [
        (Fault::Fail(503), Some(503), 0),
        (Fault::Refuse(400, 63038), Some(400), 0),
        (Fault::Cut, None, 0),
        (Fault::DoneButFailed(502), Some(502), 1),
        (Fault::DoneButCut, None, 2),
    ] {
        rig.twilio.plan_sends(1, fault);
        assert_eq!(rig.try_send().ok(), status, "{fault:?}");
        assert_eq!(rig.n_sent(), n_sent, "{fault:?}");
    }
    assert_eq!(rig.twilio.look(|world| world.faults_left()), 0);
    let statuses: Vec<u16> = rig.twilio.requests().iter().map(|request| request.status).collect();
    assert_eq!(statuses, [503, 400, 0, 502, 0]);
}

#[test]
fn an_answer_can_be_late() {
    let rig = Rig::new();
    rig.twilio.plan_sends(1, Fault::Held);
    std::thread::scope(|scope| {
        let sent = scope.spawn(|| rig.try_send());
        rig.twilio.wait_for("it is done", LIMIT, |world| {
            (world.under_way() == 1 && !world.requests().is_empty()).then_some(())
        });
        assert!(!sent.is_finished());
        rig.twilio.answer_held();
        assert_eq!(sent.join().unwrap().unwrap(), 201);
    });
}

#[test]
fn a_request_that_hangs_is_under_way_until_its_client_leaves() {
    let rig = Rig::new();
    rig.twilio.hang_next(1);
    rig.begin(&rig.path("/Messages.json")).abort();
    rig.twilio
        .wait_for("nothing is under way", LIMIT, |world| (world.under_way() == 0).then_some(()));
    assert_eq!(rig.get(&rig.path("/Messages.json")).headers["twilio-concurrent-requests"], "1");
}
