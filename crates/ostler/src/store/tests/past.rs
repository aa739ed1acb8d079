//! What is read of projects costs the same however much there was before.

use super::*;
use crate::{
    id::{CommandId, JobId, ProjectId, TurnId, WebhookId},
    store::{
        commands::{CommandKind, CommandState, Filter, NewCommand},
        conversations::Address,
        events::{Belonging, CommandRef, NewEvent},
        projects::{Project, ProjectSettings},
        testing::plans,
        turns::NewTurn,
        webhooks::NoticeKind,
    },
};

/// Makes a command that is over, in a conversation of its own, with its turn and
/// an event.
async fn command(conn: &mut Conn, project: ProjectId) -> Result<(), StoreError> {
    let id = CommandId::new();
    let address = Address::new("api", &id.to_string()).map_err(|_| StoreError::Closed)?;
    let conversation = conversations::find_or_begin(conn, &address, NOW).await?.id;
    conversations::set_project(conn, conversation, project).await?;
    let stream = "all of them".to_owned();
    let new = NewCommand {
        id,
        project,
        conversation,
        kind: CommandKind::Prompt,
        stream: stream.clone(),
        agent: None,
        text: "x".to_owned(),
        actor: "me".to_owned(),
        created_at: NOW,
    };
    commands::add(conn, &new).await?;
    commands::end(conn, id, CommandState::Completed, "{}", NOW).await?;
    let turn = NewTurn {
        id: TurnId::new(),
        conversation,
        job: Some(JobId::from(id)),
        attempt: 1,
        agent: "pi".to_owned(),
        begun_at: NOW,
    };
    turns::begin(conn, &turn).await?;
    let event = NewEvent {
        conversation: Some(conversation),
        belongs: Some(Belonging { project, command: Some(CommandRef { id, stream }) }),
        turn: Some(turn.id),
        seq: 1,
        at: NOW,
        kind: "output".to_owned(),
        body: "{}".to_owned(),
    };
    events::append(conn, &[event]).await.map(drop)
}

on_both! {
    async fn nothing_that_is_asked_of_a_project_looks_at_all_of_its_past(store: Store) {
        let id = ProjectId::new();
        let project = Project {
            id,
            name: "a".to_owned(),
            directory: "/".to_owned(),
            agent: None,
            settings: ProjectSettings::default(),
            created_at: NOW,
            updated_at: NOW,
        };
        store.must(project, |conn, project| Box::pin(projects::add(conn, project))).await;
        for _ in 0..4 {
            let filled = store.must(id, |conn, id| {
                Box::pin(async move {
                    for _ in 0..500 {
                        command(conn, *id).await?;
                    }
                    Ok(())
                })
            });
            filled.await;
        }
        let plans = plans(&store, id, |conn, id| {
            Box::pin(async move {
                let open = Filter { state: Some(CommandState::Running), kind: None };
                commands::list(conn, *id, Filter::default(), None, 20).await?;
                commands::list(conn, *id, open, None, 20).await?;
                commands::over_among(conn, &[CommandId::new(), CommandId::new()]).await?;
                turns::of_project(conn, *id, None, 20).await?;
                turns::find_in(conn, *id, TurnId::new()).await?;
                events::read_command(conn, CommandId::new(), 5, 100).await?;
                events::read_turn(conn, TurnId::new(), 5, 100).await?;
                answered_requests::find(conn, "a", "b").await?;
                answered_requests::remove_before(conn, Millis(1), 20).await.map(drop)
            })
        });
        for plan in plans.await {
            let is_scan = plan.lines().any(|line| {
                let is_small = line.contains("answered_requests");
                line.contains("Seq Scan on") && !is_small
                    || line.contains("SCAN ") && !line.contains("INDEX")
            });
            assert!(!is_scan, "{plan}");
        }
        let is_file = matches!(store.location(), Location::Sqlite(_));
        let plans = testing::plans(&store, id, |conn, id| {
            Box::pin(async move {
                commands::open_in(conn, *id).await?;
                commands::left_behind(conn, 20).await?;
                webhooks::calls(conn, WebhookId::new(), None, 20).await?;
                webhooks::fitting(conn, *id, NoticeKind::Started).await?;
                numbers::count(conn).await.map(drop)
            })
        });
        let plans = plans.await.join("\n");
        assert!(!plans.contains("Seq Scan on commands"), "{plans}");
        // On a server what is almost empty is looked at as a whole.
        for index in [
            "commands_open_in",
            "commands_open",
            "outbox_notices",
            "webhooks_alive",
            "jobs_not_begun",
            "jobs_leased",
            "jobs_dead",
            "outbox_failed",
        ] {
            let is_used = plans.lines().any(|line| line.split(' ').any(|word| word == index));
            assert!(is_used || !is_file, "{index}: {plans}");
        }
        let plans = testing::plans(&store, id, |conn, id| {
            Box::pin(async move {
                permissions::open_of(conn, *id, NOW, None, 20).await.map(drop)
            })
        });
        for plan in plans.await {
            let is_by_project = plan.contains("conversations_by_project");
            assert!(!is_by_project && !plan.contains("Seq Scan on conversations"), "{plan}");
        }
    }
}
