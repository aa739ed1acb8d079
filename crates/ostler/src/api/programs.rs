//! Programs that run in the folder of a project: those that the operator lists,
//! without a shell, and git. What may be run is decided in `crate::program`.

use std::{path::PathBuf, time::Duration};

use axum::{
    extract::{FromRequest as _, Request, State},
    response::Response,
};
use serde::Deserialize;
use serde_json::json;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    ApiError, Data, Service,
    accepted::{CommandAccepted, Waiting, accept, check_stream, respond, timeout, timeout_schema},
    caller::Caller,
    commands::CommandView,
    error::{BodyErrors, Errors},
    once::Once,
    projects,
    take::{self, Bytes, Named, Params},
};
use crate::{
    clock::Millis,
    gateway::commands::accept::Order,
    id::{CommandId, ProjectId},
    key::Scope,
    program::{self, Refused, git, shell},
    store::{commands::CommandKind, projects::Project},
    wishes::{Wishes, millis},
};

/// The longest command line, which a system can still take, and the most arguments.
const LONGEST_COMMAND: usize = 64 * 1024;
const MOST_ARGS: usize = 1000;

pub(super) fn routes() -> OpenApiRouter<Service> {
    OpenApiRouter::new().routes(routes!(run_shell)).routes(routes!(run_git))
}

impl From<Refused> for ApiError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Wrong(message) => Self::bad_request(message),
            Refused::Forbidden(message) => Self::forbidden(message),
        }
    }
}

/// A program and its arguments.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ShellRequest {
    /// Words, with quotes as in a POSIX shell. No shell reads them: pipes,
    /// redirections, variables and patterns are not there
    #[schema(min_length = 1, max_length = 65536, examples("cargo test --all"))]
    command: String,
    /// How long it may take: a text such as `90s`, or seconds; 1 s to 24 h, else 10 m
    #[serde(default, deserialize_with = "timeout")]
    #[schema(schema_with = timeout_schema)]
    timeout: Option<Duration>,
    /// A name under which the events can be read; several commands may share one
    #[schema(pattern = r"^[A-Za-z0-9._-]{1,64}$")]
    stream_id: Option<String>,
}

/// A command of git and its arguments.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct GitRequest {
    /// The first is the command
    #[schema(min_items = 1, max_items = 1000, examples(json!(["log", "-5"])))]
    args: Vec<String>,
    /// How long it may take: a text such as `90s`, or seconds; 1 s to 24 h, else 10 m
    #[serde(default, deserialize_with = "timeout")]
    #[schema(schema_with = timeout_schema)]
    timeout: Option<Duration>,
    /// A name under which the events can be read; several commands may share one
    #[schema(pattern = r"^[A-Za-z0-9._-]{1,64}$")]
    stream_id: Option<String>,
}

/// Run a program in the folder of a project
///
/// One of those that the operator lists in `api.shell`. It is stored when this
/// answers, and will be run once. Its lines are events of the kind `output`.
#[utoipa::path(post, path = "/projects/{project}/shell", tag = "commands",
    security(("key" = ["projects:execute"])),
    params(
        ("project" = String, Path, description = "The project", pattern = "^prj_[0-9a-f]{32}$"),
        Waiting,
        ("Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 255,
            description = "The same name twice is the same request: it is done once"),
    ),
    request_body = ShellRequest,
    responses(
        (status = 200, description = "It is over", body = Data<CommandView>),
        (status = 202, description = "It was accepted", body = Data<CommandAccepted>),
        Errors, BodyErrors,
    ),
)]
async fn run_shell(
    caller: Caller,
    State(service): State<Service>,
    Named(id): Named<ProjectId>,
    Params(waiting): Params<Waiting>,
    once: Once,
    request: Request,
) -> Result<Response, ApiError> {
    caller.may_in(Scope::ProjectsExecute, id)?;
    let patience = waiting.patience()?;
    let Bytes(bytes) = Bytes::from_request(request, &service).await?;
    // What was answered in a project is gone with it.
    projects::find(&service, id).await?;
    let request = once.request(&caller, &bytes);
    if let Some(before) = request.answered(&service).await? {
        return respond(&service, before, patience).await;
    }
    let ShellRequest { command, timeout, stream_id } = take::parse(&bytes)?;
    if command.len() > LONGEST_COMMAND {
        let message = format!("command: at most {LONGEST_COMMAND} bytes");
        return Err(ApiError::bad_request(message));
    }
    let place = Place::of(&service, id).await?;
    let words = shell::allow(&command, &service.policy().api.shell)?;
    let wanted = Wanted { kind: CommandKind::Shell, text: command, words, timeout, stream_id };
    let now = Millis::now();
    let order = order(&caller, place, wanted, now)?;
    accept(&service, order, request, patience, now).await
}

/// Run git in the folder of a project
///
/// One of its commands that the operator lists in `api.git`; by default those that
/// only look. Options that run programs, or read and write elsewhere, are refused.
#[utoipa::path(post, path = "/projects/{project}/git", tag = "commands",
    security(("key" = ["projects:execute"])),
    params(
        ("project" = String, Path, description = "The project", pattern = "^prj_[0-9a-f]{32}$"),
        Waiting,
        ("Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 255,
            description = "The same name twice is the same request: it is done once"),
    ),
    request_body = GitRequest,
    responses(
        (status = 200, description = "It is over", body = Data<CommandView>),
        (status = 202, description = "It was accepted", body = Data<CommandAccepted>),
        Errors, BodyErrors,
    ),
)]
async fn run_git(
    caller: Caller,
    State(service): State<Service>,
    Named(id): Named<ProjectId>,
    Params(waiting): Params<Waiting>,
    once: Once,
    request: Request,
) -> Result<Response, ApiError> {
    caller.may_in(Scope::ProjectsExecute, id)?;
    let patience = waiting.patience()?;
    let Bytes(bytes) = Bytes::from_request(request, &service).await?;
    // What was answered in a project is gone with it.
    projects::find(&service, id).await?;
    let request = once.request(&caller, &bytes);
    if let Some(before) = request.answered(&service).await? {
        return respond(&service, before, patience).await;
    }
    let GitRequest { args, timeout, stream_id } = take::parse(&bytes)?;
    if args.len() > MOST_ARGS || args.iter().map(String::len).sum::<usize>() > LONGEST_COMMAND {
        let message = format!("args: at most {MOST_ARGS}, of {LONGEST_COMMAND} bytes together");
        return Err(ApiError::bad_request(message));
    }
    let place = Place::of(&service, id).await?;
    let words = git::allow(&args, &service.policy().api.git, &place.project.directory)?;
    let text = format!("git {}", program::line(&args));
    let wanted = Wanted { kind: CommandKind::Git, text, words, timeout, stream_id };
    let now = Millis::now();
    let order = order(&caller, place, wanted, now)?;
    accept(&service, order, request, patience, now).await
}

/// A project, and where its programs run, which was looked at just now.
struct Place {
    project: Project,
    cwd: PathBuf,
}

impl Place {
    async fn of(service: &Service, id: ProjectId) -> Result<Self, ApiError> {
        let project = projects::find(service, id).await?;
        let cwd = projects::working_directory(service, &project).await?;
        Ok(Self { project, cwd })
    }
}

/// A program that may be run.
struct Wanted {
    kind: CommandKind,
    /// What the caller asked for.
    text: String,
    /// What is run.
    words: Vec<String>,
    timeout: Option<Duration>,
    stream_id: Option<String>,
}

/// Makes the command that it is.
fn order(caller: &Caller, place: Place, wanted: Wanted, now: Millis) -> Result<Order, ApiError> {
    let Wanted { kind, text, words, timeout, stream_id } = wanted;
    check_stream(stream_id.as_deref())?;
    let Place { project, cwd } = place;
    let id = CommandId::new();
    let wishes = Wishes { cwd: Some(cwd), timeout_ms: timeout.map(millis), ..Wishes::default() };
    let detail = json!({ "project": project.id, "command": text, "stream": stream_id });
    Ok(Order {
        id,
        project: project.id,
        kind,
        stream: stream_id,
        text,
        wishes,
        words: Some(words),
        actor: caller.key.to_string(),
        entry: caller.entry(&format!("command.{kind}"), id, detail, now),
    })
}

#[cfg(test)]
mod tests;
