//! Hooks around the turns of a gateway.

use std::{path::Path, time::Duration};

use serde_json::Value;
use tempfile::TempDir;

use super::*;
use crate::{
    channel::testing::Receiver,
    config::{Busy, Hook, HookEvent, OnFailure, Scope, Sessions},
    gateway::inbound::Origin,
    hooks::testing::{instruction, shell, url},
    store::{
        conversations,
        testing::{age, lose_sessions},
    },
};

const TURN: &[HookEvent] = &[HookEvent::BeforeTurn];
const AFTER: &[HookEvent] = &[HookEvent::AfterTurn];
const OBSERVED: &[HookEvent] =
    &[HookEvent::BeforeTurn, HookEvent::AfterTurn, HookEvent::Error, HookEvent::SessionReset];

fn with(hooks: Vec<Hook>) -> Knobs {
    Knobs { hooks, ..Knobs::default() }
}

/// Makes a hook that writes down what it is told.
fn writer(on: &[HookEvent], folder: &TempDir) -> Hook {
    shell("log", on, &format!("cat >> {}", folder.path().join("told").display()))
}

/// Returns what was written down: all that happened, once the gateway stopped.
fn told(folder: &Path) -> Vec<Value> {
    let text = fs::read_to_string(folder.join("told")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns an event with one of its fields, in words.
fn events(folder: &Path, field: &str) -> Vec<String> {
    let all = told(folder);
    let word = |told: &Value| format!("{} {}", told["event"], told[field]).replace('"', "");
    let mut all: Vec<_> = all.iter().map(word).collect();
    // Those beside the turns may overtake each other.
    all.sort();
    all
}

async fn send_as(rig: &Rig, origin: Origin, text: &str) -> Accepted {
    rig.try_send(Inbound { origin, ..inbound("a", text) }).await.unwrap()
}

on_both! {
    async fn notes_stand_before_the_prompt_in_the_order_of_the_hooks(store: Store) {
        let folder = tempfile::tempdir().unwrap();
        let knobs = with(vec![
            instruction("z", TURN, "Be brief."),
            shell("b", TURN, "echo 'it is late'"),
            shell("quiet", TURN, "true"),
            shell("broken", TURN, "echo no; exit 1"),
            writer(OBSERVED, &folder),
        ]);
        let rig = Rig::new(store, knobs).await;
        rig.ask("a", "hello").await;
        assert_eq!(rig.calls(), ["new|Be brief.//it is late//hello"]);
        rig.stop().await;
        let told = told(folder.path());
        let events: Vec<_> = told.iter().map(|told| told["event"].as_str().unwrap()).collect();
        assert_eq!(events, ["before_turn", "after_turn"]);
        for told in &told {
            assert_eq!((&told["text"], &told["sender"], &told["agent"]), (&json!("hello"), &json!("me"), &json!("pi")));
            assert_eq!((&told["conversation"]["channel"], &told["conversation"]["address"]), (&json!("local"), &json!("a")));
            assert_eq!(told["turn"], told["id"].as_str().unwrap().split(':').next().unwrap());
        }
        assert_eq!((&told[0]["outcome"], &told[0]["session_id"]), (&json!(null), &json!(null)));
        assert_eq!((&told[1]["outcome"], &told[1]["session_id"]), (&json!("done"), &json!("s1")));
        assert!(told[1]["response_text"].as_str().unwrap().ends_with("hello"));
    }

    async fn each_try_has_its_hooks_and_a_failure_for_good_is_told_once(store: Store) {
        let folder = tempfile::tempdir().unwrap();
        let knobs = Knobs { retries: 1, ..with(vec![writer(OBSERVED, &folder)]) };
        let rig = Rig::new(store, knobs).await;
        let job = rig.send("a", "fail").await.job;
        rig.end_of(job).await;
        rig.stop().await;
        assert_eq!(
            events(folder.path(), "outcome"),
            ["after_turn dead", "after_turn retry", "before_turn null", "before_turn null", "error dead"],
        );
        let told = told(folder.path());
        let error = told.iter().find(|told| told["event"] == "error").unwrap();
        assert_eq!(error["error"]["kind"], "crashed");
        assert!(error["error"]["message"].as_str().unwrap().contains("it broke"));
    }

    async fn a_hook_can_keep_a_turn_from_beginning(store: Store) {
        let folder = tempfile::tempdir().unwrap();
        let strict = Hook { on_failure: OnFailure::Fail, ..shell("quota", TURN, "echo secret >&2; exit 1") };
        let after = shell("never", TURN, "echo never");
        let knobs = Knobs { retries: 2, ..with(vec![strict.clone(), after, writer(OBSERVED, &folder)]) };
        let rig = Rig::new(store.clone(), knobs).await;
        let job = rig.try_send(from_outside("hello")).await.unwrap().job;
        let (events_of_it, ending) = rig.end_of(job).await;
        assert_eq!(ending.state, JobState::Dead);
        let kinds: Vec<_> = events_of_it.iter().map(|event| event["type"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["error", "complete"]);
        assert!(rig.calls().is_empty());
        let reply = &replies(&store).await[0];
        assert_eq!(reply["error"]["kind"], "denied");
        assert_eq!(reply["error"]["message"], "the hook quota failed: it ended with exit code 1");
        // Live: the next turn goes by what is configured then.
        rig.change(&with(vec![Hook { on_failure: OnFailure::Ignore, ..strict }]));
        assert_eq!(rig.ask("b", "hello").await, "hello");
        rig.change(&with(vec![instruction("new", TURN, "note")]));
        rig.ask("b", "again").await;
        assert_eq!(rig.calls(), ["new|hello", "s1|note//again"]);
        rig.stop().await;
        assert_eq!(events(folder.path(), "outcome"), ["after_turn dead", "error dead"]);
    }

    async fn cancelling_a_turn_ends_the_hook_before_it(store: Store) {
        let mut receiver = Receiver::start().await;
        let rig = Rig::new(store, with(vec![url("slow", TURN, &receiver.url)])).await;
        let job = rig.send("a", "never").await.job;
        let request = receiver.next().await;
        assert_eq!(rig.gateway.cancel_job(job).await.unwrap(), CancelOutcome::Requested);
        let (_, ending) = rig.end_of(job).await;
        assert_eq!(ending.state, JobState::Cancelled);
        request.hold().await;
        // One that is stopped with its gateway is begun again by the next.
        let job = rig.send("a", "later").await.job;
        let request = receiver.next().await;
        let rig = rig.again().await;
        request.hold().await;
        receiver.next().await.answer_with(200, "Content-Type: text/plain", "noted");
        assert_eq!(rig.end_of(job).await.1.state, JobState::Done);
        assert_eq!(rig.calls(), ["new|noted//later"]);
        rig.stop().await;
    }

    async fn a_slow_hook_after_a_turn_does_not_delay_the_answer_or_the_next(store: Store) {
        let mut receiver = Receiver::start().await;
        let rig = Rig::new(store, with(vec![url("slow", AFTER, &receiver.url)])).await;
        rig.ask("a", "one").await;
        let held = receiver.next().await;
        assert_eq!(rig.ask("a", "two").await, "two");
        receiver.next().await.answer(200);
        held.answer(200);
        rig.stop().await;
    }

    async fn an_instruction_after_a_turn_is_a_turn_and_is_not_followed_by_another(store: Store) {
        let mut receiver = Receiver::start().await;
        let both = &[HookEvent::AfterTurn, HookEvent::Error];
        let rig = Rig::new(store, with(vec![
            instruction("follow", AFTER, "Anything else?"),
            instruction("why", &[HookEvent::Error], "fail again."),
            url("told", both, &receiver.url),
        ])).await;
        rig.ask("a", "hello").await;
        for (origin, sender) in [("person", "me"), ("hook", "hook follow")] {
            let request = receiver.next().await;
            assert_eq!((&request.body["origin"], &request.body["sender"]), (&json!(origin), &json!(sender)));
            request.answer(200);
        }
        assert_eq!(rig.calls(), ["new|hello", "s1|Anything else?"]);
        // A failure: after_turn and error, of the message and of what followed.
        let job = rig.send("a", "fail").await.job;
        rig.end_of(job).await;
        for _ in 0..4 {
            receiver.next().await.answer(200);
        }
        rig.stop().await;
        assert!(receiver.try_next().is_none());
    }

    async fn an_instruction_stays_in_its_conversation_whoever_shares_it(store: Store) {
        let mut receiver = Receiver::start().await;
        let sessions = Sessions { scope: Scope::PerSender, ..Sessions::default() };
        let hooks = vec![instruction("follow", AFTER, "more"), url("told", AFTER, &receiver.url)];
        let rig = Rig::new(store.clone(), Knobs { sessions, ..with(hooks) }).await;
        let accepted = rig.try_send(from_outside("hello")).await.unwrap();
        for _ in 0..2 {
            let request = receiver.next().await;
            assert_eq!(request.body["conversation"]["id"], json!(accepted.conversation));
            request.answer(200);
        }
        assert_eq!(rig.calls(), ["new|hello", "s1|more"]);
        assert_eq!(replies(&store).await.len(), 2);
        rig.stop().await;
    }

    async fn an_instruction_can_go_elsewhere(store: Store) {
        let mut receiver = Receiver::start().await;
        let conversation = Some(Address::new("local", "operator").unwrap());
        let tell = Hook { conversation, ..instruction("tell", &[HookEvent::Error], "Look.") };
        let rig = Rig::new(store, with(vec![tell, url("told", AFTER, &receiver.url)])).await;
        let job = rig.send("a", "fail").await.job;
        rig.end_of(job).await;
        receiver.next().await.answer(200);
        let request = receiver.next().await;
        assert_eq!(request.body["conversation"]["address"], "operator");
        request.answer(200);
        let call = &rig.calls()[1];
        assert!(call.starts_with("new|Look.//What went wrong: crashed: "), "{call}");
        rig.stop().await;
    }

    async fn an_instruction_that_goes_elsewhere_is_in_the_conversation_of_that_place(store: Store) {
        let mut receiver = Receiver::start().await;
        let to = Address::new("webhook", "http://127.0.0.1:9/ops").unwrap();
        let tell = Hook { conversation: Some(to.clone()), ..instruction("tell", &[HookEvent::Error], "Look.") };
        let hooks = vec![tell, url("told", AFTER, &receiver.url)];
        for (scope, place) in [
            (Scope::PerSender, to),
            (Scope::Global, Address::new("global", "all").unwrap()),
        ] {
            let sessions = Sessions { scope, ..Sessions::default() };
            let rig = Rig::new(store.clone(), Knobs { sessions, ..with(hooks.clone()) }).await;
            let job = rig.send("a", "fail").await.job;
            rig.end_of(job).await;
            receiver.next().await.answer(200);
            let request = receiver.next().await;
            let find = store.read(place, |conn, place| Box::pin(conversations::find_at(conn, place)));
            let found: Result<_, crate::store::StoreError> = find.await;
            assert_eq!(request.body["conversation"]["id"], json!(found.unwrap().unwrap().id));
            request.answer(200);
            rig.stop().await;
        }
    }

    async fn an_end_that_the_store_does_not_take_is_a_failure_whose_events_come_before_it(store: Store) {
        let folder = tempfile::tempdir().unwrap();
        let rig = Rig::new(store.clone(), with(vec![writer(OBSERVED, &folder)])).await;
        let job = rig.send("a", "gate").await.job;
        rig.until_hanging().await;
        lose_sessions(&store).await;
        rig.open_gate().await;
        let (events, ending) = rig.end_of(job).await;
        assert_eq!((ending.state, ending.reason.as_deref()), (JobState::Dead, Some("what came of it cannot be stored")));
        assert_eq!(events.last().unwrap()["type"], "complete");
        rig.stop().await;
        let told = told(folder.path());
        let after = told.iter().find(|told| told["event"] == "after_turn").unwrap();
        assert_eq!((&after["outcome"], &after["response_text"]), (&json!("dead"), &json!(null)));
        assert_eq!(after["error"]["kind"], "internal");
    }

    async fn every_fresh_start_is_told_with_its_reason_and_the_session_that_ended(store: Store) {
        let folder = tempfile::tempdir().unwrap();
        let reset = &[HookEvent::SessionReset];
        let sessions = Sessions { idle: Some(Duration::from_secs(60)), ..Sessions::default() };
        let knobs = Knobs { sessions, ..with(vec![writer(reset, &folder)]) };
        let rig = Rig::new(store.clone(), knobs).await;
        let lost = rig.send("a", "one").await;
        rig.end_of(lost.job).await;
        rig.ask("a", "lost").await; // s1 → s2
        let asked = rig.send("a", "/new").await;
        rig.end_of(asked.job).await;
        rig.ask("a", "two").await; // s3
        rig.ask("a", "/new three").await; // s4
        age(&store, asked.conversation, Duration::from_secs(61)).await;
        rig.ask("a", "four").await; // s5
        let wishes = Wishes { agent: Some("opencode".to_owned()), ..Wishes::default() };
        let sent = rig.try_send(Inbound { wishes: wishes.clone(), ..inbound("a", "five") }).await.unwrap();
        rig.end_of(sent.job).await;
        // Nothing ends where nothing was.
        let sent = rig.try_send(Inbound { wishes, ..inbound("new", "six") }).await.unwrap();
        rig.end_of(sent.job).await;
        rig.stop().await;
        let mut all: Vec<_> = told(folder.path())
            .iter()
            .map(|told| format!("{} {}", told["session_id"], told["reason"]).replace('"', ""))
            .collect();
        all.sort();
        assert_eq!(all, ["s1 lost", "s2 asked", "s3 asked", "s4 idle", "s5 agent"]);
    }

    async fn a_reset_that_a_hook_makes_is_told_but_not_followed(store: Store) {
        let mut receiver = Receiver::start().await;
        let reset = &[HookEvent::SessionReset];
        let hooks = vec![instruction("again", reset, "/new"), url("told", reset, &receiver.url)];
        let rig = Rig::new(store, with(hooks)).await;
        rig.send("a", "/new").await;
        for origin in ["person", "hook"] {
            let request = receiver.next().await;
            assert_eq!((&request.body["origin"], &request.body["reason"]), (&json!(origin), &json!("asked")));
            request.answer(200);
        }
        rig.stop().await;
        assert!(receiver.try_next().is_none());
    }

    async fn a_run_has_no_hooks_around_it(store: Store) {
        let folder = tempfile::tempdir().unwrap();
        let hooks = vec![instruction("note", TURN, "note"), writer(OBSERVED, &folder)];
        let rig = Rig::new(store, with(hooks)).await;
        for text in ["hello", "fail"] {
            let job = send_as(&rig, Origin::Run, text).await.job;
            rig.end_of(job).await;
        }
        assert_eq!(rig.calls(), ["new|hello", "s1|fail"]);
        rig.stop().await;
        assert!(told(folder.path()).is_empty());
    }

    async fn what_a_hook_says_is_no_word_of_a_person(store: Store) {
        let rig = Rig::new(store.clone(), Knobs { busy: Busy::Combine, ..Knobs::default() }).await;
        let gate = rig.send("a", "gate").await;
        rig.until_hanging().await;
        age(&store, gate.conversation, Duration::from_secs(30)).await;
        let heard = || async {
            let find = store.read(gate.conversation, |conn, id| Box::pin(conversations::find(conn, *id)));
            let found: Result<_, crate::store::StoreError> = find.await;
            found.unwrap().unwrap().last_user_at
        };
        let before = heard().await;
        send_as(&rig, Origin::Hook, "by a hook").await;
        assert_eq!(heard().await, before);
        rig.send("a", "by me").await;
        assert_ne!(heard().await, before);
        let last = rig.send("a", "and me").await.job;
        rig.open_gate().await;
        rig.end_of(last).await;
        // They are not answered together, and people's are.
        assert_eq!(rig.calls(), ["new|gate", "s1|by a hook", "s1|by me//and me"]);
        // Nor does it interrupt what somebody asked.
        rig.change(&Knobs { busy: Busy::Interrupt, ..Knobs::default() });
        let gate = rig.send("a", "gate").await.job;
        rig.until_hanging().await;
        send_as(&rig, Origin::Hook, "waits").await;
        rig.open_gate().await;
        assert_eq!(rig.end_of(gate).await.1.state, JobState::Done);
        rig.stop().await;
    }
}
