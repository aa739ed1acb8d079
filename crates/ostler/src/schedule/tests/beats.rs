//! What a heartbeat is, clause by clause.

use super::*;
use crate::{
    config::{Busy, Sessions},
    gateway::inbound::Origin,
    queue::{CancelOutcome, LaneId},
    store::{
        jobs,
        sessions::{self, Session},
    },
};

on_both! {
    async fn the_answer_heartbeat_ok_sends_nothing_and_any_other_is_sent(store: Store) {
        let rig = Rig::new(store.clone(), saying("HEARTBEAT_OK.")).await;
        let job = rig.try_send(from_outside("hello")).await.unwrap().job;
        rig.end_of(job).await;
        let silent = beat(&rig).await;
        assert_eq!(rig.end_of(silent).await.1.state, JobState::Done);
        assert_eq!(replies(&store).await.len(), 1);
        rig.change(&saying("The disk is full."));
        let told = beat(&rig).await;
        assert_eq!(rig.end_of(told).await.1.state, JobState::Done);
        let replies = replies(&store).await;
        assert_eq!((replies.len(), &replies[1]["text"]), (2, &"The disk is full.".into()));
        assert_eq!(rig.calls(), ["new|hello", "s1|HEARTBEAT_OK.", "s1|The disk is full."]);
        rig.stop().await;
    }

    async fn it_goes_to_the_conversation_that_a_person_spoke_in_last_or_to_the_one_that_is_named(store: Store) {
        let rig = Rig::new(store, saying("beat")).await;
        rig.ask("a", "one").await;
        rig.ask("b", "two").await;
        let later = rig.send("a", "three").await;
        rig.end_of(later.job).await;
        // A prompt from the terminal is no word in a conversation.
        let bare = Inbound { origin: Origin::Run, ..inbound("run-1", "four") };
        let bare = rig.try_send(bare).await.unwrap();
        rig.end_of(bare.job).await;
        let made = rig.gateway.heartbeat(None).await.unwrap();
        let Made::Job { job, conversation } = made else { panic!("{made:?}") };
        assert_eq!(conversation, later.conversation);
        rig.end_of(job).await;
        assert_eq!(rig.calls()[4], "s1|beat");
        let named = Address::new("local", "b").unwrap();
        let made = rig.gateway.heartbeat(Some(named.clone())).await.unwrap();
        let Made::Job { job, .. } = made else { panic!("{made:?}") };
        rig.end_of(job).await;
        assert_eq!(rig.calls()[5], "s2|beat");
        let mut knobs = saying("beat");
        knobs.heartbeat.conversation = Some(named);
        rig.change(&knobs);
        let job = beat(&rig).await;
        rig.end_of(job).await;
        assert_eq!(rig.calls()[6], "s2|beat");
        knobs.heartbeat.conversation = Some(Address::new("local", "nowhere").unwrap());
        rig.change(&knobs);
        assert_eq!(skipped(&rig).await, "unknown_conversation");
        rig.stop().await;
    }

    async fn it_is_skipped_while_the_conversation_is_busy(store: Store) {
        let rig = Rig::new(store.clone(), saying("beat")).await;
        rig.ask("a", "one").await;
        let running = rig.send("a", "gate").await.job;
        rig.until_hanging().await;
        assert_eq!(skipped(&rig).await, "busy");
        rig.open_gate().await;
        rig.end_of(running).await;
        rig.change(&Knobs { at_once: 0, ..saying("beat") });
        let waiting = rig.send("a", "waits").await.job;
        assert_eq!(skipped(&rig).await, "busy");
        assert!(all_jobs(&store).await.iter().all(|job| job.kind != HEARTBEAT));
        rig.change(&saying("beat"));
        rig.end_of(waiting).await;
        let job = beat(&rig).await;
        rig.end_of(job).await;
        rig.stop().await;
    }

    async fn it_never_opens_a_new_session(store: Store) {
        let rig = Rig::new(store.clone(), Knobs { retries: 3, ..saying("lost") }).await;
        assert_eq!(skipped(&rig).await, "no_conversation");
        rig.ask("a", "one").await;
        let reset = rig.send("a", "/new").await.job;
        rig.end_of(reset).await;
        assert_eq!(skipped(&rig).await, "no_session");
        let mut first = from_outside("two");
        first.address = Address::new("webhook", "http://127.0.0.1:9/c/2").unwrap();
        std::fs::write(rig.path("sessions"), "").unwrap();
        let first = rig.try_send(first).await.unwrap().job;
        rig.end_of(first).await;
        // The agent says that its session is gone.
        let job = beat(&rig).await;
        let (events, ending) = rig.end_of(job).await;
        assert_eq!(ending.state, JobState::Dead);
        assert!(ending.reason.unwrap().contains("session_lost"));
        assert_eq!(events.iter().filter(|event| event["code"] == "fresh_session").count(), 0);
        assert_eq!(rig.calls(), ["new|one", "new|two", "s1|lost"]);
        assert_eq!(replies(&store).await.len(), 1);
        rig.stop().await;
    }

    async fn it_does_not_keep_an_idle_session_alive(store: Store) {
        let minute = Sessions { idle: Some(minutes(1)), ..Sessions::default() };
        let never = Sessions { idle: None, ..Sessions::default() };
        let rig = Rig::new(store.clone(), Knobs { sessions: never, ..saying("beat") }).await;
        let Accepted { job, conversation: id, .. } = rig.send("a", "one").await;
        rig.end_of(job).await;
        age(&store, id, minutes(2)).await;
        let before = conversation(&store, id).await.last_user_at;
        let job = beat(&rig).await;
        rig.end_of(job).await;
        assert_eq!(conversation(&store, id).await.last_user_at, before);
        // It ended just now, and the session is over all the same.
        rig.change(&Knobs { sessions: minute, ..saying("beat") });
        assert_eq!(skipped(&rig).await, "idle");
        rig.ask("a", "two").await;
        assert_eq!(rig.calls(), ["new|one", "s1|beat", "new|two"]);
        rig.stop().await;
    }

    async fn there_are_none_where_no_person_spoke_for_longer_than_is_configured(store: Store) {
        let mut knobs = saying("beat");
        knobs.heartbeat.idle = Some(minutes(10));
        let rig = Rig::new(store.clone(), knobs.clone()).await;
        let Accepted { job, conversation, .. } = rig.send("a", "one").await;
        rig.end_of(job).await;
        age(&store, conversation, minutes(9)).await;
        let job = beat(&rig).await;
        rig.end_of(job).await;
        age(&store, conversation, minutes(11)).await;
        assert_eq!(skipped(&rig).await, "quiet");
        knobs.heartbeat.idle = Some(minutes(20));
        rig.change(&knobs);
        let job = beat(&rig).await;
        rig.end_of(job).await;
        rig.stop().await;
    }

    async fn one_that_fails_is_not_tried_again_and_nobody_is_told(store: Store) {
        let rig = Rig::new(store.clone(), Knobs { retries: 3, ..saying("fail") }).await;
        let job = rig.try_send(from_outside("hello")).await.unwrap().job;
        rig.end_of(job).await;
        let failed = beat(&rig).await;
        assert_eq!(rig.end_of(failed).await.1.state, JobState::Dead);
        rig.change(&saying("hang"));
        let hung = beat(&rig).await;
        rig.until_hanging().await;
        assert_eq!(rig.gateway.cancel_job(hung).await.unwrap(), CancelOutcome::Requested);
        assert_eq!(rig.end_of(hung).await.1.state, JobState::Cancelled);
        rig.gateway.keep_up_now().await.unwrap();
        assert_eq!(replies(&store).await.len(), 1);
        assert_eq!(rig.calls(), ["new|hello", "s1|fail", "s1|hang"]);
        rig.stop().await;
    }

    async fn one_that_waits_gives_way_to_whoever_speaks(store: Store) {
        for busy in [Busy::Queue, Busy::Combine] {
            let rig = Rig::new(store.clone(), Knobs { busy, ..saying("beat") }).await;
            rig.ask("a", "one").await;
            rig.change(&Knobs { at_once: 0, busy, ..saying("beat") });
            let waiting = beat(&rig).await;
            let message = rig.send("a", "two").await.job;
            rig.change(&Knobs { busy, ..saying("beat") });
            assert_eq!(text_of(&rig.end_of(message).await.1), "two");
            let ending = rig.end_of(waiting).await.1;
            assert_eq!(ending.state, JobState::Cancelled);
            assert_eq!(ending.reason.as_deref(), Some("somebody spoke while it waited"));
            assert!(!rig.calls().iter().any(|call| call.contains("beat")));
            rig.stop().await;
        }
    }

    async fn a_message_that_comes_while_one_runs_has_a_turn_of_its_own_or_interrupts_it(store: Store) {
        let rig = Rig::new(store.clone(), Knobs { busy: Busy::Steer, ..saying("gate") }).await;
        rig.ask("a", "one").await;
        let running = beat(&rig).await;
        rig.until_hanging().await;
        let message = rig.send("a", "two").await.job;
        rig.open_gate().await;
        assert_eq!(rig.end_of(running).await.1.state, JobState::Done);
        assert_eq!(text_of(&rig.end_of(message).await.1), "two");
        rig.change(&Knobs { busy: Busy::Interrupt, ..saying("hang") });
        let running = beat(&rig).await;
        rig.until_hanging().await;
        assert_eq!(rig.ask("a", "three").await, "three");
        assert_eq!(rig.end_of(running).await.1.state, JobState::Cancelled);
        rig.stop().await;
    }

    async fn one_that_was_cut_off_by_the_end_of_its_gateway_is_not_made_up_for(store: Store) {
        let rig = Rig::new(store.clone(), saying("hang")).await;
        rig.ask("a", "one").await;
        let job = beat(&rig).await;
        rig.until_hanging().await;
        let rig = rig.again().await;
        assert_eq!(rig.end_of(job).await.1.state, JobState::Cancelled);
        assert_eq!(rig.ask("a", "two").await, "two");
        assert_eq!(rig.calls(), ["new|one", "s1|hang", "s1|two"]);
        rig.stop().await;
    }

    async fn gateways_beside_each_other_make_one_for_each_slot(store: Store) {
        let rig = idle_rig(&store, Knobs::default()).await;
        let conversation = with_session(&store, "a").await;
        let mut knobs = Knobs { at_once: 0, ..saying("beat") };
        knobs.heartbeat.every = Some(minutes(30));
        knobs.sessions.idle = None;
        rig.change(&knobs);
        let (mut one, mut other) = (desk(&rig), desk(&rig));
        let hour = an_hour_to_come();
        for desk in [&mut one, &mut other] {
            assert_eq!(desk.look(hour.after(minutes(5))).await.unwrap(), Some(hour.after(minutes(30))));
        }
        let time = hour.after(minutes(30));
        let (first, second) = tokio::join!(one.look(time), other.look(time));
        assert_eq!((first.unwrap(), second.unwrap()), (Some(hour.after(minutes(60))), Some(hour.after(minutes(60)))));
        let made = all_jobs(&store).await;
        assert_eq!((made.len(), made[0].kind.as_str(), made[0].priority), (1, HEARTBEAT, -10));
        assert_eq!(made[0].lane.as_str(), conversation.to_string());
        rig.stop().await;
    }

    async fn it_is_switched_on_and_off_while_the_gateway_runs(store: Store) {
        let rig = idle_rig(&store, Knobs::default()).await;
        let mut desk = desk(&rig);
        let hour = an_hour_to_come();
        assert_eq!(desk.look(hour).await.unwrap(), None);
        let mut knobs = Knobs { at_once: 0, ..Knobs::default() };
        knobs.heartbeat.every = Some(minutes(10));
        rig.change(&knobs);
        assert_eq!(desk.look(hour).await.unwrap(), Some(hour.after(minutes(10))));
        rig.change(&Knobs { at_once: 0, ..Knobs::default() });
        assert_eq!(desk.look(hour.after(minutes(10))).await.unwrap(), None);
        assert!(all_jobs(&store).await.is_empty());
        rig.stop().await;
    }
}

/// Begins a conversation in which a person spoke and an agent has a session.
pub(super) async fn with_session(store: &Store, name: &str) -> ConversationId {
    let address = Address::new("local", name).unwrap();
    store
        .must((address, Millis::now()), |conn, (address, now)| {
            Box::pin(async move {
                let id = conversations::find_or_begin(conn, address, *now).await?.id;
                conversations::heard_from_user(conn, id, *now).await?;
                let session =
                    Session { session: "s1".to_owned(), memo: "{}".to_owned(), updated_at: *now };
                sessions::keep(conn, id, "pi", &session).await?;
                // A lane is there once somebody has spoken.
                jobs::take_place(conn, &LaneId::new(id)).await?;
                Ok(id)
            })
        })
        .await
}
