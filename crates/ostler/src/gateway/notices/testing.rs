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
    give(gateway, Order { text: text.to_owned(), ..order(project, CommandKind::Prompt) }).await
}

/// Has a program run in the folder of a project.
pub(crate) async fn shell(
    gateway: &Gateway,
    project: ProjectId,
    folder: &Path,
    words: &[&str],
) -> CommandId {
    let order = Order {
        text: words.join(" "),
        wishes: Wishes { cwd: Some(folder.to_owned()), ..Wishes::default() },
        words: Some(words.iter().map(|word| (*word).to_owned()).collect()),
        ..order(project, CommandKind::Shell)
    };
    give(gateway, order).await
}

async fn give(gateway: &Gateway, order: Order) -> CommandId {
    let id = order.id;
    gateway.command(order).await.unwrap();
    id
}

fn order(project: ProjectId, kind: CommandKind) -> Order {
    let id = CommandId::new();
    let entry = Entry {
        at: Millis::now(),
        actor: "a test".to_owned(),
        action: format!("command.{}", kind.as_str()),
        subject: id.to_string(),
        detail: "{}".to_owned(),
    };
    Order {
        id,
        project,
        kind,
        stream: None,
        text: String::new(),
        wishes: Wishes::default(),
        words: None,
        actor: "a test".to_owned(),
        entry,
    }
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
