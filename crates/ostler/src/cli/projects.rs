//! `ostler projects`: the projects of the HTTP service. Works while the gateway
//! runs, and when it does not; one that runs is told what was changed. The same
//! holds for a project as over HTTP.

mod flags;
mod view;

use std::{path::PathBuf, sync::Arc};

use clap::{Args, Subcommand};
use ostler_core::host::Host;
use serde_json::json;

use self::{
    flags::{CreateArgs, SetArgs},
    view::{Changed, Page, Row},
};
use super::{
    Exit,
    agents::FormArg,
    store::{failed, print, shown},
};
use crate::{
    clock::Millis,
    config::{Loaded, Problems, Settings, store_location},
    gateway::policy::Policy,
    id::ProjectId,
    project::{self, Change, ProjectError},
    socket,
    store::{
        Store, StoreError, Use,
        audit::Entry,
        choices::{self, PROJECT_AGENT},
        projects::{self, Project},
    },
    ui::{Ui, printable},
};

/// Who is written down for what is done here.
const OPERATOR: &str = "operator";

#[derive(Args, Debug)]
pub(crate) struct ProjectsArgs {
    #[command(subcommand)]
    command: ProjectsCommand,
    /// What to print
    #[arg(long, value_enum, default_value = "text", global = true)]
    output: FormArg,
}

#[derive(Debug, Subcommand)]
enum ProjectsCommand {
    /// List the projects, newest first
    List {
        /// Begin after this project
        #[arg(long, value_name = "ID")]
        after: Option<ProjectId>,
        /// How many at most
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
    },
    /// Make a project of a folder below `api.roots`
    Create(Box<CreateArgs>),
    /// Show a project
    Show {
        /// The project, by its name or as prj_…
        project: String,
    },
    /// Change a project: its name, its agent, how its turns are run
    Set(Box<SetArgs>),
    /// Delete a project; what is open in it is cancelled, its folder stays
    Delete {
        /// The project, by its name or as prj_…
        project: String,
    },
}

impl ProjectsCommand {
    fn purpose(&self) -> Use {
        match self {
            Self::List { .. } | Self::Show { .. } => Use::Look,
            Self::Create(_) | Self::Set(_) | Self::Delete { .. } => Use::Beside,
        }
    }

    /// Returns the agent that is asked for, whose secrets are needed to see whether
    /// it could run.
    fn agent(&self) -> Option<&str> {
        match self {
            Self::Create(args) => args.agent(),
            Self::Set(args) => args.agent(),
            Self::List { .. } | Self::Show { .. } | Self::Delete { .. } => None,
        }
    }
}

/// Does what the subcommand says.
pub(crate) async fn run(args: ProjectsArgs, loaded: Loaded, ui: &mut Ui) -> Result<Exit, Problems> {
    let ProjectsArgs { command, output } = args;
    let purpose = command.purpose();
    let location = store_location(&loaded).await?;
    let socket = socket::path(&loaded.host_config().data_dir);
    let policy = policy(loaded, command.agent().unwrap_or_default()).await?;
    let store = match Store::open(&location, purpose).await {
        Ok(store) => store,
        Err(error) => return Ok(failed(&error, ui)),
    };
    let done = perform(&store, &Arc::new(policy), command, output, ui).await;
    store.close().await;
    if purpose == Use::Beside {
        socket::client::tell_to_look(&socket).await;
    }
    Ok(done.unwrap_or_else(|error| refused(error, ui)))
}

/// Takes what is configured, as the gateway does.
async fn policy(loaded: Loaded, agent: &str) -> Result<Policy, Problems> {
    let config = loaded.config.clone();
    let settings = Settings::new(loaded, Some(agent)).await?;
    let host = Host::new(settings.host_config());
    // No turn is run from here.
    Ok(Policy::new(&config, settings, host, PathBuf::from("/")))
}

/// Says why something was not done.
fn refused(error: ProjectError, ui: &mut Ui) -> Exit {
    let exit = match &error {
        ProjectError::Store(error) => return failed(error, ui),
        ProjectError::Wrong(_) | ProjectError::Misplaced(_) => Exit::Usage,
        ProjectError::NotRunnable(_) => Exit::NotRunnable,
        ProjectError::Taken(_) | ProjectError::Unknown(_) | ProjectError::Failed => Exit::Failed,
    };
    ui.notice(&printable(&format!("ostler: {error}")));
    exit
}

async fn perform(
    store: &Store,
    policy: &Arc<Policy>,
    command: ProjectsCommand,
    output: FormArg,
    ui: &mut Ui,
) -> Result<Exit, ProjectError> {
    let now = Millis::now();
    let changed = match command {
        ProjectsCommand::List { after, limit } => {
            return list(store, policy, after, limit, output, ui).await;
        }
        ProjectsCommand::Show { project } => {
            let Some(project) = find(store, &project).await? else {
                return Ok(unknown(&project, ui));
            };
            let row = row(store, policy, project).await?;
            return Ok(shown(print(&row, &row.text(), output, ui), Exit::Answered, ui));
        }
        ProjectsCommand::Create(args) => {
            let draft = args.draft()?;
            let entry = entry("project.create", draft.id, now);
            let made = project::create(store, Arc::clone(policy), draft, entry, now).await?;
            Changed::new("created", row(store, policy, made).await?)
        }
        ProjectsCommand::Set(args) => {
            let Some(project) = find(store, args.project()).await? else {
                return Ok(unknown(args.project(), ui));
            };
            let (change, entry) = (args.change()?, entry("project.change", project.id, now));
            set(store, policy, &project, change, entry, now).await?
        }
        ProjectsCommand::Delete { project } => {
            let Some(found) = find(store, &project).await? else {
                return Ok(unknown(&project, ui));
            };
            let entry = entry("project.delete", found.id, now);
            let deleted = project::delete(store, found.id, entry, now).await?;
            let row = row(store, policy, deleted.project).await?;
            Changed { cancelled: deleted.n_cancelled, ..Changed::new("deleted", row) }
        }
    };
    Ok(shown(print(&changed, &changed.text(), output, ui), Exit::Answered, ui))
}

async fn set(
    store: &Store,
    policy: &Arc<Policy>,
    before: &Project,
    change: Change,
    entry: Entry,
    now: Millis,
) -> Result<Changed, ProjectError> {
    let changed = project::change(store, Arc::clone(policy), before.id, change, entry, now).await?;
    let outcome = if changed.project == *before { "unchanged" } else { "changed" };
    let row = row(store, policy, changed.project).await?;
    Ok(Changed { sessions: changed.sessions, ..Changed::new(outcome, row) })
}

async fn list(
    store: &Store,
    policy: &Policy,
    after: Option<ProjectId>,
    limit: u32,
    output: FormArg,
    ui: &mut Ui,
) -> Result<Exit, ProjectError> {
    let read = store.read((after, limit), |conn, (after, limit)| {
        Box::pin(async move {
            let found = projects::list(conn, None, *after, *limit).await?;
            Ok::<_, StoreError>((found, choices::find(conn, PROJECT_AGENT).await?))
        })
    });
    let (found, chosen) = read.await?;
    let is_full = u32::try_from(found.len()).is_ok_and(|n_found| n_found == limit);
    let next = found.last().filter(|_| is_full).map(|last| last.id);
    let rows = found.into_iter().map(|project| Row::new(project, policy, chosen.as_deref()));
    let page = Page { projects: rows.collect(), next };
    Ok(shown(print(&page, &page.text(), output, ui), Exit::Answered, ui))
}

/// Returns a project by its id or its name.
async fn find(store: &Store, which: &str) -> Result<Option<Project>, StoreError> {
    let read = store.read(which.to_owned(), |conn, which| {
        Box::pin(async move {
            match which.parse() {
                Ok(id) => projects::find(conn, id).await,
                Err(_) => projects::find_named(conn, which).await,
            }
        })
    });
    read.await
}

async fn row(store: &Store, policy: &Policy, project: Project) -> Result<Row, StoreError> {
    let read = store.read((), |conn, ()| Box::pin(choices::find(conn, PROJECT_AGENT)));
    let chosen = read.await?;
    Ok(Row::new(project, policy, chosen.as_deref()))
}

fn entry(action: &str, subject: ProjectId, now: Millis) -> Entry {
    Entry {
        at: now,
        actor: OPERATOR.to_owned(),
        action: action.to_owned(),
        subject: subject.to_string(),
        detail: json!({}).to_string(),
    }
}

fn unknown(which: &str, ui: &mut Ui) -> Exit {
    ui.notice(&printable(&format!("ostler: there is no project {which:?}")));
    Exit::Failed
}

#[cfg(test)]
mod tests;
