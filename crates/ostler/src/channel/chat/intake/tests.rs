//! What is said in a chat, and what becomes of it.

use std::sync::Mutex;

use tokio::sync::mpsc;

use super::*;
use crate::{
    channel::{
        Next, SendError,
        chat::{Changed, Doing, Limits, Post, Posting, Stands, testing::by_numbers},
    },
    gateway::testing::{Knobs, Rig},
    store::testing::on_both,
};

/// Whoever may talk: everybody in the yard.
const RULES: Rules<'_> = Rules {
    guilds: &[],
    channels: &[],
    users: &[],
    roles: &[],
    owners: &[],
    answer_all_in: &[],
    pairing: false,
};

/// A chat that has no time a few times, and hands out what it took.
struct Busy {
    limits: Limits,
    n_left: Mutex<u32>,
    took: mpsc::UnboundedSender<String>,
}

impl Chat for Busy {
    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn typing<'a>(&'a self, _: &'a str, _: Option<&'a str>) -> Doing<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    fn send<'a>(&'a self, _: &'a str, posting: Posting<'a>) -> Doing<'a, Stands> {
        Box::pin(async move {
            {
                let mut left = self.n_left.lock().unwrap();
                if *left > 0 {
                    *left -= 1;
                    let next = Next::Retry { after: Some(Duration::from_millis(1)) };
                    return Err(SendError { reason: "no".to_owned(), next, is_unsure: false });
                }
            }
            self.took.send(posting.post.text.clone()).unwrap();
            Ok(Stands { message: "1".to_owned(), is_as_sent: true })
        })
    }

    fn edit<'a>(&'a self, _: &'a str, _: &'a str, _: &'a Post) -> Doing<'a, Changed> {
        Box::pin(async { Ok(Changed::Done) })
    }

    fn delete<'a>(&'a self, _: &'a str, _: &'a str) -> Doing<'a, Changed> {
        Box::pin(async { Ok(Changed::Done) })
    }

    fn find<'a>(
        &'a self,
        _: &'a str,
        _: Posting<'a>,
        _: crate::clock::Millis,
    ) -> Doing<'a, Vec<Stands>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

/// A chat in which Ann talks to the bot.
struct Yard {
    rig: Rig,
    intake: Intake,
    told: mpsc::UnboundedReceiver<String>,
}

impl Yard {
    async fn new(store: Store, n_busy: u32) -> Self {
        let (took, told) = mpsc::unbounded_channel();
        let rig = Rig::new(store.clone(), Knobs { depth: 1, ..Knobs::default() }).await;
        let intake = Intake {
            channel: "yard",
            people: "yard",
            chat: Arc::new(Busy { limits: by_numbers(), n_left: Mutex::new(n_busy), took }),
            gateway: rig.gateway.clone(),
            store,
            pace: Arc::new(Pace::new(1)),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        };
        Self { rig, intake, told }
    }

    async fn screen(&self, said: &Said<'_>) -> Screened {
        let users = ["ann".to_owned()];
        let rules = Rules { users: &users, ..RULES };
        self.intake.screen(said, &rules, &["here"]).await.unwrap()
    }

    async fn told(&mut self) -> String {
        self.told.recv().await.unwrap()
    }

    async fn stop(self) {
        self.intake.tasks.close();
        self.intake.tasks.wait().await;
        self.rig.stop().await;
    }
}

fn said<'a>(message: &'a str, text: &'a str) -> Said<'a> {
    Said {
        from: Source {
            guild: None,
            channel: "here",
            parent: None,
            sender: "ann",
            roles: &[],
            is_mentioned: true,
        },
        message,
        name: "Ann",
        text,
        is_called: true,
        at: None,
        details: Details::default(),
        note: JobId::new(),
    }
}

on_both! {
    async fn a_refusal_is_told_although_the_chat_has_no_time_at_first(store: Store) {
        let mut yard = Yard::new(store, 3).await;
        assert_eq!(yard.screen(&said("1", "hay")).await, Screened::ForAgent);
        assert_eq!(yard.screen(&said("2", "more hay")).await, Screened::Dealt);
        assert_eq!(
            yard.told().await,
            "That is too fast for me: I do not read it, nor what you write in the next 60 s. \
             Say it again then."
        );
        yard.stop().await;
    }

    async fn who_writes_too_fast_can_stop_what_runs(store: Store) {
        let mut yard = Yard::new(store, 0).await;
        for (message, text) in [("1", "hay"), ("2", "more hay")] {
            yard.screen(&said(message, text)).await;
        }
        assert!(yard.told().await.starts_with("That is too fast for me: "));
        assert_eq!(yard.screen(&said("3", "/stop")).await, Screened::Dealt);
        assert_eq!(yard.told().await, NOTHING_RUNS);
        // What can wait does.
        yard.screen(&said("4", "/status")).await;
        yard.screen(&said("5", "stop")).await;
        assert_eq!(yard.told().await, NOTHING_RUNS);
        yard.stop().await;
    }

    async fn a_word_of_which_nobody_heard_that_it_was_noted_is_done_once(store: Store) {
        let mut yard = Yard::new(store, 0).await;
        let stop = said("1", "/stop");
        assert!(yard.intake.note_as(stop.note, "here", "1").await.unwrap());
        assert_eq!(yard.screen(&stop).await, Screened::Dealt);
        assert_eq!(yard.told().await, NOTHING_RUNS);
        // Told again it is somebody else's.
        assert_eq!(yard.screen(&said("1", "/stop")).await, Screened::Dealt);
        assert_eq!(yard.screen(&said("2", "/stop")).await, Screened::Dealt);
        assert_eq!(yard.told().await, NOTHING_RUNS);
        assert!(yard.told.try_recv().is_err());
        yard.stop().await;
    }

    async fn what_is_longer_than_a_message_is_told_as_far_as_it_fits(store: Store) {
        let mut yard = Yard::new(store, 0).await;
        yard.intake.tell("here", "1", "🐎".repeat(900));
        assert_eq!(yard.told().await, "🐎".repeat(800));
        yard.stop().await;
    }
}

#[test]
fn what_was_said_long_before_it_is_told_is_late() {
    let said = |at| Said { at, ..said("m", "hay") };
    let now = Timestamp::from_second(1_794_816_000).unwrap();
    let before = |seconds| now.checked_sub(SignedDuration::from_secs(seconds)).ok();
    assert!(!said(None).is_late(now) && !said(Some(now)).is_late(now));
    assert!(!said(before(60)).is_late(now) && said(before(61)).is_late(now));
}
