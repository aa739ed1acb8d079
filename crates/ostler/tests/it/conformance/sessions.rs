//! Going on with what was said before.

use super::{Facts, answers::assert_usage, for_every_agent, rig::Rig};

for_every_agent! {
    a_resumed_session_remembers_and_counts_only_its_own_turn
    continue_takes_the_newest_session_of_the_directory
    an_unknown_session_is_lost_and_nothing_else_is_started
    two_sessions_at_once_both_succeed
    the_same_session_twice_at_once_runs_one_after_the_other
}

fn a_resumed_session_remembers_and_counts_only_its_own_turn(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let (_, first) = rig.ask("My name is Ada.", &[]);
    let session = first.last()["session_id"].as_str().unwrap().to_owned();
    let mut costs = vec![first.last()["usage"]["cost_usd"].clone()];
    for n_prompts in 2..=3 {
        let (code, next) = rig.ask("sim:history", &["--session", &session]);
        assert_eq!(code, Some(0), "{}", next.last());
        let started = next.of_type("started").next().unwrap();
        assert_eq!(
            (&started["resumed"], &started["session_id"]),
            (&true.into(), &session.as_str().into())
        );
        assert_eq!(next.last()["session_id"], session);
        let text = next.last()["response_text"].as_str().unwrap();
        assert!(text.starts_with(&format!("I remember {n_prompts} prompts")), "{text}");
        assert_usage(facts, next.last(), 1);
        costs.push(next.last()["usage"]["cost_usd"].clone());
    }
    if facts.tells_cost {
        let costs: Vec<_> = costs.iter().map(|cost| cost.as_f64().unwrap()).collect();
        assert!(costs.windows(2).all(|pair| (pair[0] - pair[1]).abs() < 1e-9), "{costs:?}");
    }
}

fn continue_takes_the_newest_session_of_the_directory(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let none = rig.outcome("hello", &["--continue"]);
    assert_eq!(none.code, Some(2));
    assert!(none.stderr.contains("no session"), "{}", none.stderr);
    rig.ask("first", &[]);
    let (_, second) = rig.ask("second", &[]);
    let (code, next) = rig.ask("sim:history", &["--continue"]);
    assert_eq!(code, Some(0));
    assert_eq!(next.last()["session_id"], second.last()["session_id"]);
    assert!(next.text("output").contains("the first was: second"));
}

fn an_unknown_session_is_lost_and_nothing_else_is_started(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let unknown = "11111111-2222-4333-8444-555555555555";
    let (code, events) = rig.ask("hello", &["--session", unknown]);
    let last = events.last();
    assert_eq!(code, Some(1));
    assert_eq!(last["error"]["kind"], "session_lost", "{last}");
    assert_eq!(last["session_id"], serde_json::Value::Null);
    assert_eq!(events.statuses("session").len(), 0);
    assert!(rig.model.requests().is_empty(), "the model was asked");
}

fn two_sessions_at_once_both_succeed(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let both = [rig.start("sim:slow=1000", &[]), rig.start("sim:slow=1000", &[])];
    let ends = both.map(crate::support::Running::finish);
    for (code, events) in &ends {
        assert_eq!(*code, Some(0), "{}", events.last());
        assert_eq!(events.statuses("queued").len(), 0);
    }
    assert_ne!(ends[0].1.last()["session_id"], ends[1].1.last()["session_id"]);
}

fn the_same_session_twice_at_once_runs_one_after_the_other(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let (_, first) = rig.ask("first", &[]);
    let session = first.last()["session_id"].as_str().unwrap().to_owned();
    let mut slow = rig.start("second sim:slow=1500", &["--session", &session]);
    slow.wait_for(|event| event["type"] == "started");
    let (code, waited) = rig.ask("sim:history", &["--session", &session]);
    let (slow_code, _) = slow.finish();
    assert_eq!((code, slow_code), (Some(0), Some(0)));
    assert_eq!(waited.statuses("queued").len(), 1);
    let text = waited.last()["response_text"].as_str().unwrap();
    assert!(text.starts_with("I remember 3 prompts"), "{text}");
    assert_usage(facts, waited.last(), 1);
}
