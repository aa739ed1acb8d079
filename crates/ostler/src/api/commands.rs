//! Commands of a project: which there are, what came of each, what happened in it,
//! and its end before its time.

use std::time::Duration;

use axum::{
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::{self, Instant};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    ApiError, Caller, Data, Phase, Service,
    error::{ErrorBody, Errors},
    events::render::object,
    health::provider,
    projects,
    take::{Named, Params, Within},
};
use crate::{
    clock::Millis,
    gateway::commands::CommandResult,
    id::{CommandId, ProjectId},
    key::Scope,
    queue::CancelOutcome,
    store::{
        StoreError, Topic,
        commands::{self, CommandKind, CommandState, Filter, StoredCommand},
        events::{self, StoredEvent},
    },
};

/// How many things a list has at most, and unless somebody says otherwise.
const MOST: u32 = 100;
const USUAL: u32 = 50;
/// How many events a page has at most, and unless somebody says otherwise.
const MOST_EVENTS: u32 = 500;
const USUAL_EVENTS: u32 = 100;
/// How long who waits for the end of a command lets pass before he looks again: he
/// is woken for the jobs of everybody, of which there may be many at once.
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

pub(super) fn routes() -> OpenApiRouter<Service> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(get))
        .routes(routes!(happened))
        .routes(routes!(cancel))
}

/// A command.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CommandView {
    #[schema(value_type = String)]
    id: CommandId,
    #[schema(value_type = String)]
    project_id: ProjectId,
    kind: CommandKind,
    state: CommandState,
    /// The name under which its events are read.
    stream_id: String,
    stream_url: String,
    /// Who was asked; nobody if it is no prompt.
    agent_provider: Option<String>,
    /// The prompt, or the command line. Lists show the start of it.
    text: String,
    /// The key by which it was given.
    key_id: String,
    #[schema(value_type = String, format = DateTime)]
    created_at: Millis,
    #[schema(value_type = Option<String>, format = DateTime)]
    started_at: Option<Millis>,
    #[schema(value_type = Option<String>, format = DateTime)]
    ended_at: Option<Millis>,
    /// What came of it, once it is over. Lists leave it out.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<CommandResult>,
}

impl From<StoredCommand> for CommandView {
    fn from(stored: StoredCommand) -> Self {
        let StoredCommand { command, state, result, started_at, ended_at } = stored;
        let result = result.map(|result| {
            // Whatever an older gateway wrote, all fields are there.
            let mut result: CommandResult = serde_json::from_str(&result).unwrap_or_default();
            result.provider = result.provider.as_deref().map(provider).map(str::to_owned);
            result
        });
        Self {
            stream_url: stream_url(command.project, &command.stream),
            id: command.id,
            project_id: command.project,
            kind: command.kind,
            state,
            stream_id: command.stream,
            agent_provider: command.agent.as_deref().map(provider).map(str::to_owned),
            text: command.text,
            key_id: command.actor,
            created_at: command.created_at,
            started_at,
            ended_at,
            result,
        }
    }
}

/// Returns where the events of a stream are read. Its characters need no escaping.
pub(super) fn stream_url(project: ProjectId, stream: &str) -> String {
    format!("/projects/{project}/events?stream_id={stream}")
}

/// Returns a command of a project that is there.
async fn command(
    service: &Service,
    in_project: ProjectId,
    id: CommandId,
) -> Result<StoredCommand, ApiError> {
    projects::find(service, in_project).await?;
    let found = service.store().read(id, |conn, id| Box::pin(commands::find(conn, *id))).await?;
    let found = found.filter(|found| found.command.project == in_project);
    found.ok_or_else(|| ApiError::not_found(format!("there is no command {id}")))
}

/// Returns how many to list.
pub(super) fn limit(asked: Option<u32>) -> Result<u32, ApiError> {
    within(asked, USUAL, MOST)
}

fn within(asked: Option<u32>, usual: u32, most: u32) -> Result<u32, ApiError> {
    let limit = asked.unwrap_or(usual);
    if (1..=most).contains(&limit) {
        return Ok(limit);
    }
    Err(ApiError::bad_request(format!("limit must be from 1 to {most}")))
}

/// Cuts a list that is one longer than a page, and says where the next one begins.
pub(super) fn page<T>(
    mut items: Vec<T>,
    limit: u32,
    id: impl Fn(&T) -> String,
) -> (Vec<T>, Option<String>) {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let is_more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| is_more).map(id);
    (items, next)
}

/// Reads a parameter.
pub(super) fn param<T>(name: &str, text: Option<&String>) -> Result<Option<T>, ApiError>
where
    T: std::str::FromStr<Err: std::fmt::Display>,
{
    let wrong = |error| ApiError::bad_request(format!("{name}: {error}"));
    text.map(|text| text.parse().map_err(wrong)).transpose()
}

/// Which commands to list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Listed {
    /// How many at most
    #[param(minimum = 1, maximum = 100, default = 50)]
    limit: Option<u32>,
    /// The command after which to go on
    #[param(pattern = "^cmd_[0-9a-f]{32}$")]
    cursor: Option<String>,
    /// Only those that stand there
    #[param(value_type = Option<CommandState>)]
    state: Option<String>,
    /// Only those of this kind
    #[param(value_type = Option<CommandKind>)]
    kind: Option<String>,
}

/// List commands, newest first
#[utoipa::path(get, path = "/projects/{project}/commands", tag = "commands",
    security(("key" = ["projects:read"])),
    params(
        ("project" = String, Path, description = "The project", pattern = "^prj_[0-9a-f]{32}$"),
        Listed,
    ),
    responses((status = 200, body = Data<Vec<CommandView>>), Errors),
)]
async fn list(
    caller: Caller,
    State(service): State<Service>,
    Named(id): Named<ProjectId>,
    Params(asked): Params<Listed>,
) -> Result<Data<Vec<CommandView>>, ApiError> {
    caller.may_in(Scope::ProjectsRead, id)?;
    let n_listed = limit(asked.limit)?;
    let after = param("cursor", asked.cursor.as_ref())?;
    let state = param("state", asked.state.as_ref())?;
    let filter = Filter { state, kind: param("kind", asked.kind.as_ref())? };
    projects::find(&service, id).await?;
    let args = (id, filter, after, n_listed + 1);
    let found = service.store().read(args, |conn, (id, filter, after, limit)| {
        Box::pin(commands::list(conn, *id, *filter, *after, *limit))
    });
    let found: Vec<StoredCommand> = found.await.map_err(|error: StoreError| error)?;
    let (found, cursor) = page(found, n_listed, |last| last.command.id.to_string());
    Ok(Data::page(found.into_iter().map(CommandView::from).collect(), cursor))
}

/// Read a command, and what came of it
#[utoipa::path(get, path = "/projects/{project}/commands/{command}", tag = "commands",
    security(("key" = ["projects:read"])),
    params(
        ("project" = String, Path, description = "The project", pattern = "^prj_[0-9a-f]{32}$"),
        ("command" = String, Path, description = "The command", pattern = "^cmd_[0-9a-f]{32}$"),
    ),
    responses((status = 200, body = Data<CommandView>), Errors),
)]
async fn get(
    caller: Caller,
    State(service): State<Service>,
    Within(id, one): Within<ProjectId, CommandId>,
) -> Result<Data<CommandView>, ApiError> {
    caller.may_in(Scope::ProjectsRead, id)?;
    Ok(Data::new(command(&service, id, one).await?.into()))
}

/// Which events to read.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Page {
    /// The number of the event after which to go on
    #[param(minimum = 0, default = 0)]
    after: Option<i64>,
    /// How many at most
    #[param(minimum = 1, maximum = 500, default = 100)]
    limit: Option<u32>,
}

impl Page {
    /// Returns the number after which to read, and how many.
    pub(super) fn read(&self) -> Result<(i64, u32), ApiError> {
        let after = self.after.unwrap_or(0);
        if after < 0 {
            return Err(ApiError::bad_request("after must not be below 0"));
        }
        Ok((after, within(self.limit, USUAL_EVENTS, MOST_EVENTS)?))
    }
}

/// Read what happened in a command, first things first
///
/// `next_cursor` is the number to give as `after`.
#[utoipa::path(get, path = "/projects/{project}/commands/{command}/events", tag = "commands",
    security(("key" = ["projects:read"])),
    params(
        ("project" = String, Path, description = "The project", pattern = "^prj_[0-9a-f]{32}$"),
        ("command" = String, Path, description = "The command", pattern = "^cmd_[0-9a-f]{32}$"),
        Page,
    ),
    responses((status = 200, body = Data<Vec<Object>>), Errors),
)]
async fn happened(
    caller: Caller,
    State(service): State<Service>,
    Within(id, one): Within<ProjectId, CommandId>,
    Params(asked): Params<Page>,
) -> Result<Data<Vec<Value>>, ApiError> {
    caller.may_in(Scope::ProjectsRead, id)?;
    let (after, n_events) = asked.read()?;
    command(&service, id, one).await?;
    let found = service.store().read((one, after, n_events + 1), |conn, (one, after, limit)| {
        Box::pin(events::read_command(conn, *one, *after, *limit))
    });
    let found: Vec<StoredEvent> = found.await.map_err(|error: StoreError| error)?;
    let (found, cursor) = page(found, n_events, |last| last.number.to_string());
    Ok(Data::page(found.iter().map(object).collect(), cursor))
}

/// What became of the wish to end a command.
#[derive(Debug, Serialize, ToSchema)]
struct Cancelled {
    #[schema(value_type = String)]
    command_id: CommandId,
    /// `cancelled` if it had not begun, `cancel_requested` if it ends now.
    state: &'static str,
}

/// Cancel a command
///
/// One that has not begun is over at once. One that runs is stopped, which takes
/// a moment: its last event says when it is over.
#[utoipa::path(post, path = "/projects/{project}/commands/{command}/cancel", tag = "commands",
    security(("key" = ["projects:execute"])),
    params(
        ("project" = String, Path, description = "The project", pattern = "^prj_[0-9a-f]{32}$"),
        ("command" = String, Path, description = "The command", pattern = "^cmd_[0-9a-f]{32}$"),
    ),
    responses(
        (status = 200, description = "It will not begin", body = Data<Cancelled>),
        (status = 202, description = "It is being stopped", body = Data<Cancelled>),
        (status = 409, description = "It is over", body = ErrorBody),
        Errors,
    ),
)]
async fn cancel(
    caller: Caller,
    State(service): State<Service>,
    Within(id, one): Within<ProjectId, CommandId>,
) -> Result<Response, ApiError> {
    caller.may_in(Scope::ProjectsExecute, id)?;
    command(&service, id, one).await?;
    let entry = caller.entry("command.cancel", one, json!({ "project": id }), Millis::now());
    let outcome = service.gateway().cancel_command(one, entry).await?;
    let status = match outcome {
        CancelOutcome::Cancelled => StatusCode::OK,
        CancelOutcome::Requested => StatusCode::ACCEPTED,
        CancelOutcome::Ended(_) | CancelOutcome::Unknown => {
            return Err(ApiError::conflict("the command is over"));
        }
    };
    let cancelled = Cancelled { command_id: one, state: outcome.word() };
    Ok(Data::with_status(status, cancelled).into_response())
}

/// Waits until a command is over, and returns it; nothing if that takes too long,
/// it is gone, or the gateway stops.
pub(super) async fn until_over(
    service: &Service,
    id: CommandId,
    patience: Duration,
) -> Option<CommandView> {
    // Its end rings for jobs, which do so much less often than events.
    let mut wakeups = service.store().wakeups(Topic::Jobs);
    let mut phase = service.shared.phase.clone();
    let deadline = Instant::now() + patience;
    loop {
        let is_open = service.store().read(id, |conn, id| Box::pin(commands::is_open(conn, *id)));
        // It was accepted, whatever is the matter with the store now.
        let is_open: Result<bool, StoreError> = is_open.await;
        if let Ok(false) = is_open {
            let found = service.store().read(id, |conn, id| Box::pin(commands::find(conn, *id)));
            let found: Result<_, StoreError> = found.await;
            return found.ok().flatten().map(CommandView::from);
        }
        let next_look = Instant::now() + BETWEEN_LOOKS;
        let woken = async {
            wakeups.next().await;
            time::sleep_until(next_look).await;
        };
        tokio::select! {
            () = woken => {}
            () = time::sleep_until(deadline) => return None,
            _ = phase.wait_for(|phase| *phase == Phase::Stopping) => return None,
        }
    }
}

#[cfg(test)]
mod tests;
