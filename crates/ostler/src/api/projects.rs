//! Projects: made, looked at, changed and deleted.

mod view;

use std::path::PathBuf;

use axum::extract::{FromRequest as _, Request, State};
use ostler_core::{agent::AgentRef, request::Permissions};
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::{Map, Value, json};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

pub(crate) use self::view::Capabilities;
use self::view::{DeletedView, ProjectView};
use super::{
    ApiError, Code, Data, Service,
    caller::Caller,
    error::{BodyErrors, Errors},
    take::{Body, Named, Params},
};
use crate::{
    clock::Millis,
    id::ProjectId,
    key::Scope,
    project::{
        self, Change, Draft, ProjectError, SettingsPatch, confine, on_the_side,
        settings::SettingsChange,
    },
    store::{
        StoreError,
        choices::{self, PROJECT_AGENT},
        projects::{self, Project},
    },
};

/// How many projects are on a page, and how many can be.
const PAGE: u32 = 50;
const LARGEST_PAGE: u32 = 100;

pub(super) fn routes() -> OpenApiRouter<Service> {
    OpenApiRouter::new().routes(routes!(list, create)).routes(routes!(get, patch, delete))
}

impl From<ProjectError> for ApiError {
    fn from(error: ProjectError) -> Self {
        let message = error.to_string();
        match error {
            ProjectError::Wrong(_) | ProjectError::Misplaced(_) | ProjectError::NotRunnable(_) => {
                Self::bad_request(message)
            }
            ProjectError::Taken(_) => Self::conflict(message),
            ProjectError::Unknown(_) => Self::not_found(message),
            ProjectError::Failed => Self::new(Code::InternalError, message),
            ProjectError::Store(error) => error.into(),
        }
    }
}

/// A project that is to be made.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewProject {
    /// What it is called; no two have the same name.
    #[schema(min_length = 1, max_length = 100, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    name: String,
    /// The folder that its agents work in: absolute, or relative to the one folder
    /// of `api.roots`.
    #[schema(min_length = 1, max_length = 4095)]
    directory: String,
    /// Whether the folder is made if it is missing; the one above it must be there.
    #[serde(default)]
    create: bool,
    /// The agent that answers; null for the default.
    agent_provider: Option<String>,
    #[serde(default, deserialize_with = "settings")]
    settings: Option<SettingsChange>,
}

/// Makes a project
///
/// A key that is for some projects only cannot make others. `permissions` other than
/// `read-only`, and `allowed_tools`, need the scope `admin`.
#[utoipa::path(post, path = "/projects", tag = "projects", request_body = NewProject,
    security(("key" = ["projects:execute"])),
    responses((status = 201, body = Data<ProjectView>), Errors, BodyErrors))]
async fn create(
    caller: Caller,
    State(service): State<Service>,
    request: Request,
) -> Result<Data<ProjectView>, ApiError> {
    caller.may_everywhere(Scope::ProjectsExecute)?;
    let Body(new): Body<NewProject> = Body::from_request(request, &service).await?;
    let settings = new.settings.unwrap_or_default();
    // Null clears what is not there yet.
    may_decide(
        &caller,
        settings.permissions.filter(Option::is_some),
        matches!(settings.allowed_tools, Some(Some(_))),
    )?;
    let (id, now) = (ProjectId::new(), Millis::now());
    let draft = Draft {
        id,
        name: new.name,
        directory: new.directory,
        create: new.create,
        agent: new.agent_provider,
        settings,
    };
    let entry = caller.entry("project.create", id, json!({}), now);
    let project = project::create(service.store(), service.policy(), draft, entry, now).await?;
    view(&service, project).await.map(Data::created)
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct PageParams {
    /// How many at most.
    #[param(minimum = 1, maximum = 100, default = 50)]
    limit: Option<u32>,
    /// Where to go on: `meta.next_cursor` of the page before.
    #[param(value_type = Option<String>, pattern = "^prj_[0-9a-f]{32}$")]
    cursor: Option<String>,
}

/// Lists the projects that the key is for, newest first
#[utoipa::path(get, path = "/projects", tag = "projects", params(PageParams),
    security(("key" = ["projects:read"])),
    responses((status = 200, body = Data<Vec<ProjectView>>), Errors))]
async fn list(
    caller: Caller,
    State(service): State<Service>,
    Params(page): Params<PageParams>,
) -> Result<Data<Vec<ProjectView>>, ApiError> {
    caller.may(Scope::ProjectsRead)?;
    let limit = page.limit.unwrap_or(PAGE);
    if !(1..=LARGEST_PAGE).contains(&limit) {
        return Err(ApiError::bad_request(format!("limit: give 1 to {LARGEST_PAGE}")));
    }
    let after = page.cursor.map(|cursor| cursor.parse::<ProjectId>()).transpose();
    let after = after.map_err(|error| ApiError::bad_request(format!("cursor: {error}")))?;
    // One more tells whether there is more.
    let args = (caller.projects().map(<[_]>::to_vec), after, limit + 1);
    let (mut found, chosen) = service
        .store()
        .read(args, |conn, (only, after, limit)| {
            Box::pin(async move {
                let found = projects::list(conn, only.as_deref(), *after, *limit).await?;
                Ok::<_, StoreError>((found, choices::find(conn, PROJECT_AGENT).await?))
            })
        })
        .await?;
    let is_more = u32::try_from(found.len()).is_ok_and(|n_found| n_found > limit);
    found.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    let next = found.last().filter(|_| is_more).map(|last| last.id.to_string());
    let policy = service.policy();
    let views = found.into_iter().map(|found| {
        let agent = project::who_answers(&policy, found.agent.as_deref(), chosen.as_deref());
        Ok(ProjectView::new(found, &agent.map_err(nobody)?))
    });
    Ok(Data::page(views.collect::<Result<_, ApiError>>()?, next))
}

/// Returns a project
#[utoipa::path(get, path = "/projects/{project}", tag = "projects",
    params(("project" = String, Path, description = "The id of a project",
        pattern = "^prj_[0-9a-f]{32}$")),
    security(("key" = ["projects:read"])),
    responses((status = 200, body = Data<ProjectView>), Errors))]
async fn get(
    caller: Caller,
    State(service): State<Service>,
    Named(id): Named<ProjectId>,
) -> Result<Data<ProjectView>, ApiError> {
    caller.may_in(Scope::ProjectsRead, id)?;
    let project = find(&service, id).await?;
    view(&service, project).await.map(Data::new)
}

/// What is to be changed of a project. What is left out stays.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ProjectChange {
    #[serde(default, deserialize_with = "there")]
    #[schema(value_type = String, min_length = 1, max_length = 100,
        pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    name: Option<String>,
    /// The agent that answers; null for the default. With another agent, all
    /// sessions of the project are forgotten.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    agent_provider: Option<Option<String>>,
    /// Merged into what is set; null clears all of it.
    #[serde(default, deserialize_with = "given_settings")]
    #[schema(value_type = Option<SettingsChange>)]
    settings: Option<Option<SettingsChange>>,
}

/// Takes a field that must not be null.
fn there<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    String::deserialize(from).map(Some)
}

/// Takes a field that is there, null too.
fn given<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(from).map(Some)
}

/// Takes settings from an object; a list would be taken for their values in order.
fn settings<'de, D: Deserializer<'de>>(from: D) -> Result<Option<SettingsChange>, D::Error> {
    let fields = Option::<Map<String, Value>>::deserialize(from)?;
    let read = fields.map(|fields| serde_path_to_error::deserialize(Value::Object(fields)));
    read.transpose().map_err(D::Error::custom)
}

fn given_settings<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<Option<SettingsChange>>, D::Error> {
    settings(from).map(Some)
}

/// Returns an error unless the caller may change so much of what agents may do: who
/// may prompt may be stricter than before, and no more.
fn may_decide(
    caller: &Caller,
    permissions: Option<Option<Permissions>>,
    is_about_tools: bool,
) -> Result<(), ApiError> {
    let is_strict = matches!(permissions, None | Some(Some(Permissions::ReadOnly)));
    if is_strict && !is_about_tools {
        return Ok(());
    }
    let message = "settings: only a key with the scope admin decides what agents may do";
    caller.may(Scope::Admin).map_err(|_| ApiError::forbidden(message))
}

/// Changes a project
///
/// Another agent must be one that could run, and begins without the sessions of the
/// one before. A change of `permissions` to anything but `read-only`, of
/// `allowed_tools` or of all settings at once needs the scope `admin`.
#[utoipa::path(patch, path = "/projects/{project}", tag = "projects",
    request_body = ProjectChange,
    params(("project" = String, Path, description = "The id of a project",
        pattern = "^prj_[0-9a-f]{32}$")),
    security(("key" = ["projects:execute"])),
    responses((status = 200, body = Data<ProjectView>), Errors, BodyErrors))]
async fn patch(
    caller: Caller,
    State(service): State<Service>,
    Named(id): Named<ProjectId>,
    request: Request,
) -> Result<Data<ProjectView>, ApiError> {
    caller.may_in(Scope::ProjectsExecute, id)?;
    find(&service, id).await?;
    let Body(change): Body<ProjectChange> = Body::from_request(request, &service).await?;
    let ProjectChange { name, agent_provider: agent, settings } = change;
    match &settings {
        Some(Some(change)) => {
            may_decide(&caller, change.permissions, change.allowed_tools.is_some())?;
        }
        Some(None) => may_decide(&caller, Some(None), true)?,
        None => {}
    }
    let settings = settings.map(|change| change.map_or(SettingsPatch::Clear, SettingsPatch::Merge));
    let change = Change { name, agent, settings };
    let now = Millis::now();
    let entry = caller.entry("project.change", id, json!({}), now);
    let changed = project::change(service.store(), service.policy(), id, change, entry, now);
    view(&service, changed.await?.project).await.map(Data::new)
}

/// Deletes a project
///
/// What is open in it is cancelled. Its folder stays as it is.
#[utoipa::path(delete, path = "/projects/{project}", tag = "projects",
    params(("project" = String, Path, description = "The id of a project",
        pattern = "^prj_[0-9a-f]{32}$")),
    security(("key" = ["projects:execute"])),
    responses((status = 200, body = Data<DeletedView>), Errors))]
async fn delete(
    caller: Caller,
    State(service): State<Service>,
    Named(id): Named<ProjectId>,
) -> Result<Data<DeletedView>, ApiError> {
    caller.may_in(Scope::ProjectsExecute, id)?;
    let now = Millis::now();
    let entry = caller.entry("project.delete", id, json!({}), now);
    let deleted = project::delete(service.store(), id, entry, now).await?;
    Ok(Data::new(DeletedView { id, cancelled_commands: deleted.n_cancelled }))
}

/// Returns a project, which must be there.
pub(super) async fn find(service: &Service, id: ProjectId) -> Result<Project, ApiError> {
    let found = service.store().read(id, |conn, id| Box::pin(projects::find(conn, *id))).await?;
    found.ok_or_else(|| ProjectError::Unknown(id).into())
}

/// Returns who answers in a project now.
pub(super) async fn provider_of(
    service: &Service,
    project: &Project,
) -> Result<AgentRef, ApiError> {
    let chosen = chosen_agent(service).await?;
    let policy = service.policy();
    project::who_answers(&policy, project.agent.as_deref(), chosen.as_deref()).map_err(nobody)
}

/// Returns who was chosen to answer in projects that name nobody.
pub(super) async fn chosen_agent(service: &Service) -> Result<Option<String>, ApiError> {
    let read = service.store().read((), |conn, ()| Box::pin(choices::find(conn, PROJECT_AGENT)));
    Ok(read.await?)
}

/// Returns where a command of a project is run, if that still is a good place: a
/// folder may have been replaced since it was looked at.
pub(super) async fn working_directory(
    service: &Service,
    project: &Project,
) -> Result<PathBuf, ApiError> {
    let (policy, directory) = (service.policy(), project.directory.clone());
    let found = on_the_side(move || Ok(confine::unchanged(&policy.api.roots, &directory)?)).await;
    match found {
        Err(ProjectError::Misplaced(why)) => {
            Err(ApiError::conflict(format!("the project cannot run: {why}")))
        }
        other => Ok(other?),
    }
}

async fn view(service: &Service, project: Project) -> Result<ProjectView, ApiError> {
    let agent = provider_of(service, &project).await?;
    Ok(ProjectView::new(project, &agent))
}

/// Says that no agent can answer. The configuration does not allow for that.
pub(super) fn nobody(why: String) -> ApiError {
    tracing::error!(%why, "no agent can answer in projects");
    ApiError::new(Code::InternalError, "no agent can answer in projects")
}

#[cfg(test)]
mod tests;
