//! Programs that run in the folder of a project: those that the operator lists,
//! without a shell, and git. What may be run is decided in `crate::program`.

use std::time::Duration;

use axum::extract::State;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    ApiError, Data, Service,
    caller::Caller,
    error::{BodyErrors, Errors},
    take::{Body, Named},
};
use crate::{
    clock::Millis,
    config::duration,
    gateway::commands::accept::Order,
    id::{CommandId, ProjectId},
    key::Scope,
    program::{self, Refused, git, shell},
    store::{
        commands::CommandKind,
        projects::{self, Project},
    },
    wishes::{Wishes, millis},
};

/// How long a program may take at least and at most.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);
/// The longest name of a stream.
const LONGEST_STREAM: usize = 64;
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
    #[schema(value_type = Option<String>, pattern = "^[1-9][0-9]{0,3}s$", examples("90s"))]
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
    #[schema(value_type = Option<String>, pattern = "^[1-9][0-9]{0,3}s$", examples("90s"))]
    timeout: Option<Duration>,
    /// A name under which the events can be read; several commands may share one
    #[schema(pattern = r"^[A-Za-z0-9._-]{1,64}$")]
    stream_id: Option<String>,
}

/// A command that was accepted.
#[derive(Debug, Serialize, ToSchema)]
struct CommandAccepted {
    #[schema(value_type = String)]
    command_id: CommandId,
    /// The name under which its events are read.
    stream_id: String,
    stream_url: String,
    /// The session that it goes on with; null if it begins a new one.
    session_id: Option<String>,
    /// Who is asked; null if it is no prompt.
    agent_provider: Option<String>,
    /// `queued`.
    state: String,
}

/// Run a program in the folder of a project
///
/// One of those that the operator lists in `api.shell`. It is stored when this
/// answers, and will be run once. Its lines are events of the kind `output`.
#[utoipa::path(post, path = "/projects/{project}/shell", tag = "commands",
    security(("key" = ["projects:execute"])),
    params(
        ("project" = String, Path, description = "The project", pattern = "^prj_[0-9a-f]{32}$"),
    ),
    request_body = ShellRequest,
    responses(
        (status = 202, description = "It was accepted", body = Data<CommandAccepted>),
        Errors, BodyErrors,
    ),
)]
async fn run_shell(
    caller: Caller,
    State(service): State<Service>,
    Named(id): Named<ProjectId>,
    Body(asked): Body<ShellRequest>,
) -> Result<Data<CommandAccepted>, ApiError> {
    caller.may_in(Scope::ProjectsExecute, id)?;
    let ShellRequest { command, timeout, stream_id } = asked;
    if command.len() > LONGEST_COMMAND {
        let message = format!("command: at most {LONGEST_COMMAND} bytes");
        return Err(ApiError::bad_request(message));
    }
    let project = project(&service, id).await?;
    let words = shell::allow(&command, &service.policy().api.shell)?;
    let wanted = Wanted { kind: CommandKind::Shell, text: command, words, timeout, stream_id };
    give(&caller, &service, &project, wanted).await
}

/// Run git in the folder of a project
///
/// One of its commands that the operator lists in `api.git`; by default those that
/// only look. Options that run programs, or read and write elsewhere, are refused.
#[utoipa::path(post, path = "/projects/{project}/git", tag = "commands",
    security(("key" = ["projects:execute"])),
    params(
        ("project" = String, Path, description = "The project", pattern = "^prj_[0-9a-f]{32}$"),
    ),
    request_body = GitRequest,
    responses(
        (status = 202, description = "It was accepted", body = Data<CommandAccepted>),
        Errors, BodyErrors,
    ),
)]
async fn run_git(
    caller: Caller,
    State(service): State<Service>,
    Named(id): Named<ProjectId>,
    Body(asked): Body<GitRequest>,
) -> Result<Data<CommandAccepted>, ApiError> {
    caller.may_in(Scope::ProjectsExecute, id)?;
    let GitRequest { args, timeout, stream_id } = asked;
    if args.len() > MOST_ARGS || args.iter().map(String::len).sum::<usize>() > LONGEST_COMMAND {
        let message = format!("args: at most {MOST_ARGS}, of {LONGEST_COMMAND} bytes together");
        return Err(ApiError::bad_request(message));
    }
    let project = project(&service, id).await?;
    let words = git::allow(&args, &service.policy().api.git, &project.directory)?;
    let text = format!("git {}", program::line(&args));
    let wanted = Wanted { kind: CommandKind::Git, text, words, timeout, stream_id };
    give(&caller, &service, &project, wanted).await
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

async fn give(
    caller: &Caller,
    service: &Service,
    project: &Project,
    wanted: Wanted,
) -> Result<Data<CommandAccepted>, ApiError> {
    let Wanted { kind, text, words, timeout, stream_id } = wanted;
    check_stream(stream_id.as_deref())?;
    let (id, now) = (CommandId::new(), Millis::now());
    let cwd = project.directory.clone().into();
    let wishes = Wishes { cwd: Some(cwd), timeout_ms: timeout.map(millis), ..Wishes::default() };
    let detail = json!({ "project": project.id, "command": text, "stream": stream_id });
    let order = Order {
        id,
        project: project.id,
        kind,
        stream: stream_id,
        text,
        wishes,
        words: Some(words),
        actor: caller.key.to_string(),
        entry: caller.entry(&format!("command.{kind}"), id, detail, now),
    };
    let accepted = accepted(&order);
    // A request with an `Idempotency-Key` that was answered before is answered here.
    service.gateway().command(order).await?;
    // A request with `wait` waits here for the end of the command.
    Ok(Data::accepted(accepted))
}

fn accepted(order: &Order) -> CommandAccepted {
    let stream_id = order.stream.clone().unwrap_or_else(|| order.id.to_string());
    CommandAccepted {
        command_id: order.id,
        stream_url: format!("/projects/{}/events?stream_id={stream_id}", order.project),
        stream_id,
        session_id: None,
        agent_provider: None,
        state: "queued".to_owned(),
    }
}

async fn project(service: &Service, id: ProjectId) -> Result<Project, ApiError> {
    let found = service.store().read(id, |conn, id| Box::pin(projects::find(conn, *id))).await?;
    found.ok_or_else(|| ApiError::not_found(format!("there is no project {id}")))
}

fn timeout<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    let value = Value::deserialize(from)?;
    if value.is_null() {
        return Ok(None);
    }
    let read = duration::from_value(&value);
    let read = read.filter(|timeout| (SHORTEST..=LONGEST).contains(timeout));
    let wrong = || D::Error::custom("give a time from 1s to 24h, such as 90s, or seconds");
    read.map(Some).ok_or_else(wrong)
}

/// Checks the name of a stream, which stands in addresses.
fn check_stream(stream: Option<&str>) -> Result<(), ApiError> {
    let Some(stream) = stream else { return Ok(()) };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if (1..=LONGEST_STREAM).contains(&stream.len()) && stream.bytes().all(is_plain) {
        return Ok(());
    }
    let message = format!("stream_id: 1 to {LONGEST_STREAM} of letters, digits, `.`, `_` and `-`");
    Err(ApiError::bad_request(message))
}

#[cfg(test)]
mod tests;
