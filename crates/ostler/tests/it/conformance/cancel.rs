//! Stopping a turn, and what must not be left of it.

use super::{Facts, for_every_agent, rig::Rig};
use crate::support::{processes_with, until};

for_every_agent! {
    cancel_in_the_middle_of_a_text_leaves_a_usable_session
    cancel_in_the_middle_of_a_tool_leaves_nothing_running
    a_timeout_in_the_middle_of_a_tool_leaves_nothing_running
    a_tool_that_moved_to_its_own_session_ends_with_the_turn
    sigkill_of_ostler_in_the_middle_of_a_tool_leaves_nothing_running
}

/// Time limits for a turn that is to end in the middle of a tool. How long a CLI
/// takes until then depends on what else the machine does, so one after the
/// other is tried.
pub(super) const LIMITS: [&str; 3] = ["12s", "30s", "80s"];

/// Returns a number of seconds that no other process on this machine sleeps.
pub(crate) fn unique_seconds() -> u32 {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    40_000 + (std::process::id() % 4000) * 10 + NEXT.fetch_add(1, Ordering::Relaxed)
}

fn assert_gone(word: &str) {
    let left = processes_with(word);
    assert!(left.is_empty(), "still running: {left:?}");
}

fn cancel_in_the_middle_of_a_text_leaves_a_usable_session(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let mut running = rig.start("sim:slow=60000", &[]);
    if facts.streams {
        running.wait_for(|event| event["type"] == "output");
    } else {
        running.wait_for(|event| event["code"] == "session");
        until("the model was asked", || (!rig.model.requests().is_empty()).then_some(()));
    }
    running.signal("INT");
    let (code, events) = running.finish();
    let last = events.last();
    assert_eq!(code, Some(130), "{last}");
    assert_eq!(
        (&last["error"]["kind"], &last["stop_reason"]),
        (&"cancelled".into(), &"cancelled".into())
    );
    rig.assert_clean();
    if !facts.keeps_cancelled_first_turn {
        assert_eq!(last["session_id"], serde_json::Value::Null, "{last}");
        return;
    }
    let session = last["session_id"].as_str().unwrap();
    let (code, events) = rig.ask("sim:history", &["--session", session]);
    assert_eq!(code, Some(0), "{}", events.last());
    assert!(events.text("output").contains("I remember 2 prompts"), "{}", events.last());
}

fn cancel_in_the_middle_of_a_tool_leaves_nothing_running(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let seconds = unique_seconds().to_string();
    let mut running = rig.start(&format!("sim:sleep-tool={seconds}"), &[]);
    if facts.shows_running_tool {
        running.wait_for(|event| event["type"] == "tool_use");
    }
    let sleep = format!("sleep\0{seconds}");
    until("the tool runs", || (!processes_with(&sleep).is_empty()).then_some(()));
    running.signal("INT");
    let (code, _) = running.finish();
    assert_eq!(code, Some(130));
    assert_gone(&sleep);
    rig.assert_clean();
}

fn a_timeout_in_the_middle_of_a_tool_leaves_nothing_running(facts: &'static Facts) {
    for limit in LIMITS {
        let Some(rig) = Rig::new(facts) else { return };
        let seconds = unique_seconds().to_string();
        let mut running = rig.start(&format!("sim:sleep-tool={seconds}"), &["--timeout", limit]);
        let sleep = format!("sleep\0{seconds}");
        let has_run = until("the tool runs, or there was no time for it", || {
            let runs = !processes_with(&sleep).is_empty();
            (runs || !running.is_running()).then_some(runs)
        });
        let (code, events) = running.finish();
        assert_eq!((code, &events.last()["response_text"]), (Some(124), &"Query timed out".into()));
        assert_gone(&sleep);
        if has_run {
            return;
        }
    }
    panic!("the tool never ran");
}

fn a_tool_that_moved_to_its_own_session_ends_with_the_turn(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let seconds = unique_seconds().to_string();
    let (code, events) = rig.ask(&format!("sim:daemon-tool={seconds}"), &[]);
    assert_eq!(code, Some(0), "{}", events.last());
    assert!(events.text("output").contains("started"), "the tool ran");
    assert_gone(&format!("sleep\0{seconds}"));
}

fn sigkill_of_ostler_in_the_middle_of_a_tool_leaves_nothing_running(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts) else { return };
    let seconds = unique_seconds().to_string();
    let mut running = rig.start(&format!("sim:sleep-tool={seconds}"), &[]);
    if facts.shows_running_tool {
        running.wait_for(|event| event["type"] == "tool_use");
    }
    let sleep = format!("sleep\0{seconds}");
    until("the tool runs", || (!processes_with(&sleep).is_empty()).then_some(()));
    running.signal("KILL");
    assert_eq!(running.wait(), None);
    until("the tool is gone", || processes_with(&sleep).is_empty().then_some(()));
    let cli = rig.place.path("work").display().to_string();
    until("the CLI is gone", || processes_with(&cli).is_empty().then_some(()));
    // The next run sweeps what the killed one could not.
    rig.ask("hello", &[]);
    rig.assert_clean();
}
