//! Commands and webhooks for tests, and a delivery that does not wait.

use std::{path::Path, time::Duration};

use tokio::sync::watch;

use crate::{
    channel::{
        Channels,
        notice::{self, Notices},
        reach::{self, Lookup},
        webhook::Limits,
    },
    clock::Millis,
    gateway::{
        Gateway,
        commands::accept::Order,
        delivery::{Delivery, Pace},
        policy::Policy,
    },
    id::{CommandId, ProjectId},
    store::{
        Store,
        audit::Entry,
        commands::CommandKind,
        projects::{self, Project, ProjectSettings},
    },
    wishes::Wishes,
};

/// More than anything here takes.
pub(crate) const LONG: Duration = Duration::from_secs(30);

/// Stores a project in a folder.
pub(crate) async fn project(store: &Store, name: &str, folder: &Path) -> ProjectId {
    let project = Project {
        id: ProjectId::new(),
        name: name.to_owned(),
        directory: folder.to_string_lossy().into_owned(),
        agent: None,
        settings: ProjectSettings::default(),
        created_at: Millis::now(),
        updated_at: Millis::now(),
    };
    let id = project.id;
    store
        .must(project, |conn, project| {
            Box::pin(async move { projects::add(conn, project).await.map(drop) })
        })
        .await;
    id
}

/// Gives a command.
pub(crate) async fn command(gateway: &Gateway, project: ProjectId, text: &str) -> CommandId {
    let id = CommandId::new();
    let entry = Entry {
        at: Millis::now(),
        actor: "a test".to_owned(),
        action: "command.prompt".to_owned(),
        subject: id.to_string(),
        detail: "{}".to_owned(),
    };
    let order = Order {
        id,
        project,
        kind: CommandKind::Prompt,
        stream: None,
        text: text.to_owned(),
        wishes: Wishes::default(),
        words: None,
        actor: "a test".to_owned(),
        entry,
    };
    gateway.command(order).await.unwrap();
    id
}

/// Starts to call webhooks, with no wait of ours worth waiting for.
pub(crate) fn deliver(
    store: &Store,
    policy: watch::Receiver<std::sync::Arc<Policy>>,
    limits: Limits,
    lookup: Lookup,
) -> Delivery {
    let mut pace = Pace::USUAL;
    pace.notices.first = Duration::from_millis(1);
    pace.notices.longest = Duration::from_millis(5);
    let notices = Notices::with(store.clone(), policy, limits, lookup);
    Delivery::start(store.clone(), Channels::new().with_notices(notices), "here", pace)
}

/// Starts to call webhooks as it is usually done.
pub(crate) fn deliver_as_usual(
    store: &Store,
    policy: watch::Receiver<std::sync::Arc<Policy>>,
) -> Delivery {
    deliver(store, policy, notice::LIMITS, reach::system())
}
