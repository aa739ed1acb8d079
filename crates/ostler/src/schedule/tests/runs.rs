//! Runs of schedules: when there is one, where it speaks, and where its answer goes.

use super::*;
use crate::{
    config::{Busy, Sessions},
    queue::WorkerId,
};

/// A gateway whose sessions do not end by themselves.
async fn patient_rig(store: &Store) -> Rig {
    let sessions = Sessions { idle: None, ..Sessions::default() };
    Rig::new(store.clone(), Knobs { sessions, ..Knobs::default() }).await
}

async fn cancel(store: &Store, job: JobId) {
    // Not long ago: a gateway that starts removes what is long over.
    Queue::new(store.clone()).cancel(job, "x", Millis::now()).await.unwrap();
}

on_both! {
    async fn a_run_speaks_in_its_conversation_and_the_answer_goes_where_it_was_wanted(store: Store) {
        let rig = patient_rig(&store).await;
        let before = rig.send("main", "one").await;
        rig.end_of(before.job).await;
        let spoke = conversation(&store, before.conversation).await.last_user_at;
        let now = an_hour_to_come();
        let mut new = schedule("news", "0 * * * *", "what is new?", now.before(minutes(5)));
        new.conversation = Address::new("local", "main").unwrap();
        new.to = Some(Address::new("webhook", URL).unwrap());
        add(&store, new).await;
        assert_eq!(desk(&rig).look(now).await.unwrap(), Some(now.after(minutes(60))));
        let ran = stored(&store, "news").await;
        assert_eq!((ran.n_runs, ran.last_slot, ran.last_run_at), (1, now, Some(now)));
        rig.end_of(ran.job.unwrap()).await;
        let replies = replies(&store).await;
        assert_eq!((replies.len(), &replies[0]["text"]), (1, &"what is new?".into()));
        assert_eq!(conversation(&store, before.conversation).await.last_user_at, spoke);
        rig.ask("main", "two").await;
        assert_eq!(rig.calls(), ["new|one", "s1|what is new?", "s1|two"]);
        rig.stop().await;
    }

    async fn what_nobody_here_would_see_goes_to_the_channel_for_that(store: Store) {
        let output = Some(Address::new("webhook", URL).unwrap());
        let rig = Rig::new(store.clone(), Knobs { output, ..saying("beat") }).await;
        rig.ask("main", "one").await;
        let beat = beat(&rig).await;
        rig.end_of(beat).await;
        let now = an_hour_to_come();
        let mut here = schedule("here", "0 * * * *", "x", now.before(minutes(5)));
        here.to = Some(Address::new("local", "main").unwrap());
        for new in [here, schedule("news", "0 * * * *", "what is new?", now.before(minutes(5)))] {
            add(&store, new).await;
        }
        desk(&rig).look(now).await.unwrap();
        for name in ["here", "news"] {
            rig.end_of(stored(&store, name).await.job.unwrap()).await;
        }
        let said: Vec<_> = replies(&store).await.iter().map(|it| it["text"].clone()).collect();
        assert_eq!(said, ["beat", "what is new?"]);
        rig.stop().await;
    }

    async fn a_run_that_fails_tells_those_whom_its_answer_would_have_reached(store: Store) {
        let rig = Rig::new(store.clone(), Knobs::default()).await;
        let now = an_hour_to_come();
        let mut new = schedule("news", "0 * * * *", "fail", now.before(minutes(5)));
        new.to = Some(Address::new("webhook", URL).unwrap());
        add(&store, new).await;
        desk(&rig).look(now).await.unwrap();
        let job = stored(&store, "news").await.job.unwrap();
        assert_eq!(rig.end_of(job).await.1.state, JobState::Dead);
        assert_eq!(replies(&store).await[0]["error"]["kind"], "crashed");
        rig.stop().await;
    }

    async fn a_run_that_answers_here_for_a_conversation_elsewhere_is_not_answered_for(store: Store) {
        let rig = idle_rig(&store, Knobs::default()).await;
        let now = an_hour_to_come();
        let mut new = schedule("news", "0 * * * *", "x", now.before(minutes(5)));
        new.conversation = Address::new("webhook", URL).unwrap();
        new.to = Some(Address::new("local", "main").unwrap());
        add(&store, new).await;
        desk(&rig).look(now).await.unwrap();
        let job = stored(&store, "news").await.job.unwrap();
        rig.gateway.cancel_job(job).await.unwrap();
        for _ in 0..2 {
            rig.gateway.keep_up_now().await.unwrap();
            assert!(replies(&store).await.is_empty());
            assert_eq!(texts(&store).await, [""; 0]);
        }
        rig.stop().await;
    }

    async fn no_run_begins_while_the_one_before_is_not_over(store: Store) {
        let rig = idle_rig(&store, Knobs::default()).await;
        let now = an_hour_to_come();
        add(&store, schedule("often", "*/10 * * * *", "x", now.before(minutes(1)))).await;
        let mut desk = desk(&rig);
        desk.look(now).await.unwrap();
        let first = stored(&store, "often").await.job.unwrap();
        for number in [1, 2] {
            desk.look(now.after(minutes(10 * number))).await.unwrap();
            let found = stored(&store, "often").await;
            assert_eq!((found.n_runs, found.n_skipped, found.job), (1, number, Some(first)));
        }
        cancel(&store, first).await;
        desk.look(now.after(minutes(30))).await.unwrap();
        let found = stored(&store, "often").await;
        assert_eq!((found.n_runs, found.n_skipped), (2, 2));
        assert_eq!(all_jobs(&store).await.len(), 2);
        rig.stop().await;
    }

    async fn gateways_beside_each_other_make_one_run_for_each_time(store: Store) {
        let rig = idle_rig(&store, Knobs::default()).await;
        let now = an_hour_to_come();
        add(&store, schedule("often", "*/10 * * * *", "x", now.before(minutes(1)))).await;
        let mut desks = [desk(&rig), desk(&rig), desk(&rig)];
        for number in 0..5 {
            let time = now.after(minutes(10 * number));
            let [one, two, three] = &mut desks;
            let looked = tokio::join!(one.look(time), two.look(time), three.look(time));
            assert!(looked.0.is_ok() && looked.1.is_ok() && looked.2.is_ok());
            let found = stored(&store, "often").await;
            assert_eq!((found.n_runs, found.n_skipped, found.last_slot), (number + 1, 0, time));
            cancel(&store, found.job.unwrap()).await;
        }
        assert_eq!(all_jobs(&store).await.len(), 5);
        rig.stop().await;
    }

    async fn times_that_passed_without_a_gateway_are_left_out_or_made_up_for_once(store: Store) {
        let rig = idle_rig(&store, Knobs::default()).await;
        let created = an_hour_to_come().after(minutes(30));
        let now = created.after(minutes(60 * 5 + 30));
        for (name, missed) in [("skip", Missed::Skip), ("once", Missed::Once)] {
            add(&store, NewSchedule { missed, ..schedule(name, "@hourly", name, created) }).await;
        }
        desk(&rig).look(now.after(minutes(30))).await.unwrap();
        let (skip, once) = (stored(&store, "skip").await, stored(&store, "once").await);
        assert_eq!((skip.n_runs, skip.n_skipped, skip.last_slot), (0, 6, now));
        assert_eq!((once.n_runs, once.n_skipped, once.last_slot), (1, 5, now));
        desk(&rig).look(now.after(minutes(31))).await.unwrap();
        assert_eq!(stored(&store, "once").await, once);
        rig.stop().await;
    }

    async fn a_clock_that_is_set_back_makes_no_run_a_second_time(store: Store) {
        let rig = idle_rig(&store, Knobs::default()).await;
        let now = an_hour_to_come();
        add(&store, schedule("often", "*/10 * * * *", "x", now.before(minutes(1)))).await;
        let mut desk = desk(&rig);
        for hours in [0, 72] {
            desk.look(now.after(minutes(60 * hours))).await.unwrap();
            cancel(&store, stored(&store, "often").await.job.unwrap()).await;
        }
        assert_eq!(stored(&store, "often").await.n_runs, 2);
        let ahead = stored(&store, "often").await;
        // A little back: it waits. Three days back: it was the clock that was wrong
        // before, or is now; what was dealt with stays so until a time comes.
        for back in [now.after(minutes(60 * 72 - 3)), now.before(minutes(5))] {
            desk.look(back).await.unwrap();
            assert_eq!(stored(&store, "often").await, ahead);
        }
        desk.look(now).await.unwrap();
        let found = stored(&store, "often").await;
        assert_eq!((found.n_runs, found.last_slot), (2, now));
        desk.look(now.after(minutes(10))).await.unwrap();
        assert_eq!(stored(&store, "often").await.n_runs, 3);
        rig.stop().await;
    }

    async fn a_run_in_a_conversation_that_was_silent_for_long_begins_afresh(store: Store) {
        let rig = patient_rig(&store).await;
        let start = an_hour_to_come();
        add(&store, schedule("often", "*/10 * * * *", "x", start.before(minutes(1)))).await;
        let mut desk = desk(&rig);
        for passed in [0, 10, 20] {
            if passed == 20 {
                // The turns before end by the real clock, which is more than an hour behind.
                rig.change(&Knobs::default());
            }
            desk.look(start.after(minutes(passed))).await.unwrap();
            rig.end_of(stored(&store, "often").await.job.unwrap()).await;
        }
        assert_eq!(rig.calls(), ["new|x", "s1|x", "new|x"]);
        rig.stop().await;
    }

    async fn a_text_behind_a_reset_word_begins_each_run_afresh(store: Store) {
        let rig = patient_rig(&store).await;
        let start = an_hour_to_come();
        add(&store, schedule("fresh", "*/10 * * * *", "/new y", start.before(minutes(1)))).await;
        let mut desk = desk(&rig);
        for passed in [0, 10] {
            desk.look(start.after(minutes(passed))).await.unwrap();
            rig.end_of(stored(&store, "fresh").await.job.unwrap()).await;
        }
        assert_eq!(rig.calls(), ["new|y", "new|y"]);
        rig.stop().await;
    }

    async fn a_run_is_answered_by_itself_whatever_waits_beside_it(store: Store) {
        let knobs = Knobs { busy: Busy::Combine, ..Knobs::default() };
        let rig = Rig::new(store.clone(), Knobs { at_once: 0, ..knobs.clone() }).await;
        let now = an_hour_to_come();
        add(&store, schedule("often", "*/10 * * * *", "x", now.before(minutes(1)))).await;
        desk(&rig).look(now).await.unwrap();
        let said = rig.send("cron", "y").await.job;
        rig.change(&knobs);
        assert_eq!(text_of(&rig.end_of(said).await.1), "y");
        assert_eq!(rig.calls(), ["new|x", "s1|y"]);
        rig.stop().await;
    }

    async fn a_paused_schedule_has_no_runs_and_one_that_cannot_be_read_stops_no_other(store: Store) {
        let rig = idle_rig(&store, Knobs::default()).await;
        let now = an_hour_to_come();
        let created = now.before(minutes(1));
        add(&store, schedule("a-broken", "of a newer version", "x", created)).await;
        add(&store, schedule("paused", "*/10 * * * *", "x", created)).await;
        add(&store, schedule("runs", "*/10 * * * *", "x", created)).await;
        let id = stored(&store, "paused").await.schedule.id;
        store.must((id, now), |conn, (id, now)| {
            Box::pin(schedules::set_enabled(conn, *id, false, *now))
        }).await;
        desk(&rig).look(now).await.unwrap();
        assert_eq!(stored(&store, "paused").await.n_runs, 0);
        assert_eq!(stored(&store, "runs").await.n_runs, 1);
        let later = now.after(minutes(25));
        store.must((id, later), |conn, (id, later)| {
            Box::pin(schedules::set_enabled(conn, *id, true, *later))
        }).await;
        desk(&rig).look(later).await.unwrap();
        let resumed = stored(&store, "paused").await;
        assert_eq!((resumed.n_runs, resumed.n_skipped, resumed.last_slot), (0, 0, later));
        rig.stop().await;
    }

    async fn a_run_for_which_there_is_no_room_is_left_out_and_counted(store: Store) {
        let rig = Rig::new(store.clone(), Knobs { at_once: 0, depth: 1, ..Knobs::default() }).await;
        rig.send("a", "waits").await;
        let now = an_hour_to_come();
        add(&store, schedule("often", "*/10 * * * *", "x", now.before(minutes(1)))).await;
        desk(&rig).look(now).await.unwrap();
        let found = stored(&store, "often").await;
        assert_eq!((found.n_runs, found.n_skipped, found.last_slot), (0, 1, now));
        rig.stop().await;
    }

    async fn schedules_outlive_their_gateway_and_a_new_one_is_noticed_at_once(store: Store) {
        let rig = Rig::new(store.clone(), Knobs::default()).await;
        let now = an_hour_to_come();
        add(&store, schedule("often", "*/10 * * * *", "x", now)).await;
        let before = stored(&store, "often").await;
        let rig = rig.again().await;
        assert_eq!(stored(&store, "often").await, before);
        // The gateway's own clock: a time that has come already, to be made up for.
        let past = Millis::now().before(minutes(60 * 24 * 400));
        let missed = Missed::Once;
        add(&store, NewSchedule { missed, ..schedule("late", "@yearly", "y", past) }).await;
        let mut jobs = store.wakeups(crate::store::Topic::Jobs);
        let job = loop {
            match stored(&store, "late").await.job {
                Some(job) => break job,
                None => drop(jobs.next().await),
            }
        };
        assert_eq!(text_of(&rig.end_of(job).await.1), "y");
        rig.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_whose_gateway_was_killed_is_gone_on_with_as_the_same_job() {
    crate::store::testing::on_sqlite(|store| async move {
        let rig = idle_rig(&store, Knobs::default()).await;
        let now = an_hour_to_come();
        add(&store, schedule("often", "*/10 * * * *", "x", now.before(minutes(1)))).await;
        desk(&rig).look(now).await.unwrap();
        let queue = Queue::new(store.clone());
        let claimed = queue.claim(&WorkerId::new("dies"), now, minutes(1)).await.unwrap();
        assert!(claimed.is_some());
        queue.recover(now).await.unwrap();
        desk(&rig).look(now.after(minutes(10))).await.unwrap();
        let found = stored(&store, "often").await;
        assert_eq!((found.n_runs, found.n_skipped, all_jobs(&store).await.len()), (1, 1, 1));
        rig.stop().await;
    })
    .await;
}
