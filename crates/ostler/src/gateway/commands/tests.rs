//! Commands from their acceptance to their last event, on both databases.

mod sessions;

use std::time::Duration;

use serde_json::{Value, json};

use super::{accept::Order, *};
use crate::{
    gateway::{
        inbound::{COMMAND, Refusal},
        testing::{Knobs, Rig},
    },
    id::ProjectId,
    queue::{Queue, WorkerId},
    store::{
        Woken,
        audit::{self, Entry},
        commands::CommandKind,
        events::StoredEvent,
        projects::{self, Project, ProjectSettings},
        testing::{clear_queue, delete_project, on_both},
    },
    wishes::Wishes,
};

/// Keeps a project without a folder.
pub(super) async fn project(store: &Store, name: &str) -> ProjectId {
    let project = Project {
        id: ProjectId::new(),
        name: name.to_owned(),
        directory: "/".to_owned(),
        agent: None,
        settings: ProjectSettings::default(),
        created_at: Millis(1),
        updated_at: Millis(1),
    };
    store.must(project.clone(), |conn, project| Box::pin(projects::add(conn, project))).await;
    project.id
}

pub(in crate::gateway) fn entry(subject: impl ToString) -> Entry {
    Entry {
        // Old lines are removed when a gateway starts.
        at: Millis::now(),
        actor: "key_1".to_owned(),
        action: "command.prompt".to_owned(),
        subject: subject.to_string(),
        detail: "{}".to_owned(),
    }
}

/// Makes a prompt in a project.
pub(super) fn order(project: ProjectId, text: &str) -> Order {
    let id = CommandId::new();
    Order {
        id,
        project,
        kind: CommandKind::Prompt,
        stream: None,
        text: text.to_owned(),
        wishes: Wishes { agent: Some("pi".to_owned()), ..Wishes::default() },
        words: None,
        actor: "key_1".to_owned(),
        entry: entry(id),
    }
}

/// Gives a prompt, and returns its name.
pub(super) async fn give(rig: &Rig, project: ProjectId, text: &str) -> CommandId {
    let order = order(project, text);
    let id = order.id;
    rig.gateway.command(order).await.unwrap();
    id
}

pub(super) async fn stored(store: &Store, id: CommandId) -> StoredCommand {
    let found = store.read(id, |conn, id| Box::pin(commands::find(conn, *id)));
    let found: Result<_, StoreError> = found.await;
    found.unwrap().unwrap()
}

/// Returns what happened in a command.
async fn events_of(store: &Store, id: CommandId) -> Vec<StoredEvent> {
    let read = store.read(id, |conn, id| Box::pin(events::read_command(conn, *id, 0, 1000)));
    let read: Result<_, StoreError> = read.await;
    read.unwrap()
}

/// Waits for the end of a command's job, checks that the command ended once, with
/// its last event, and like this; returns what came of it.
async fn ended(rig: &Rig, id: CommandId, state: CommandState) -> CommandResult {
    rig.end_of(id.into()).await;
    over_as(&rig.store, id, state).await
}

async fn over_as(store: &Store, id: CommandId, state: CommandState) -> CommandResult {
    let command = stored(store, id).await;
    assert_eq!(command.state, state, "{command:?}");
    assert!(command.ended_at.is_some());
    let events = events_of(store, id).await;
    let ends = events.iter().filter(|event| event.event.kind == COMPLETE);
    assert_eq!(ends.count(), 1, "{events:#?}");
    let last = &events.last().unwrap().event;
    assert_eq!(last.kind, COMPLETE, "{events:#?}");
    let body: Value = serde_json::from_str(&last.body).unwrap();
    assert_eq!((&body["command_id"], &body["state"]), (&json!(id), &json!(state)));
    let result: CommandResult = serde_json::from_str(command.result.as_ref().unwrap()).unwrap();
    assert_eq!(body["exit_code"], result.exit_code);
    assert_eq!(body["session_id"], json!(result.session_id));
    result
}

on_both! {
    async fn a_command_follows_its_job_to_the_end(store: Store) {
        let rig = Rig::new(store.clone(), Knobs { at_once: 0, ..Knobs::default() }).await;
        let project = project(&store, "a").await;
        let id = give(&rig, project, "gate").await;
        let queued = stored(&store, id).await;
        assert_eq!((queued.state, queued.started_at), (CommandState::Queued, None));
        assert_eq!(queued.command.stream, id.to_string());
        let job = store.must(id, |conn, id| Box::pin(jobs::find(conn, (*id).into()))).await.unwrap();
        assert_eq!(job.kind, COMMAND, "nobody looks for its reply");
        let lines = store.read(id.to_string(), |conn, id| Box::pin(audit::about(conn, id)));
        let lines: Result<Vec<Entry>, StoreError> = lines.await;
        assert_eq!(lines.unwrap().len(), 1);
        rig.change(&Knobs::default());
        rig.until_hanging().await;
        let running = stored(&store, id).await;
        assert_eq!((running.state, running.ended_at), (CommandState::Running, None));
        assert!(running.started_at.is_some());
        rig.open_gate().await;
        let result = ended(&rig, id, CommandState::Completed).await;
        assert_eq!((result.exit_code, result.is_error), (0, false));
        assert_eq!(result.response_text.as_deref(), Some("opened"));
        assert_eq!(result.session_id.as_deref(), Some("s1"));
        assert_eq!(result.provider.as_deref(), Some("pi"));
        let events = events_of(&store, id).await;
        assert!(events.iter().all(|event| {
            let belongs = event.event.belongs.as_ref().unwrap();
            belongs.project == project && belongs.command.as_ref().unwrap().id == id
        }));
        assert!(events.iter().any(|event| event.event.kind == "started"));
        rig.stop().await;
    }

    async fn who_waits_for_jobs_is_woken_by_the_end_of_a_command_that_never_began(store: Store) {
        let rig = Rig::new(store.clone(), Knobs { at_once: 0, ..Knobs::default() }).await;
        let id = give(&rig, project(&store, "a").await, "never").await;
        let mut wakeups = store.wakeups(Topic::Jobs);
        let outcome = rig.gateway.cancel_command(id, entry(id)).await.unwrap();
        assert_eq!(outcome, CancelOutcome::Cancelled);
        assert_eq!(wakeups.next().await, Woken::Told);
        rig.stop().await;
    }

    async fn accepting_a_command_twice_is_the_same_as_once(store: Store) {
        let rig = Rig::new(store.clone(), Knobs::default()).await;
        let order = order(project(&store, "a").await, "hello");
        let first = rig.gateway.command(order.clone()).await.unwrap();
        let again = rig.gateway.command(order.clone()).await.unwrap();
        assert!(!first.is_again && again.is_again);
        ended(&rig, order.id, CommandState::Completed).await;
        assert_eq!(rig.calls(), ["new|hello"]);
        rig.stop().await;
    }

    async fn a_failure_is_told_with_the_exit_code_of_the_program(store: Store) {
        let rig = Rig::new(store.clone(), Knobs::default()).await;
        let id = give(&rig, project(&store, "a").await, "fail").await;
        let result = ended(&rig, id, CommandState::Failed).await;
        assert_eq!((result.exit_code, result.is_error), (7, true));
        assert_eq!(result.error.unwrap()["kind"], "crashed");
        rig.stop().await;
    }

    async fn a_command_that_is_tried_again_ends_once_with_what_came_of_the_last_try(store: Store) {
        let rig = Rig::new(store.clone(), Knobs { retries: 2, ..Knobs::default() }).await;
        let id = give(&rig, project(&store, "a").await, "stumble").await;
        let result = ended(&rig, id, CommandState::Completed).await;
        assert_eq!(result.response_text.as_deref(), Some("up"));
        let begun = events_of(&store, id).await;
        assert_eq!(begun.iter().filter(|event| event.event.kind == "started").count(), 2);
        rig.stop().await;
    }

    async fn a_command_that_has_not_begun_is_over_when_it_is_cancelled(store: Store) {
        let rig = Rig::new(store.clone(), Knobs { at_once: 0, ..Knobs::default() }).await;
        let id = give(&rig, project(&store, "a").await, "hello").await;
        let cancel = || rig.gateway.cancel_command(id, entry(id));
        assert_eq!(cancel().await.unwrap(), CancelOutcome::Cancelled);
        let result = over_as(&store, id, CommandState::Cancelled).await;
        assert_eq!((result.exit_code, result.is_error), (130, true));
        assert_eq!(cancel().await.unwrap(), CancelOutcome::Ended(JobState::Cancelled));
        let lines = store.read(id.to_string(), |conn, id| Box::pin(audit::about(conn, id)));
        let lines: Result<Vec<Entry>, StoreError> = lines.await;
        assert_eq!(lines.unwrap().len(), 2, "what was not done is not written down");
        rig.change(&Knobs::default());
        rig.stop().await;
        over_as(&store, id, CommandState::Cancelled).await;
    }

    async fn a_command_that_runs_is_stopped_when_it_is_cancelled(store: Store) {
        let rig = Rig::new(store.clone(), Knobs { retries: 3, ..Knobs::default() }).await;
        let id = give(&rig, project(&store, "a").await, "hang").await;
        rig.until_hanging().await;
        for _ in 0..2 {
            let outcome = rig.gateway.cancel_command(id, entry(id)).await.unwrap();
            assert!(matches!(outcome, CancelOutcome::Requested | CancelOutcome::Ended(_)));
        }
        let result = ended(&rig, id, CommandState::Cancelled).await;
        assert_eq!(result.exit_code, 130);
        rig.stop().await;
    }

    async fn a_gateway_that_stops_in_the_middle_does_not_end_a_command(store: Store) {
        let rig = Rig::new(store.clone(), Knobs::default()).await;
        let id = give(&rig, project(&store, "a").await, "gate").await;
        rig.until_hanging().await;
        let rig = rig.again().await;
        assert!(stored(&store, id).await.ended_at.is_none());
        rig.until_hanging().await;
        rig.open_gate().await;
        let result = ended(&rig, id, CommandState::Completed).await;
        assert_eq!(result.response_text.as_deref(), Some("opened"));
        rig.stop().await;
    }

    async fn a_command_whose_gateways_keep_dying_is_ended_by_the_upkeep(store: Store) {
        let queue = Queue::new(store.clone());
        let rig = Rig::new(store.clone(), Knobs { at_once: 0, ..Knobs::default() }).await;
        let id = give(&rig, project(&store, "a").await, "hello").await;
        let past = Millis::now().before(Duration::from_secs(60));
        let (worker, lease) = (WorkerId::new("dies"), Duration::from_secs(1));
        while queue.claim(&worker, past, lease).await.unwrap().is_some() {
            rig.gateway.keep_up_now().await.unwrap();
            assert!(stored(&store, id).await.ended_at.is_none());
            queue.reclaim(Millis::now()).await.unwrap();
        }
        rig.gateway.keep_up_now().await.unwrap();
        rig.gateway.keep_up_now().await.unwrap();
        let result = over_as(&store, id, CommandState::Failed).await;
        assert_eq!(result.error.unwrap()["kind"], "internal");
        rig.stop().await;
    }

    async fn a_command_whose_job_was_cancelled_or_lost_another_way_is_ended_by_the_upkeep(store: Store) {
        let rig = Rig::new(store.clone(), Knobs { at_once: 0, ..Knobs::default() }).await;
        let project = project(&store, "a").await;
        let (cancelled, lost) = (give(&rig, project, "x").await, give(&rig, project, "y").await);
        let queue = Queue::new(store.clone());
        queue.cancel(cancelled.into(), "by somebody", Millis::now()).await.unwrap();
        rig.gateway.keep_up_now().await.unwrap();
        let result = over_as(&store, cancelled, CommandState::Cancelled).await;
        assert_eq!(result.error.unwrap()["message"], "by somebody");
        assert_eq!(stored(&store, lost).await.state, CommandState::Queued);
        clear_queue(&store).await;
        rig.gateway.keep_up_now().await.unwrap();
        over_as(&store, lost, CommandState::Failed).await;
        rig.stop().await;
    }

    async fn nothing_is_accepted_in_a_project_that_is_gone_and_what_is_open_can_be_ended(store: Store) {
        let rig = Rig::new(store.clone(), Knobs::default()).await;
        let project = project(&store, "a").await;
        let running = give(&rig, project, "hang").await;
        rig.until_hanging().await;
        rig.change(&Knobs { at_once: 0, ..Knobs::default() });
        let waiting = give(&rig, project, "never").await;
        delete_project(&store, project).await;
        let refused = rig.gateway.command(order(project, "late")).await.unwrap_err();
        assert!(matches!(refused, Refusal::Project(_)), "{refused}");
        store
            .must((project, Millis::now()), |conn, (project, now)| {
                Box::pin(async move {
                    for id in commands::open_in(conn, *project).await? {
                        cancel_one(conn, id, "the project was deleted", *now).await?;
                    }
                    Ok(())
                })
            })
            .await;
        ended(&rig, running, CommandState::Cancelled).await;
        let result = over_as(&store, waiting, CommandState::Cancelled).await;
        assert_eq!(result.error.unwrap()["message"], "the project was deleted");
        rig.stop().await;
    }

    async fn what_comes_after_the_end_belongs_to_the_project_alone(store: Store) {
        let rig = Rig::new(store.clone(), Knobs { at_once: 0, ..Knobs::default() }).await;
        let project = project(&store, "a").await;
        let (over, open) = (give(&rig, project, "x").await, give(&rig, project, "y").await);
        rig.gateway.cancel_command(over, entry(over)).await.unwrap();
        let late = [over, open].map(|id| NewEvent {
            conversation: None,
            belongs: Some(Belonging {
                project,
                command: Some(CommandRef { id, stream: id.to_string() }),
            }),
            turn: None,
            seq: 0,
            at: Millis(1),
            kind: "output".to_owned(),
            body: "{}".to_owned(),
        });
        store.must(late, |conn, late| Box::pin(append(conn, late))).await;
        over_as(&store, over, CommandState::Cancelled).await;
        assert_eq!(events_of(&store, open).await.len(), 1);
        let all = store.read(project, |conn, id| Box::pin(events::read_project(conn, *id, 0, 10)));
        let all: Result<Vec<StoredEvent>, StoreError> = all.await;
        assert_eq!(all.unwrap().len(), 3);
        rig.stop().await;
    }

    async fn a_command_that_is_over_stays_so_when_its_job_is_tried_again(store: Store) {
        let rig = Rig::new(store.clone(), Knobs::default()).await;
        let id = give(&rig, project(&store, "a").await, "stumble").await;
        ended(&rig, id, CommandState::Failed).await;
        Queue::new(store.clone()).retry(id.into()).await.unwrap();
        assert_eq!(rig.end_of(id.into()).await.1.state, JobState::Done);
        over_as(&store, id, CommandState::Failed).await;
        rig.stop().await;
    }
}

#[test]
fn the_exit_code_is_that_of_the_program_unless_it_belies_the_result() {
    let error = |kind: &str| json!({ "kind": kind, "message": "m" });
    for (report, exit_code) in [
        (json!({ "exit_code": 0 }), 0),
        (json!({}), 0),
        (json!({ "exit_code": 7, "error": error("crashed") }), 7),
        // It said that it failed, and went away as if it had not.
        (json!({ "exit_code": 0, "error": error("auth") }), 1),
        // It did what it should, and was killed after that.
        (json!({ "exit_code": 143 }), 0),
        (json!({ "error": error("timeout") }), 124),
        // We stopped it.
        (json!({ "exit_code": 143, "error": error("cancelled") }), 130),
        (json!({ "exit_code": 137, "error": error("timeout") }), 124),
        (json!({ "error": error("cancelled") }), 130),
        (json!({ "error": error("spawn_failed") }), 3),
        (json!({ "error": error("internal") }), 1),
        (json!({ "error": error("of another version") }), 1),
        (json!({ "exit_code": 1_u64 << 40, "error": error("crashed") }), 1),
    ] {
        let result = CommandResult::of_report(&report.to_string());
        assert_eq!(result.exit_code, exit_code, "{report}");
        assert_eq!(result.is_error, report.get("error").is_some());
    }
    assert_eq!(CommandResult::of_report("no report"), CommandResult::default());
}

#[test]
fn a_result_has_what_the_report_says() {
    let report = json!({
        "agent": "pi", "model": "m", "session_id": "s", "truncated": true, "stop_reason": "end_turn",
        "response_text": "t", "duration_ms": 5, "usage": { "input_tokens": 1 }, "error": null,
        "more": "of it",
    });
    let result = serde_json::to_value(CommandResult::of_report(&report.to_string())).unwrap();
    let expected = json!({
        "exit_code": 0, "duration_ms": 5, "session_id": "s", "provider": "pi", "model": "m",
        "stop_reason": "end_turn", "response_text": "t", "is_error": false, "error": null,
        "usage": { "input_tokens": 1 }, "truncated": true,
    });
    assert_eq!(result, expected);
}
