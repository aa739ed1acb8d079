//! Schedules, added and changed beside a gateway.

use clap::Parser;

use super::*;
use crate::{
    config::{Busy, Loader, Sessions, Trust},
    queue::{JobState, Queue},
    schedule::{
        due::Due,
        run::{Made, Slot, at_slot},
    },
    store::{
        audit,
        testing::{Place, on_both},
    },
};

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: ScheduleArgs,
}

/// Runs a command line beside a store.
async fn command(place: &Place, line: &[&str]) -> Exit {
    let folder = place.file().parent().unwrap().to_owned();
    let environment = [("OSTLER_DATA_DIR", &folder)];
    let environment = environment.map(|(name, path)| (name.into(), path.into())).into();
    let flags = Vec::new();
    let loader = Loader { environment, here: folder, file: None, flags, trust: Trust::Named };
    let line = ["schedule"].iter().chain(line);
    let Ok(Line { args }) = Line::try_parse_from(line) else { return Exit::Usage };
    run(args, loader.load().unwrap(), &mut Ui::default()).await.unwrap()
}

async fn found(store: &Store, name: &str) -> Option<schedules::Schedule> {
    let name = name.to_owned();
    store.read(name, |conn, name| Box::pin(schedules::find(conn, name))).await.unwrap()
}

const MORNING: [&str; 9] =
    ["add", "--name", "morning", "--cron", "0 9 * * 1-5", "--tz", "europe/berlin", "--agent", "pi"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schedule_is_added_run_paused_resumed_and_removed_beside_a_gateway() {
    let place = Place::sqlite();
    let store = place.open().await;
    let add = [&MORNING[..], &["--missed", "once", "What is on today?"]].concat();
    assert_eq!(command(&place, &add).await, Exit::Answered);
    let morning = found(&store, "morning").await.unwrap();
    let new = &morning.schedule;
    assert_eq!((new.zone.as_str(), new.missed), ("Europe/Berlin", Missed::Once));
    assert_eq!(
        (new.agent.as_deref(), new.conversation.to_string()),
        (Some("pi"), "local:main".to_owned())
    );
    assert!(morning.is_enabled && morning.last_slot == new.created_at);
    let id = new.id.to_string();
    assert_eq!(found(&store, &id).await.unwrap(), morning);
    assert_eq!(command(&place, &add).await, Exit::Failed);
    assert_eq!(command(&place, &["list"]).await, Exit::Answered);
    assert_eq!(command(&place, &["list", "--output", "json"]).await, Exit::Answered);

    assert_eq!(command(&place, &["run", "morning"]).await, Exit::Answered);
    let job = found(&store, "morning").await.unwrap().job.unwrap();
    let queue = Queue::new(store.clone());
    assert_eq!(queue.find(job).await.unwrap().unwrap().state, JobState::Ready);
    // The one before is not over.
    assert_eq!(command(&place, &["run", "morning"]).await, Exit::Failed);
    queue.cancel(job, "x", Millis(1)).await.unwrap();
    assert_eq!(command(&place, &["run", &id]).await, Exit::Answered);
    let ran = found(&store, "morning").await.unwrap();
    assert_eq!((ran.n_runs, ran.last_slot), (2, morning.last_slot));

    assert_eq!(command(&place, &["pause", "morning"]).await, Exit::Answered);
    let paused = found(&store, "morning").await.unwrap();
    assert_eq!((paused.is_enabled, paused.last_slot), (false, morning.last_slot));
    assert_eq!(command(&place, &["resume", "morning"]).await, Exit::Answered);
    let resumed = found(&store, "morning").await.unwrap();
    assert!(resumed.is_enabled && resumed.last_slot >= morning.last_slot);

    assert_eq!(command(&place, &["remove", "morning"]).await, Exit::Answered);
    assert!(found(&store, "morning").await.is_none());
    for subcommand in ["remove", "run", "pause", "resume"] {
        assert_eq!(command(&place, &[subcommand, "morning"]).await, Exit::Failed);
    }
    let audit = store.read(id, |conn, id| Box::pin(audit::about(conn, id))).await.unwrap();
    let actions: Vec<_> = audit.iter().map(|entry| entry.action.as_str()).collect();
    let expected = ["add", "run", "run", "pause", "resume", "remove"];
    assert_eq!(actions, expected.map(|action| format!("schedules.{action}")));
    assert!(audit.iter().all(|entry| !entry.detail.contains("today")));
    store.close().await;
}

on_both! {
    async fn runs_that_are_wanted_at_the_same_moment_are_one(store: Store) {
        let new = NewSchedule {
            id: ScheduleId::new(),
            name: "often".to_owned(),
            cron: "*/10 * * * *".to_owned(),
            zone: "UTC".to_owned(),
            conversation: "local:main".parse().unwrap(),
            to: None,
            agent: None,
            prompt: "x".to_owned(),
            missed: Missed::Skip,
            created_at: Millis(1),
        };
        store.must(new, |conn, new| Box::pin(schedules::add(conn, new))).await;
        let rules = Rules {
            sessions: Sessions::default(),
            busy: Busy::Queue,
            capacity: Capacity::new(Limits { waiting: 100, waiting_in_lane: 100 }),
            output: None,
        };
        let schedule = found(&store, "often").await.unwrap();
        let due = Due { run: Some(Millis(5)), n_missed: 0, until: Millis(5), next: None };
        let slot = Slot { from: Millis(1), due };
        let mut all = tokio::task::JoinSet::new();
        for number in 0..12 {
            let (store, rules, schedule) = (store.clone(), rules.clone(), schedule.clone());
            all.spawn(async move {
                let is_time = number % 3 == 0;
                let args = (JobId::new(), rules, schedule, is_time);
                let made: Result<bool, Refusal> = store.write(args, move |conn, args| {
                    Box::pin(async move {
                        let (job, rules, schedule, is_time) = args;
                        if *is_time {
                            let made = at_slot(conn, schedule, slot, *job, rules, Millis(6)).await?;
                            return Ok(matches!(made, Made::Job(_)));
                        }
                        let done = run_now(conn, "often", *job, rules, Millis(6)).await?;
                        Ok(matches!(done, Done::Changed { .. }))
                    })
                }).await;
                made.unwrap()
            });
        }
        let made = all.join_all().await;
        assert_eq!(made.into_iter().filter(|made| *made).count(), 1);
        assert_eq!(found(&store, "often").await.unwrap().n_runs, 1);
        assert_eq!(Queue::new(store).list(None, None, 100).await.unwrap().len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_written_wrongly_is_refused_and_leaves_nothing() {
    let place = Place::sqlite();
    let store = place.open().await;
    let long = "x".repeat(65);
    for wrong in [
        &["--cron", "0 25 * * *"][..],
        &["--tz", "Europe/Berlim"],
        &["--name", ""],
        &["--name", " x"],
        &["--name", "a\u{1b}"],
        &["--name", &long],
        &["--name", "sch_01890a5d6ac17f3f8a1b2c3d4e5f6071"],
        &["--agent", "nobody"],
        &["--missed", "always"],
        &["--conversation", "main"],
        &["--conversation", "global:all"],
        &["--to", "pigeon:x"],
        &["--to", "webhook:nowhere"],
    ] {
        let mut line = vec!["add", "--name", "n", "--cron", "@daily", "--tz", "UTC"];
        match line.iter().position(|word| *word == wrong[0]) {
            Some(at) => line[at + 1] = wrong[1],
            None => line.extend(wrong),
        }
        line.push("text");
        assert_eq!(command(&place, &line).await, Exit::Usage, "{wrong:?}");
    }
    for text in ["", " \n", "a\u{7}", "a\0"] {
        let line = ["add", "--name", "n", "--cron", "@daily", text];
        assert_eq!(command(&place, &line).await, Exit::Usage, "{text:?}");
    }
    let none = store.read((), |conn, ()| Box::pin(schedules::list(conn))).await.unwrap();
    assert!(none.is_empty());
    // A conversation that several share can be spoken in if it is said where answers go.
    let line =
        ["--conversation", "global:all", "--to", "webhook:http://127.0.0.1:9/x", "two\nlines"];
    let line = [&["add", "--name", "n", "--cron", "@daily"], &line[..]].concat();
    assert_eq!(command(&place, &line).await, Exit::Answered);
    store.close().await;
}

#[test]
fn the_list_for_people_is_one_line_each_without_control_characters() {
    let row = |name: &str, text: &str| {
        let now = Millis(0);
        let schedule = NewSchedule {
            id: ScheduleId::new(),
            name: name.to_owned(),
            cron: "0 9 * * *".to_owned(),
            zone: "Europe/Berlin".to_owned(),
            conversation: "local:a\u{202e}".parse().unwrap(),
            to: None,
            agent: None,
            prompt: text.to_owned(),
            missed: Missed::Skip,
            created_at: now,
        };
        let found = schedules::Schedule {
            schedule,
            is_enabled: name != "b",
            last_slot: now,
            job: None,
            last_run_at: None,
            n_runs: 3,
            n_skipped: 1,
        };
        Row::new(found, now)
    };
    let list = List { schedules: vec![row("a", "\n one\ntwo"), row("b", "x")] };
    let text = list.text();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 2);
    assert!(
        lines[0].starts_with("a  0 9 * * *  Thu 1970-01-01 09:00 CET  local:a\u{fffd}  3 runs"),
        "{text}"
    );
    assert!(lines[0].ends_with(" one…") && lines[1].contains("paused"), "{text}");
    assert_eq!(List { schedules: Vec::new() }.text(), "no schedules");
}
