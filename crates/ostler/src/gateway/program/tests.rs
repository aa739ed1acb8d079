//! Programs that run: what is told of them, and how they end.

mod hostile;

use std::{
    fs,
    path::{Path, PathBuf},
};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time;

use super::*;
use crate::{
    clock::Millis,
    gateway::{
        commands::{CommandResult, accept::Order, tests::entry},
        testing::{Knobs, Rig},
    },
    id::{CommandId, ProjectId},
    queue::{CancelOutcome, JobState, Queue, WorkerId},
    store::{
        Store,
        audit::Entry,
        commands::{self, CommandState, StoredCommand},
        projects::{self, Project, ProjectSettings},
        testing::on_both,
        turns::{self, NewTurn},
    },
    wishes::Wishes,
};

const PATIENCE: Duration = Duration::from_secs(60);

/// A project and its folder.
struct Home {
    project: ProjectId,
    folder: TempDir,
}

impl Home {
    async fn new(store: &Store) -> Self {
        let folder = tempfile::Builder::new().prefix("oprg").tempdir().unwrap();
        let now = Millis::now();
        let project = Project {
            id: ProjectId::new(),
            name: "one".to_owned(),
            directory: folder.path().canonicalize().unwrap().to_str().unwrap().to_owned(),
            agent: None,
            settings: ProjectSettings::default(),
            created_at: now,
            updated_at: now,
        };
        let id = project.id;
        store.must(project, |conn, project| Box::pin(projects::add(conn, project))).await;
        Self { project: id, folder }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    /// Makes a pipe: whoever opens it waits for the other end.
    fn pipe(&self, name: &str) -> PathBuf {
        let path = self.path().join(name);
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        path
    }

    fn order(&self, kind: CommandKind, words: &[&str]) -> Order {
        let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
        let id = CommandId::new();
        Order {
            id,
            project: self.project,
            kind,
            stream: None,
            text: words.join(" "),
            wishes: Wishes { cwd: Some(self.path()), ..Wishes::default() },
            words: Some(words),
            actor: "key_of_a_test".to_owned(),
            entry: Entry {
                at: Millis::now(),
                actor: "key_of_a_test".to_owned(),
                action: "command.shell".to_owned(),
                subject: id.to_string(),
                detail: "{}".to_owned(),
            },
        }
    }

    fn script(&self, script: &str) -> Order {
        self.order(CommandKind::Shell, &["sh", "-c", script])
    }
}

/// Lets projects lie where these tests make folders.
fn knobs() -> Knobs {
    let mut knobs = Knobs::default();
    knobs.api.roots = vec![std::env::temp_dir().canonicalize().unwrap()];
    knobs
}

async fn stored(store: &Store, id: CommandId) -> StoredCommand {
    store.must(id, |conn, id| Box::pin(commands::find(conn, *id))).await.unwrap()
}

/// Gives a command and waits for its end: its events and what came of it.
async fn run(rig: &Rig, order: Order) -> (Vec<Value>, CommandResult) {
    let id = order.id;
    rig.gateway.command(order).await.unwrap();
    end_of(rig, id).await
}

async fn end_of(rig: &Rig, id: CommandId) -> (Vec<Value>, CommandResult) {
    let (events, _) = rig.end_of(id.into()).await;
    let command = stored(&rig.store, id).await;
    let result: CommandResult = serde_json::from_str(&command.result.unwrap()).unwrap();
    let state = match (&result.error, result.is_error) {
        (None, false) => CommandState::Completed,
        (Some(error), true) if error["kind"] == "cancelled" => CommandState::Cancelled,
        (Some(_), true) => CommandState::Failed,
        (error, is_error) => panic!("{error:?} {is_error}"),
    };
    assert_eq!(command.state, state);
    // Of the turn, from 1, without gaps, and its end is the last.
    let numbers: Vec<_> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=u64::try_from(numbers.len()).unwrap()).collect::<Vec<_>>());
    assert_eq!(events.last().unwrap()["type"], "complete");
    (events, result)
}

fn lines(events: &[Value], stream: &str) -> Vec<String> {
    let of = |event: &&Value| event["type"] == "output" && event["stream"] == stream;
    events.iter().filter(of).map(|event| event["text"].as_str().unwrap().to_owned()).collect()
}

fn kind(result: &CommandResult) -> &str {
    result.error.as_ref().map_or("none", |error| error["kind"].as_str().unwrap())
}

async fn until_read(pipe: &Path) -> String {
    let read = time::timeout(PATIENCE, tokio::fs::read_to_string(pipe));
    read.await.unwrap().unwrap().trim().to_owned()
}

async fn until_gone(pid: &str) {
    let process = Path::new("/proc").join(pid);
    let gone = async {
        while process.exists() {
            tokio::task::yield_now().await;
        }
    };
    time::timeout(PATIENCE, gone).await.unwrap();
}

on_both! {
    async fn lines_of_both_streams_are_told_in_order_with_the_exit_code(store: Store) {
        let rig = Rig::new(store, knobs()).await;
        let home = Home::new(&rig.store).await;
        let script = "pwd; for n in 1 2 3; do echo out $n; echo err $n >&2; done; printf end; exit 3";
        let order = home.script(script);
        let id = order.id;
        let (events, result) = run(&rig, order).await;
        assert_eq!(events[0]["type"], "started");
        assert_eq!((&events[0]["agent"], &events[0]["cwd"]), (&json!("shell"), &json!(home.path())));
        let folder = home.path().to_str().unwrap().to_owned();
        assert_eq!(lines(&events, "stdout"), [&folder, "out 1", "out 2", "out 3", "end"]);
        assert_eq!(lines(&events, "stderr"), ["err 1", "err 2", "err 3"]);
        let CommandResult { exit_code, response_text, is_error, truncated, .. } = &result;
        assert_eq!((*exit_code, *is_error, *truncated, kind(&result)), (3, true, false, "crashed"));
        assert!(response_text.as_ref().unwrap().contains("out 3\n"), "{response_text:?}");
        assert_eq!(events.last().unwrap()["exit_code"], 3);
        assert_eq!(result.provider.as_deref(), Some("shell"));
        let turns = rig.store.must(id, |conn, id| Box::pin(turns::of_job(conn, (*id).into()))).await;
        assert_eq!((turns.len(), turns[0].turn.agent.as_str()), (1, "shell"));

        let (_, result) = run(&rig, home.script("true")).await;
        assert_eq!((result.exit_code, result.is_error, kind(&result)), (0, false, "none"));
        let (events, result) = run(&rig, home.script("kill -9 $$")).await;
        assert_eq!((result.exit_code, kind(&result)), (137, "crashed"));
        assert_eq!(events[events.len() - 2]["type"], "error");
        rig.stop().await;
    }

    async fn a_program_gets_nothing_of_the_environment_but_what_is_named(store: Store) {
        let rig = Rig::new(store, knobs()).await;
        let home = Home::new(&rig.store).await;
        let (events, _) = run(&rig, home.order(CommandKind::Shell, &["env"])).await;
        let found = lines(&events, "stdout");
        assert_eq!(found, ["HOME=/nonexistent", "PATH=/usr/local/bin:/usr/bin:/bin"]);
        let (_, result) = run(&rig, home.script("read line; echo got $line $?")).await;
        assert_eq!(result.response_text.as_deref(), Some("got 1\n"));
        rig.stop().await;
    }

    async fn a_program_that_is_not_there_did_not_start(store: Store) {
        let rig = Rig::new(store, knobs()).await;
        let home = Home::new(&rig.store).await;
        for words in [["no-such-program"], ["./nothing"]] {
            let (events, result) = run(&rig, home.order(CommandKind::Shell, &words)).await;
            assert_eq!((kind(&result), result.exit_code), ("spawn_failed", 3));
            assert_eq!(events[0]["type"], "error");
        }
        rig.stop().await;
    }

    async fn what_is_not_text_or_too_much_is_told_as_far_as_it_can_be(store: Store) {
        let rig = Rig::new(store, knobs()).await;
        let home = Home::new(&rig.store).await;
        let (events, _) = run(&rig, home.script(r"printf 'a\000b\377c\n\r\nd'")).await;
        assert_eq!(lines(&events, "stdout"), ["a\0b\u{fffd}c", "", "d"]);

        let long = "head -c 200000 /dev/zero | tr '\\0' x; echo; echo next";
        let (events, result) = run(&rig, home.script(long)).await;
        let all = lines(&events, "stdout");
        assert_eq!((all[0].len(), all[1].as_str()), (LONGEST_LINE, "next"));
        assert_eq!(events[1]["truncated"], true);
        assert!(result.truncated);
        assert_eq!(result.response_text.unwrap().len(), 64 * 1024);
        rig.stop().await;
    }

    async fn of_a_flood_the_start_is_told_and_the_end_is_in_the_result(store: Store) {
        let rig = Rig::new(store, knobs()).await;
        let home = Home::new(&rig.store).await;
        let line = "x".repeat(29_999);
        let flood = format!("yes {line} | head -n 1000; echo the end");
        let (events, result) = run(&rig, home.script(&flood)).await;
        let told = lines(&events, "stdout");
        assert_eq!(told.len(), 16 * 1024 * 1024 / 30_000);
        let warnings: Vec<_> = events.iter().filter(|event| event["type"] == "status").collect();
        assert_eq!((warnings.len(), &warnings[0]["code"]), (1, &json!("warning")));
        let end = result.response_text.unwrap();
        assert!(end.ends_with("\nthe end\n") && end.len() <= 64 * 1024);
        assert_eq!((result.truncated, result.exit_code), (true, 0));
        rig.stop().await;
    }

    async fn one_that_takes_too_long_is_killed_with_all_that_it_started(store: Store) {
        let rig = Rig::new(store, knobs()).await;
        let home = Home::new(&rig.store).await;
        let pipe = home.pipe("pid");
        let script = "(trap '' TERM HUP; exec setsid sleep 1000) & echo $! > pid; echo up; wait";
        let mut order = home.script(script);
        // It has to be up by then, also on a machine that has much else to do.
        order.wishes.timeout_ms = Some(5000);
        let ((events, result), pid) = tokio::join!(run(&rig, order), until_read(&pipe));
        assert_eq!((kind(&result), result.exit_code), ("timeout", 124));
        assert_eq!(lines(&events, "stdout"), ["up"]);
        assert_eq!(result.response_text.as_deref(), Some("up\n"));
        until_gone(&pid).await;
        rig.stop().await;
    }

    async fn a_child_that_is_left_behind_is_killed_and_not_waited_for(store: Store) {
        let rig = Rig::new(store, knobs()).await;
        let home = Home::new(&rig.store).await;
        let (events, result) = run(&rig, home.script("setsid sleep 1000 & echo $!")).await;
        assert_eq!(result.exit_code, 0);
        until_gone(&lines(&events, "stdout")[0]).await;
        rig.stop().await;
    }

    async fn one_can_be_cancelled_while_it_runs_and_before(store: Store) {
        let rig = Rig::new(store, Knobs { at_once: 1, ..knobs() }).await;
        let home = Home::new(&rig.store).await;
        let pipe = home.pipe("pid");
        let runs = home.script("echo $$ > pid; echo up; exec sleep 1000");
        let waits = home.script("touch was-run");
        let (runs_id, waits_id) = (runs.id, waits.id);
        rig.gateway.command(runs).await.unwrap();
        let pid = until_read(&pipe).await;
        rig.gateway.command(waits).await.unwrap();
        let outcome = rig.gateway.cancel_command(waits_id, entry(waits_id)).await.unwrap();
        assert_eq!(outcome, CancelOutcome::Cancelled);
        let outcome = rig.gateway.cancel_command(runs_id, entry(runs_id)).await.unwrap();
        assert_eq!(outcome, CancelOutcome::Requested);
        let (events, result) = end_of(&rig, runs_id).await;
        assert_eq!((kind(&result), result.exit_code), ("cancelled", 130));
        assert_eq!(lines(&events, "stdout"), ["up"]);
        until_gone(&pid).await;
        let waited = stored(&rig.store, waits_id).await;
        assert_eq!(waited.state, CommandState::Cancelled);
        let (_, result) = run(&rig, home.script("ls")).await;
        assert_eq!(result.response_text.as_deref(), Some("pid\n"));
        rig.stop().await;
    }

    async fn nothing_runs_in_a_folder_that_was_replaced_while_it_waited(store: Store) {
        let rig = Rig::new(store, Knobs { at_once: 0, ..knobs() }).await;
        let home = Home::new(&rig.store).await;
        let (folder, other) = (home.path().join("one"), home.path().join("other"));
        fs::create_dir(&folder).unwrap();
        fs::create_dir(&other).unwrap();
        let prompt = Order { words: None, kind: CommandKind::Prompt, ..home.script("hello") };
        let orders = [home.script("touch was-run"), prompt];
        let ids = orders.each_ref().map(|order| order.id);
        for mut order in orders {
            order.wishes.cwd = Some(folder.clone());
            rig.gateway.command(order).await.unwrap();
        }
        fs::remove_dir(&folder).unwrap();
        std::os::unix::fs::symlink(&other, &folder).unwrap();
        rig.change(&knobs());
        for id in ids {
            let (_, result) = end_of(&rig, id).await;
            assert_eq!(kind(&result), "invalid_request", "{result:?}");
        }
        assert_eq!(fs::read_dir(&other).unwrap().count(), 0);
        assert!(rig.calls().is_empty());
        rig.stop().await;
    }

    async fn one_can_be_cancelled_while_settings_are_read(store: Store) {
        let rig = Rig::new(store, knobs()).await;
        let home = Home::new(&rig.store).await;
        let pipe = home.pipe("settings");
        hostile::repository_with(&home.path(), &format!("[include]\n\tpath = {}\n", pipe.display()));
        let order = home.order(CommandKind::Git, &["git", "status"]);
        let id = order.id;
        rig.gateway.command(order).await.unwrap();
        // Git waits for what comes out of the pipe.
        let opened = tokio::fs::File::create(&pipe);
        let _held = time::timeout(PATIENCE, opened).await.unwrap().unwrap();
        let outcome = rig.gateway.cancel_command(id, entry(id)).await.unwrap();
        assert_eq!(outcome, CancelOutcome::Requested);
        let (_, result) = end_of(&rig, id).await;
        assert_eq!(kind(&result), "cancelled", "{result:?}");
        rig.stop().await;
    }

    async fn one_that_is_cut_off_by_a_stop_is_not_run_again_and_says_so(store: Store) {
        let rig = Rig::new(store, knobs()).await;
        let home = Home::new(&rig.store).await;
        let pipe = home.pipe("pid");
        let order = home.script("echo x >> runs; echo $$ > pid; exec sleep 1000");
        let id = order.id;
        rig.gateway.command(order).await.unwrap();
        let pid = until_read(&pipe).await;
        let rig = rig.again().await;
        until_gone(&pid).await;
        let (_, result) = end_of(&rig, id).await;
        assert_eq!((kind(&result), result.exit_code), ("crashed", 1));
        assert_eq!(result.error.as_ref().unwrap()["message"], INTERRUPTED);
        run(&rig, home.script("true")).await;
        assert_eq!(fs::read_to_string(home.path().join("runs")).unwrap(), "x\n");
        rig.stop().await;
    }

    async fn one_whose_gateway_was_killed_is_not_run_again_and_says_so(store: Store) {
        let idle = Knobs { at_once: 0, ..knobs() };
        let rig = Rig::new(store.clone(), idle.clone()).await;
        let home = Home::new(&store).await;
        let order = home.script("touch was-run");
        let id = order.id;
        let accepted = rig.gateway.command(order).await.unwrap();
        // Another gateway claims it, begins its turn, and is not heard of again.
        let now = Millis::now();
        let turn = NewTurn {
            id: TurnId::new(),
            conversation: accepted.conversation,
            job: Some(accepted.job),
            attempt: 1,
            agent: "shell".to_owned(),
            begun_at: now,
        };
        let queue = Queue::new(store.clone());
        let dead = WorkerId::new("dead");
        let long_ago = now.before(PATIENCE);
        let claimed = queue.claim_with(&dead, long_ago, Duration::from_secs(1), turn, |conn, _, turn| {
            Box::pin(async move { turns::begin(conn, turn).await })
        });
        assert!(claimed.await.unwrap().is_some());
        let rig = rig.again().await;
        rig.change(&Knobs { at_once: 5, ..idle });
        let (events, result) = end_of(&rig, id).await;
        assert_eq!(result.error.unwrap()["message"], INTERRUPTED);
        assert_eq!(events[0]["type"], "error");
        assert!(!home.path().join("was-run").exists());
        let (_, ending) = rig.end_of(accepted.job).await;
        assert_eq!(ending.state, JobState::Dead);
        rig.stop().await;
    }
}
