//! Schedules as the store keeps them.

use super::{super::testing::Place, *};
use crate::{
    id::{JobId, ScheduleId},
    store::{
        conversations::Address,
        schedules::{self, Missed, NewSchedule, Schedule},
    },
};

fn schedule(name: &str) -> NewSchedule {
    NewSchedule {
        id: ScheduleId::new(),
        name: name.to_owned(),
        cron: "0 9 * * 1-5".to_owned(),
        zone: "Europe/Berlin".to_owned(),
        conversation: Address::new("local", "main").unwrap(),
        to: Some(Address::new("webhook", "http://a/b").unwrap()),
        agent: Some("pi".to_owned()),
        prompt: "what\nis new?".to_owned(),
        missed: Missed::Once,
        created_at: NOW,
    }
}

async fn add(store: &Store, new: &NewSchedule) -> bool {
    store.must(new.clone(), |conn, new| Box::pin(schedules::add(conn, new))).await
}

async fn list(store: &Store) -> Vec<Schedule> {
    store.read((), |conn, ()| Box::pin(schedules::list(conn))).await.unwrap()
}

on_both! {
    async fn a_schedule_is_read_as_it_was_written_and_its_name_is_its_own(store: Store) {
        let (one, other) = (schedule("b"), NewSchedule { to: None, agent: None, ..schedule("a") });
        assert!(add(&store, &one).await && add(&store, &other).await);
        assert!(!add(&store, &schedule("a")).await);
        let found = list(&store).await;
        let written: Vec<_> = found.iter().map(|found| &found.schedule).collect();
        assert_eq!(written, [&other, &one]);
        assert!(found[0].is_enabled && found[0].last_slot == NOW && found[0].job.is_none());
        assert_eq!((found[0].n_runs, found[0].n_skipped), (0, 0));
    }

    async fn only_one_gets_the_run_of_a_time(store: Store) {
        let new = schedule("a");
        add(&store, &new).await;
        let pass = |from: i64, to: i64| {
            store.must((new.id, Millis(from), Millis(to)), |conn, (id, from, to)| {
                Box::pin(schedules::pass(conn, *id, *from, *to, 2))
            })
        };
        let later = NOW.0 + 1;
        assert!(pass(NOW.0, later).await);
        assert!(!pass(NOW.0, later).await);
        let job = JobId::new();
        store.must((new.id, job), |conn, (id, job)| Box::pin(async move {
            schedules::ran(conn, *id, *job, NOW).await?;
            schedules::skipped(conn, *id).await
        })).await;
        let found = list(&store).await.remove(0);
        assert_eq!((found.last_slot, found.n_skipped), (Millis(later), 3));
        assert_eq!((found.job, found.last_run_at, found.n_runs), (Some(job), Some(NOW), 1));
        store.must(new.id, |conn, id| Box::pin(schedules::set_enabled(conn, *id, false, NOW))).await;
        assert!(!pass(later, later + 1).await);
        store.must(new.id, |conn, id| Box::pin(schedules::remove(conn, *id))).await;
        assert!(list(&store).await.is_empty());
    }

    async fn what_is_long_over_is_removed_and_schedules_stay(store: Store) {
        add(&store, &schedule("a")).await;
        let day = Duration::from_secs(24 * 60 * 60);
        store.clean_up(Keep::default(), NOW.after(1000 * day)).await.unwrap();
        assert_eq!(list(&store).await.len(), 1);
        assert_eq!(store.check().await.unwrap(), []);
    }
}

#[tokio::test]
async fn schedules_are_in_a_backup_and_there_after_a_restart() {
    let (place, copy) = (Place::sqlite(), Place::sqlite());
    let store = place.open().await;
    add(&store, &schedule("a")).await;
    let before = list(&store).await;
    store.backup(&copy.file()).await.unwrap();
    store.close().await;
    for place in [place, copy] {
        let again = place.open().await;
        assert_eq!(list(&again).await, before);
        again.close().await;
    }
}
