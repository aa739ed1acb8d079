//! Messages that come while the agent works.

use super::*;
use crate::{
    config::Busy,
    gateway::inbound::{Details, Origin},
    schedule::heartbeat::Made,
};

on_both! {
    async fn combined_messages_are_one_prompt_and_all_of_them_are_answered_by_it(store: Store) {
        let rig = Rig::new(store, Knobs { busy: Busy::Combine, ..Knobs::default() }).await;
        let first = rig.send("a", "gate").await.job;
        rig.until_hanging().await;
        let mut jobs = Vec::new();
        for text in ["one", "two", "three"] {
            jobs.push(rig.send("a", text).await.job);
        }
        rig.open_gate().await;
        rig.end_of(first).await;
        for job in &jobs {
            let (_, ending) = rig.end_of(*job).await;
            assert_eq!((ending.state, text_of(&ending).as_str()), (JobState::Done, "one//two//three"));
        }
        assert_eq!(rig.calls(), ["new|gate", "s1|one//two//three"]);
        rig.stop().await;
    }

    async fn what_wants_something_else_is_not_combined(store: Store) {
        let rig = Rig::new(store, Knobs { busy: Busy::Combine, ..Knobs::default() }).await;
        rig.send("a", "gate").await;
        rig.until_hanging().await;
        rig.send("a", "one").await;
        let wishes = Wishes { model: Some("large".to_owned()), ..Wishes::default() };
        rig.try_send(Inbound { wishes, ..inbound("a", "two") }).await.unwrap();
        rig.send("a", "/new three").await;
        let last = rig.send("a", "four").await.job;
        rig.open_gate().await;
        rig.end_of(last).await;
        assert_eq!(rig.calls(), ["new|gate", "s1|one", "s1|two", "new|three//four"]);
        rig.stop().await;
    }

    async fn a_combined_prompt_that_fails_leaves_the_others_their_own_turn(store: Store) {
        let rig = Rig::new(store, Knobs { busy: Busy::Combine, ..Knobs::default() }).await;
        rig.send("a", "gate").await;
        rig.until_hanging().await;
        let bad = rig.send("a", "fail").await.job;
        let good = rig.send("a", "good").await.job;
        rig.open_gate().await;
        assert_eq!(rig.end_of(bad).await.1.state, JobState::Dead);
        assert_eq!(text_of(&rig.end_of(good).await.1), "good");
        rig.stop().await;
    }

    async fn a_good_message_is_answered_though_a_bad_one_was_combined_with_it(store: Store) {
        let rig = Rig::new(store, Knobs { busy: Busy::Combine, ..Knobs::default() }).await;
        rig.send("a", "gate").await;
        rig.until_hanging().await;
        let good = rig.send("a", "good").await.job;
        let bad = rig.send("a", "fail").await.job;
        rig.open_gate().await;
        assert_eq!(text_of(&rig.end_of(good).await.1), "good");
        assert_eq!(rig.end_of(bad).await.1.state, JobState::Dead);
        assert_eq!(rig.calls(), ["new|gate", "s1|good//fail", "s1|good", "s1|fail"]);
        rig.stop().await;
    }

    async fn who_cancels_a_message_cancels_no_others_that_were_combined_with_it(store: Store) {
        let rig = Rig::new(store, Knobs { busy: Busy::Combine, ..Knobs::default() }).await;
        rig.send("a", "gate").await;
        rig.until_hanging().await;
        let first = rig.send("a", "hang").await.job;
        let second = rig.send("a", "second").await.job;
        rig.open_gate().await;
        rig.until_hanging().await;
        rig.gateway.cancel_job(first).await.unwrap();
        assert_eq!(rig.end_of(first).await.1.state, JobState::Cancelled);
        assert_eq!(text_of(&rig.end_of(second).await.1), "second");
        rig.stop().await;
    }

    async fn a_newer_message_interrupts_the_running_turn(store: Store) {
        let rig = Rig::new(store, Knobs { busy: Busy::Interrupt, ..Knobs::default() }).await;
        let running = rig.send("a", "hang").await.job;
        rig.until_hanging().await;
        let newer = rig.send("a", "instead").await.job;
        assert_eq!(rig.end_of(running).await.1.state, JobState::Cancelled);
        assert_eq!(text_of(&rig.end_of(newer).await.1), "instead");
        rig.stop().await;
    }

    async fn what_cannot_be_steered_waits_for_its_own_turn(store: Store) {
        let rig = Rig::new(store, Knobs { busy: Busy::Steer, ..Knobs::default() }).await;
        let running = rig.send("a", "gate").await.job;
        rig.until_hanging().await;
        let next = rig.send("a", "next").await.job;
        rig.open_gate().await;
        assert_eq!(text_of(&rig.end_of(running).await.1), "opened");
        assert_eq!(text_of(&rig.end_of(next).await.1), "next");
        rig.stop().await;
    }

    async fn transcripts_count_for_how_much_is_combined(store: Store) {
        let rig = Rig::new(store, Knobs { busy: Busy::Combine, ..Knobs::default() }).await;
        rig.send("a", "gate").await;
        rig.until_hanging().await;
        let mut last = None;
        for _ in 0..2 {
            let transcript = Some("long ".repeat(8_000));
            let details = Details { transcript, ..Details::default() };
            let sent = rig.try_send(Inbound { details, ..inbound("a", "") }).await.unwrap();
            last = Some(sent.job);
        }
        rig.open_gate().await;
        rig.end_of(last.unwrap()).await;
        assert_eq!(rig.calls().len(), 3);
        rig.stop().await;
    }

    async fn who_speaks_does_not_wait_behind_a_heartbeat(store: Store) {
        let rig = Rig::new(store.clone(), Knobs::default()).await;
        rig.ask("a", "one").await;
        rig.change(&Knobs { at_once: 0, ..Knobs::default() });
        let made = rig.gateway.heartbeat(None).await.unwrap();
        let Made::Job { job: beat, .. } = made else { panic!("{made:?}") };
        let hook = Inbound { origin: Origin::Hook, ..inbound("a", "by a hook") };
        rig.try_send(hook).await.unwrap();
        let queue = Queue::new(store);
        assert_eq!(queue.find(beat).await.unwrap().unwrap().state, JobState::Ready);
        rig.send("a", "two").await;
        assert_eq!(queue.find(beat).await.unwrap().unwrap().state, JobState::Cancelled);
        rig.stop().await;
    }
}
