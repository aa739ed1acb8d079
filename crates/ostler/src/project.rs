//! Projects: what may be one, and what is done to them. The HTTP service and the
//! command line both go through here, so that the same holds for both.
//!
//! Each change is one write, with its line of the audit. Whoever asks for it has
//! been let in already, and says how the line begins.

pub(crate) mod confine;
pub(crate) mod settings;

use std::{path::Path, sync::Arc};

use ostler_core::{
    agent::AgentRef,
    failure::{Failure, FailureKind},
};
use serde_json::{Map, Value, json};
use thiserror::Error;
use tokio::task;

use self::{
    confine::Misplaced,
    settings::{SettingsChange, SettingsView},
};
use crate::{
    clock::Millis,
    gateway::{
        commands::{cancelled, end},
        policy::Policy,
    },
    id::ProjectId,
    queue::{CancelOutcome, JobState, cancel::cancel},
    store::{
        Conn, Store, StoreError, WriteError,
        audit::{self, Entry},
        choices::{self, PROJECT_AGENT},
        commands,
        projects::{self, Project, ProjectSettings},
        sessions,
    },
};

/// The longest name, in characters.
const LONGEST_NAME: usize = 100;

/// What is said of the commands of a project that is deleted.
const DELETED: &str = "its project was deleted";

/// Why something was not done to a project. Nothing of it was.
#[derive(Debug, Error)]
pub(crate) enum ProjectError {
    #[error("{0}")]
    Wrong(String),
    #[error(transparent)]
    Misplaced(#[from] Misplaced),
    #[error("{0} cannot be run on this machine; `ostler doctor` says why")]
    NotRunnable(String),
    #[error("there is a project {0:?} already")]
    Taken(String),
    #[error("there is no project {0}")]
    Unknown(ProjectId),
    #[error("it could not be looked up")]
    Failed,
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl WriteError for ProjectError {
    fn store_error(&self) -> Option<&StoreError> {
        match self {
            Self::Store(error) => Some(error),
            Self::Wrong(_)
            | Self::Misplaced(_)
            | Self::NotRunnable(_)
            | Self::Taken(_)
            | Self::Unknown(_)
            | Self::Failed => None,
        }
    }
}

/// A project that somebody wants.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) id: ProjectId,
    pub(crate) name: String,
    /// Absolute, or relative to the one folder that projects may lie in.
    pub(crate) directory: String,
    /// Whether the folder is made if it is missing.
    pub(crate) create: bool,
    pub(crate) agent: Option<String>,
    pub(crate) settings: SettingsChange,
}

impl Draft {
    /// Makes a project of it, with its folder. Reads the file system.
    fn ready(self, policy: &Policy, now: Millis) -> Result<Project, ProjectError> {
        let Self { id, name, directory, create, agent, settings: change } = self;
        check_name(&name)?;
        change.check().map_err(|why| ProjectError::Wrong(format!("settings.{why}")))?;
        let agent = agent.map(|agent| usable(policy, &agent)).transpose()?;
        let roots = &policy.api.roots;
        let meant = confine::meant(roots, &directory)?;
        let folder = if create {
            confine::found_or_made(roots, &meant)?
        } else {
            confine::confined(roots, &meant)?
        };
        let mut settings = ProjectSettings::default();
        change.apply(&mut settings.wishes);
        Ok(Project {
            id,
            name,
            // It is known to be UTF-8.
            directory: folder.display().to_string(),
            agent: agent.map(|spec| spec.name.to_string()),
            settings,
            created_at: now,
            updated_at: now,
        })
    }
}

/// What is to be changed of a project. What is `None` stays.
#[derive(Clone, Debug, Default)]
pub(crate) struct Change {
    pub(crate) name: Option<String>,
    /// Who answers; nobody in particular for the default.
    pub(crate) agent: Option<Option<String>>,
    pub(crate) settings: Option<SettingsPatch>,
}

/// What becomes of the settings.
#[derive(Clone, Debug)]
pub(crate) enum SettingsPatch {
    Clear,
    Merge(SettingsChange),
}

impl Change {
    /// Checks it, and gives the agent the name that it goes by. Reads the file system.
    fn ready(mut self, policy: &Policy) -> Result<Self, ProjectError> {
        if let Some(name) = &self.name {
            check_name(name)?;
        }
        if let Some(Some(agent)) = &mut self.agent {
            *agent = usable(policy, agent)?.name.to_string();
        }
        if let Some(SettingsPatch::Merge(change)) = &self.settings {
            change.check().map_err(|why| ProjectError::Wrong(format!("settings.{why}")))?;
        }
        Ok(self)
    }

    fn apply(self, project: &mut Project) {
        let Self { name, agent, settings } = self;
        if let Some(name) = name {
            project.name = name;
        }
        if let Some(agent) = agent {
            project.agent = agent;
        }
        match settings {
            Some(SettingsPatch::Clear) => project.settings = ProjectSettings::default(),
            Some(SettingsPatch::Merge(change)) => change.apply(&mut project.settings.wishes),
            None => {}
        }
    }
}

/// Checks the name of a project.
fn check_name(name: &str) -> Result<(), ProjectError> {
    let wrong = |why: String| Err(ProjectError::Wrong(why));
    if name.is_empty() || name.chars().count() > LONGEST_NAME {
        return wrong(format!("name: it must have 1 to {LONGEST_NAME} characters"));
    }
    if name.chars().any(char::is_control) {
        return wrong("name: it must not have control characters".to_owned());
    }
    if name.trim() != name {
        return wrong("name: it must not have spaces around it".to_owned());
    }
    if name.parse::<ProjectId>().is_ok() {
        return wrong("name: it must not be the id of a project".to_owned());
    }
    Ok(())
}

/// Returns the agent of a name, if it is known and could run. Reads the file system.
pub(crate) fn usable(policy: &Policy, name: &str) -> Result<AgentRef, ProjectError> {
    let spec = policy.agents.resolve(Some(name)).map_err(ProjectError::Wrong)?;
    if policy.can_run(&spec) {
        Ok(spec)
    } else {
        Err(ProjectError::NotRunnable(spec.name.to_string()))
    }
}

/// Returns who answers in a project: its agent if there still is such a one, else
/// the one that was chosen for all, else the configured one, else the gateway's.
pub(crate) fn who_answers(
    policy: &Policy,
    own: Option<&str>,
    chosen: Option<&str>,
) -> Result<AgentRef, String> {
    let named = [own, chosen, Some(policy.project_agent.as_str())].into_iter().flatten();
    let mut known = named.filter_map(|name| policy.agents.resolve(Some(name)).ok());
    known.next().map_or_else(|| policy.agents.resolve(None), Ok)
}

/// Whether an agent still is the one that answers where its turn belongs. A project
/// may have got another meanwhile, or be deleted: its sessions were forgotten, and
/// what is left of that turn must not bring one back. Until the write is over the
/// project stays as it is.
pub(crate) async fn still_answers(
    conn: &mut Conn,
    policy: &Policy,
    project: Option<ProjectId>,
    agent: &str,
) -> Result<bool, StoreError> {
    let Some(project) = project else { return Ok(true) };
    let Some(project) = projects::hold(conn, project).await? else { return Ok(false) };
    let chosen = choices::find(conn, PROJECT_AGENT).await?;
    let now = who_answers(policy, project.agent.as_deref(), chosen.as_deref());
    Ok(now.is_ok_and(|now| *now.name == *agent))
}

/// Makes a project.
pub(crate) async fn create(
    store: &Store,
    policy: Arc<Policy>,
    draft: Draft,
    entry: Entry,
    now: Millis,
) -> Result<Project, ProjectError> {
    // Nothing is made for a project that cannot be.
    let named = store.read(draft.name.clone(), |conn, name| {
        Box::pin(async move { projects::find_named(conn, name).await })
    });
    if named.await?.is_some() {
        return Err(ProjectError::Taken(draft.name));
    }
    let project = on_the_side(move || draft.ready(&policy, now)).await?;
    let mut detail = json!({
        "name": project.name, "directory": project.directory, "agent": project.agent,
    });
    if let Some(detail) = detail.as_object_mut() {
        detail.extend(rights(&project).map(|(name, value)| (name.to_owned(), value)));
    }
    let args = (project, with_detail(entry, detail));
    let written = store.write(args, |conn, (project, entry)| {
        Box::pin(async move {
            if !projects::add(conn, project).await? {
                return Err(ProjectError::Taken(project.name.clone()));
            }
            audit::add(conn, entry).await?;
            Ok(project.clone())
        })
    });
    written.await
}

/// What was changed of a project.
#[derive(Clone, Debug)]
pub(crate) struct Changed {
    pub(crate) project: Project,
    /// How many sessions were forgotten.
    pub(crate) sessions: u64,
}

/// Changes a project. Another agent goes on with no session of the one before.
pub(crate) async fn change(
    store: &Store,
    policy: Arc<Policy>,
    id: ProjectId,
    change: Change,
    entry: Entry,
    now: Millis,
) -> Result<Changed, ProjectError> {
    let change = on_the_side(move || change.ready(&policy)).await?;
    let name = change.name.clone().unwrap_or_default();
    let written = store.write((id, change, entry, now), |conn, (id, change, entry, now)| {
        Box::pin(change_within(conn, *id, change, entry, *now))
    });
    let written = written.await;
    // Two took the name at the same moment.
    if let Err(ProjectError::Store(error)) = &written
        && projects::is_taken(error)
    {
        return Err(ProjectError::Taken(name));
    }
    written
}

async fn change_within(
    conn: &mut Conn,
    id: ProjectId,
    change: &Change,
    entry: &Entry,
    now: Millis,
) -> Result<Changed, ProjectError> {
    let Some(before) = projects::lock(conn, id).await? else {
        return Err(ProjectError::Unknown(id));
    };
    let mut project = before.clone();
    change.clone().apply(&mut project);
    if project == before {
        return Ok(Changed { project, sessions: 0 });
    }
    if project.name != before.name && projects::find_named(conn, &project.name).await?.is_some() {
        return Err(ProjectError::Taken(project.name));
    }
    project.updated_at = now;
    projects::update(conn, &project).await?;
    let mut detail = Map::new();
    let mut note = |name: &str, value: Value| drop(detail.insert(name.to_owned(), value));
    if project.name != before.name {
        note("name", json!({ "from": before.name, "to": project.name }));
    }
    let mut n_sessions = 0;
    if project.agent != before.agent {
        n_sessions = sessions::clear_in(conn, id).await?;
        note("agent", json!({ "from": before.agent, "to": project.agent }));
        note("sessions", json!(n_sessions));
    }
    match &change.settings {
        Some(SettingsPatch::Clear) => note("settings", json!("cleared")),
        // Of most only the names: a system prompt may be nobody else's business.
        Some(SettingsPatch::Merge(change)) => note("settings", json!(change.names())),
        None => {}
    }
    for ((name, from), (_, to)) in rights(&before).into_iter().zip(rights(&project)) {
        if from != to {
            note(name, json!({ "from": from, "to": to }));
        }
    }
    audit::add(conn, &with_detail(entry.clone(), Value::Object(detail))).await?;
    Ok(Changed { project, sessions: n_sessions })
}

/// Returns what the audit says of settings word for word: what agents may do.
fn rights(project: &Project) -> [(&'static str, Value); 2] {
    let view = serde_json::to_value(SettingsView::from(&project.settings.wishes));
    let view = view.unwrap_or_default();
    ["permissions", "allowed_tools"].map(|name| (name, view.get(name).cloned().unwrap_or_default()))
}

/// What was deleted with a project.
#[derive(Clone, Debug)]
pub(crate) struct Deleted {
    pub(crate) project: Project,
    /// How many commands were not over.
    pub(crate) n_cancelled: usize,
}

/// Deletes a project: what is open in it is cancelled, and its sessions are forgotten.
pub(crate) async fn delete(
    store: &Store,
    id: ProjectId,
    entry: Entry,
    now: Millis,
) -> Result<Deleted, ProjectError> {
    let written = store.write((id, entry, now), |conn, (id, entry, now)| {
        Box::pin(delete_within(conn, *id, entry, *now))
    });
    written.await
}

async fn delete_within(
    conn: &mut Conn,
    id: ProjectId,
    entry: &Entry,
    now: Millis,
) -> Result<Deleted, ProjectError> {
    let Some(project) = projects::lock(conn, id).await? else {
        return Err(ProjectError::Unknown(id));
    };
    let mut n_cancelled = 0;
    let mut over = Vec::new();
    for command in commands::open_in(conn, id).await? {
        match cancel(conn, command.into(), DELETED, now).await? {
            CancelOutcome::Cancelled => over.push(command),
            CancelOutcome::Requested => n_cancelled += 1,
            CancelOutcome::Ended(_) | CancelOutcome::Unknown => {}
        }
    }
    n_cancelled += over.len();
    let n_sessions = sessions::clear_in(conn, id).await?;
    projects::delete(conn, id, now).await?;
    let detail = json!({ "name": project.name, "cancelled": n_cancelled, "sessions": n_sessions });
    audit::add(conn, &with_detail(entry.clone(), detail)).await?;
    // Whoever ends something numbers its events last. Numbers that were taken while
    // lanes are waited for would have two wait for each other.
    for command in over {
        end(conn, command, JobState::Cancelled, cancelled(Some(DELETED)), now).await?;
    }
    Ok(Deleted { project, n_cancelled })
}

/// Adds to what a line of the audit says.
fn with_detail(mut entry: Entry, more: Value) -> Entry {
    let mut detail: Value = serde_json::from_str(&entry.detail).unwrap_or_default();
    match (detail.as_object_mut(), more) {
        (Some(detail), Value::Object(more)) => detail.extend(more),
        (_, more) => detail = more,
    }
    entry.detail = detail.to_string();
    entry
}

/// Checks that a command can begin in its folder: that may have been replaced, or
/// lie in no root any more, since the command was accepted.
pub(crate) async fn check_folder(policy: &Policy, folder: &Path) -> Result<(), Failure> {
    let (roots, folder) = (policy.api.roots.clone(), folder.display().to_string());
    let found = on_the_side(move || Ok(confine::unchanged(&roots, &folder)?)).await;
    found.map(drop).map_err(|why| {
        Failure::new(FailureKind::InvalidRequest, format!("the project cannot run: {why}"))
    })
}

/// Does what reads the file system where nobody waits for it.
pub(crate) async fn on_the_side<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ProjectError> + Send + 'static,
) -> Result<T, ProjectError> {
    let done = task::spawn_blocking(work).await;
    done.unwrap_or(Err(ProjectError::Failed))
}
