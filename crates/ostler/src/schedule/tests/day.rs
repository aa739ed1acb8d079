//! A day of heartbeats and runs, in a moment.

use super::{beats::with_session, *};
use crate::queue::{JobEnd, LaneId, NewJob, WorkerId};

/// Works off what can be begun, but for the jobs of these texts.
async fn work_off(store: &Store, but: &[&str], now: Millis) {
    let queue = Queue::new(store.clone());
    let (worker, lease) = (WorkerId::new("me"), minutes(24 * 60));
    let mut left = Vec::new();
    while let Some((job, ticket)) = queue.claim(&worker, now, lease).await.unwrap() {
        if but.iter().any(|text| job.payload.contains(text)) {
            left.push(ticket);
        } else {
            queue.finish(&ticket, JobEnd::Done, now).await.unwrap();
        }
    }
    for ticket in left {
        queue.finish(&ticket, JobEnd::Release, now).await.unwrap();
    }
}

on_both! {
    async fn a_day_of_heartbeats_and_runs_has_each_of_them_once(store: Store) {
        let mut knobs = saying("beat");
        knobs.heartbeat.every = Some(heartbeat::EVERY);
        knobs.sessions.idle = None;
        let rig = idle_rig(&store, knobs).await;
        let lane = LaneId::new(with_session(&store, "main").await);
        // It begins at midnight, in summer or in winter.
        let day = 24 * 60 * 60 * 1000;
        let start = Millis((Millis::now().0 / day + 1) * day);
        let at = |hour: u64, minute: u64| start.after(minutes(60 * hour + minute));
        add(&store, schedule("quarter", "*/15 * * * *", "quarter", start)).await;
        add(&store, schedule("sixth", "0 6,12,18 * * *", "sixth", start)).await;
        let mut desks = [desk(&rig), desk(&rig)];
        let mut now = start;
        let mut n_looks = 0;
        while now <= at(24, 0) {
            let mut next = None;
            for desk in &mut desks {
                next = desk.look(now).await.unwrap();
            }
            // From ten to twelve somebody is at work in the conversation of the heartbeats, and
            // from three to four a run takes its time.
            if now == at(10, 0) {
                let queue = Queue::new(store.clone());
                queue.enqueue(lane.clone(), NewJob::new("prompt", "long"), now).await.unwrap();
            }
            let is_long = (at(10, 0)..at(12, 0)).contains(&now);
            let is_slow = (at(15, 0)..at(16, 0)).contains(&now);
            let but: Vec<&str> = [("long", is_long), ("quarter", is_slow)]
                .into_iter()
                .filter_map(|(text, is_left)| is_left.then_some(text))
                .collect();
            work_off(&store, &but, now).await;
            now = next.unwrap();
            n_looks += 1;
        }
        assert_eq!(n_looks, 1 + 96, "it sleeps from one time to the next");
        let all = all_jobs(&store).await;
        let n_of = |text: &str| all.iter().filter(|job| job.payload.contains(text)).count();
        // The four of 10:30, 11:00, 11:30 and 12:00 came while somebody was at work: 48 less 4.
        assert_eq!(n_of("beat"), 48 - 4);
        let quarter = stored(&store, "quarter").await;
        // The run of 15:00 was not over at 15:15, 15:30, 15:45 and 16:00.
        assert_eq!((quarter.n_runs, quarter.n_skipped), (96 - 4, 4));
        assert_eq!(n_of("\"quarter\""), 92);
        assert_eq!((stored(&store, "sixth").await.n_runs, n_of("\"sixth\"")), (3, 3));
        rig.stop().await;
    }
}
