//! Stopping a gateway, and what the next one finds.

use super::*;
use crate::{
    clock::Millis,
    config::Busy,
    id::TurnId,
    queue::{Queue, WorkerId},
    store::{
        StoreError,
        turns::{self, NewTurn, TurnState},
    },
};

on_both! {
    async fn a_turn_that_does_not_end_in_time_is_resumed_by_the_next_gateway(store: Store) {
        let rig = Rig::new(store, Knobs::default()).await;
        rig.ask("a", "one").await;
        let job = rig.send("a", "gate").await.job;
        let next = rig.send("a", "next").await.job;
        rig.until_hanging().await;
        let rig = rig.again().await;
        rig.until_hanging().await;
        rig.open_gate().await;
        let (events, ending) = rig.end_of(job).await;
        assert_eq!((ending.state, text_of(&ending).as_str()), (JobState::Done, "opened"));
        let begun: Vec<_> = events.iter().filter(|event| event["type"] == "started").collect();
        assert_eq!((&begun[0]["attempt"], &begun[1]["attempt"]), (&1.into(), &2.into()));
        assert_eq!(begun[1]["resumed"], true);
        assert_eq!(text_of(&rig.end_of(next).await.1), "next");
        assert_eq!(rig.calls(), ["new|one", "s1|gate", "s1|gate", "s1|next"]);
        rig.stop().await;
    }

    async fn a_turn_that_was_cut_off_by_a_stop_has_not_failed(store: Store) {
        let rig = Rig::new(store, Knobs { busy: Busy::Combine, retries: 1, ..Knobs::default() }).await;
        rig.ask("a", "one").await;
        let wishes = Wishes { session: Some("s9".to_owned()), ..Wishes::default() };
        let sent = |text| Inbound { wishes: wishes.clone(), ..inbound("a", text) };
        let job = rig.try_send(sent("gate")).await.unwrap().job;
        rig.until_hanging().await;
        rig.try_send(sent("and this")).await.unwrap();
        let rig = rig.again().await;
        rig.until_hanging().await;
        rig.open_gate().await;
        assert_eq!(text_of(&rig.end_of(job).await.1), "opened");
        assert_eq!(rig.calls(), ["new|one", "s9|gate", "s9|gate//and this"]);
        rig.stop().await;
    }

    async fn a_turn_may_end_while_the_gateway_stops_and_nothing_new_is_taken(store: Store) {
        let rig = Rig::new(store.clone(), Knobs::default()).await;
        let job = rig.send("a", "gate").await.job;
        let next = rig.send("a", "next").await.job;
        rig.until_hanging().await;
        rig.gateway.close();
        assert!(matches!(rig.try_send(inbound("b", "x")).await, Err(Refusal::Stopping)));
        rig.open_gate().await;
        rig.stop().await;
        let queue = Queue::new(store);
        assert_eq!(queue.find(job).await.unwrap().unwrap().state, JobState::Done);
        let next = queue.find(next).await.unwrap().unwrap();
        assert!(!next.state.is_over());
    }

    async fn a_job_whose_gateway_died_is_run_again_as_a_further_attempt(store: Store) {
        let queue = Queue::new(store.clone());
        let rig = Rig::new(store.clone(), Knobs { at_once: 0, ..Knobs::default() }).await;
        let job = rig.send("a", "hello").await.job;
        // Another one claims it and is never heard of again.
        let past = Millis::now().before(Duration::from_secs(60));
        let lease = Duration::from_secs(1);
        let dead = queue.claim(&WorkerId::new("dead"), past, lease).await.unwrap().unwrap().0;
        assert_eq!(dead.id, job);
        let rig = rig.again().await;
        rig.change(&Knobs::default());
        let (events, ending) = rig.end_of(job).await;
        assert_eq!(text_of(&ending), "hello");
        assert_eq!(events[0]["attempt"], 2);
        rig.stop().await;
    }

    async fn a_turn_whose_job_is_over_does_not_run_for_ever(store: Store) {
        let queue = Queue::new(store.clone());
        let rig = Rig::new(store.clone(), Knobs { at_once: 0, ..Knobs::default() }).await;
        let Accepted { job, conversation, .. } = rig.send("a", "hello").await;
        let past = Millis::now().before(Duration::from_secs(60));
        let turn = NewTurn {
            id: TurnId::new(),
            conversation,
            job: Some(job),
            attempt: 1,
            agent: "pi".to_owned(),
            begun_at: past,
        };
        store.must(turn.clone(), |conn, turn| Box::pin(turns::begin(conn, turn))).await;
        let state = || async {
            rig.gateway.keep_up_now().await.unwrap();
            let find = store.read(turn.id, |conn, id| Box::pin(turns::find(conn, *id)));
            let found: Result<_, StoreError> = find.await;
            found.unwrap().unwrap().state
        };
        let (worker, lease) = (WorkerId::new("dies"), Duration::from_secs(1));
        while queue.claim(&worker, past, lease).await.unwrap().is_some() {
            assert_eq!(state().await, TurnState::Running);
            queue.reclaim(Millis::now()).await.unwrap();
        }
        assert_eq!(queue.find(job).await.unwrap().unwrap().state, JobState::Dead);
        assert_eq!(state().await, TurnState::Abandoned);
        rig.stop().await;
    }
}
