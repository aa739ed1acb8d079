//! Prompts: what a caller asks the agent of a project, and how. Accepted means
//! stored; who wants to know what comes of it reads the stream, or waits.

use std::{path::PathBuf, sync::Arc, time::Duration};

use axum::{
    extract::{FromRequest as _, Request, State},
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use ostler_core::{
    agent::AgentRef,
    request::{self, Permissions, RequestError, Thinking, TurnRequest},
};
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::{Value, json};
use tokio::task;
use utoipa::{
    IntoParams, ToSchema,
    openapi::schema::{ObjectBuilder, OneOfBuilder, Schema, Type},
};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    ApiError, Caller, Code, Data, Service,
    commands::{CommandView, project, stream_url, until_over},
    error::{BodyErrors, Errors},
    health::provider,
    once::{Answered, Once},
    take::{self, Bytes, Named, Params},
};
use crate::{
    clock::Millis,
    config::{duration, word},
    gateway::{
        commands::accept::Order,
        inbound::{API, Details, Origin, PAYLOAD, Payload},
        policy::Policy,
    },
    id::{CommandId, ProjectId},
    key::Scope,
    store::{
        commands::{CommandKind, CommandState},
        projects::Project,
    },
    wishes::{Wishes, millis},
};

/// How long a turn may take at least and at most.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);
/// How long a request may wait for the end of its command.
const PATIENCE: Duration = Duration::from_secs(10 * 60);
/// The longest name of a model or a tool, and of a stream, in characters.
const LONGEST_NAME: usize = 256;
const LONGEST_STREAM: usize = 64;
/// How many tools may be named.
const MOST_TOOLS: usize = 200;
const MOST_TURNS: u32 = 10_000;

pub(super) fn routes() -> OpenApiRouter<Service> {
    OpenApiRouter::new().routes(routes!(prompt)).routes(routes!(claude))
}

/// A prompt, and how it is run. What is not said is as the project's settings have
/// it, else as configured.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PromptRequest {
    /// What the agent is asked
    #[schema(min_length = 1, pattern = r"^[^\u0000]*[^\s\u0000][^\u0000]*$")]
    prompt: String,
    #[schema(min_length = 1, max_length = 256, pattern = r"^[A-Za-z0-9][ -~]*$")]
    model: Option<String>,
    /// The session to go on with; a new one if there is none
    #[schema(min_length = 1, max_length = 512, pattern = r"^[A-Za-z0-9][!-~]*$")]
    session_id: Option<String>,
    /// The only tools to allow
    #[schema(max_items = 200)]
    allowed_tools: Option<Vec<String>>,
    /// How long the turn may take: a text such as `90s`, or seconds; 1 s to 24 h
    #[serde(default, deserialize_with = "timeout")]
    #[schema(schema_with = timeout_schema)]
    timeout: Option<Duration>,
    /// A name under which the events can be read; several commands may share one
    #[schema(pattern = r"^[A-Za-z0-9._-]{1,64}$")]
    stream_id: Option<String>,
    /// What the agent may do without asking: no more than the project's settings
    /// or the configuration give
    #[serde(default, with = "word::permissions")]
    #[schema(value_type = Option<PermissionsWord>)]
    permissions: Option<Permissions>,
    /// How hard the model should think
    #[serde(default, with = "word::thinking")]
    #[schema(value_type = Option<ThinkingWord>)]
    thinking: Option<Thinking>,
    /// Text for the system prompt, after the agent's own
    #[schema(pattern = r"^[^\u0000]*$")]
    system_prompt: Option<String>,
    /// How many model calls the turn may make
    #[schema(minimum = 1, maximum = 10000)]
    max_turns: Option<u32>,
}

/// What an agent may do without asking.
#[derive(ToSchema)]
#[serde(rename_all = "kebab-case")]
#[expect(dead_code, reason = "only the document is made of it")]
pub(super) enum PermissionsWord {
    ReadOnly,
    Ask,
    Bypass,
}

/// How hard a model should think.
#[derive(ToSchema)]
#[serde(rename_all = "lowercase")]
#[expect(dead_code, reason = "only the document is made of it")]
pub(super) enum ThinkingWord {
    Off,
    Minimal,
    Low,
    Medium,
    High,
}

/// Reads how long something may take.
pub(super) fn timeout<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    let value = Value::deserialize(from)?;
    if value.is_null() {
        return Ok(None);
    }
    let read = duration::from_value(&value);
    let read = read.filter(|timeout| (SHORTEST..=LONGEST).contains(timeout));
    let wrong = || D::Error::custom("give a time from 1s to 24h, such as 90s, or seconds");
    read.map(Some).ok_or_else(wrong)
}

/// Says how it is written.
pub(super) fn timeout_schema() -> Schema {
    let text = ObjectBuilder::new()
        .schema_type(Type::String)
        .pattern(Some(r"^([1-9][0-9]{0,3}s|[1-9][0-9]{0,2}m|[1-9]h|1[0-9]h|2[0-4]h)$"))
        .examples(["90s"])
        .build();
    let seconds = ObjectBuilder::new()
        .schema_type(Type::Integer)
        .minimum(Some(1))
        .maximum(Some(86400))
        .build();
    let none = ObjectBuilder::new().schema_type(Type::Null).build();
    let all = OneOfBuilder::new().item(text).item(seconds).item(none);
    Schema::OneOf(all.description(Some("How long it may take, from 1 s to 24 h")).build())
}

/// A command that was accepted.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(super) struct CommandAccepted {
    #[schema(value_type = String)]
    pub(super) command_id: CommandId,
    /// The name under which its events are read.
    pub(super) stream_id: String,
    pub(super) stream_url: String,
    /// The session that it goes on with; null if it begins a new one.
    pub(super) session_id: Option<String>,
    /// Who is asked; null if it is no prompt.
    pub(super) agent_provider: Option<String>,
    /// `queued`.
    pub(super) state: String,
}

/// How to answer.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Waiting {
    /// How long to wait for the end of the command, such as `30s`; at most `10m`
    #[param(pattern = "^([1-9][0-9]?s|[1-9]m|10m)$")]
    wait: Option<String>,
}

impl Waiting {
    pub(super) fn patience(&self) -> Result<Option<Duration>, ApiError> {
        let Some(text) = &self.wait else { return Ok(None) };
        let read = duration::parse(text).filter(|patience| *patience <= PATIENCE);
        let wrong = || ApiError::bad_request("wait: give a time of at most 10m, such as 30s");
        read.map(Some).ok_or_else(wrong)
    }
}

/// Ask the agent of a project
///
/// The prompt is stored when this answers, and will be done. With `wait` the
/// answer is the ended command if it ends in time; who goes away cancels nothing.
#[utoipa::path(post, path = "/projects/{project}/prompt", tag = "commands",
    security(("key" = ["projects:execute"])),
    params(
        ("project" = String, Path, description = "The project", pattern = "^prj_[0-9a-f]{32}$"),
        Waiting,
        ("Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 255,
            description = "The same name twice is the same request: it is done once"),
    ),
    request_body = PromptRequest,
    responses(
        (status = 200, description = "It is over", body = Data<CommandView>),
        (status = 202, description = "It was accepted", body = Data<CommandAccepted>),
        Errors, BodyErrors,
    ),
)]
async fn prompt(
    caller: Caller,
    State(service): State<Service>,
    Named(id): Named<ProjectId>,
    Params(waiting): Params<Waiting>,
    once: Once,
    request: Request,
) -> Result<Response, ApiError> {
    give(&caller, &service, id, &waiting, once, request).await
}

/// Ask the agent of a project, by an older name
///
/// The same as `/prompt`, whichever agent it is.
#[utoipa::path(post, path = "/projects/{project}/claude", tag = "commands",
    security(("key" = ["projects:execute"])),
    params(
        ("project" = String, Path, description = "The project", pattern = "^prj_[0-9a-f]{32}$"),
        Waiting,
        ("Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 255,
            description = "The same name twice is the same request: it is done once"),
    ),
    request_body = PromptRequest,
    responses(
        (status = 200, description = "It is over", body = Data<CommandView>),
        (status = 202, description = "It was accepted", body = Data<CommandAccepted>),
        Errors, BodyErrors,
    ),
)]
async fn claude(
    caller: Caller,
    State(service): State<Service>,
    Named(id): Named<ProjectId>,
    Params(waiting): Params<Waiting>,
    once: Once,
    request: Request,
) -> Result<Response, ApiError> {
    give(&caller, &service, id, &waiting, once, request).await
}

async fn give(
    caller: &Caller,
    service: &Service,
    id: ProjectId,
    waiting: &Waiting,
    once: Once,
    request: Request,
) -> Result<Response, ApiError> {
    caller.may_in(Scope::ProjectsExecute, id)?;
    let patience = waiting.patience()?;
    let Bytes(bytes) = Bytes::from_request(request, service).await?;
    let request = once.request(caller, &bytes);
    if let Some(before) = request.answered(service).await? {
        return respond(service, before, patience).await;
    }
    let asked: PromptRequest = take::parse(&bytes)?;
    let now = Millis::now();
    let command = CommandId::new();
    let order = order(caller, service, id, command, asked, now).await?;
    let accepted = accepted(&order);
    let answer = request.answer(StatusCode::ACCEPTED, &accepted, now)?;
    let before = match answer.kept() {
        Some(kept) => service.gateway().command_once(order, kept).await?,
        None => service.gateway().command(order).await.map(|_| None)?,
    };
    respond(service, answer.settle(before)?, patience).await
}

/// Answers, after a while if the caller wants to know what came of it.
async fn respond(
    service: &Service,
    answered: Answered,
    patience: Option<Duration>,
) -> Result<Response, ApiError> {
    if let Some(patience) = patience {
        let CommandAccepted { command_id, .. } = answered.read()?;
        if let Some(over) = until_over(service, command_id, patience).await {
            return Ok(answered.mark(Data::new(over).into_response()));
        }
    }
    Ok(answered.into_response())
}

/// Says what was accepted.
pub(super) fn accepted(order: &Order) -> CommandAccepted {
    let stream_id = order.stream.clone().unwrap_or_else(|| order.id.to_string());
    CommandAccepted {
        command_id: order.id,
        stream_url: stream_url(order.project, &stream_id),
        stream_id,
        session_id: order.wishes.session.clone(),
        agent_provider: order.wishes.agent.as_deref().map(provider).map(str::to_owned),
        state: CommandState::Queued.to_string(),
    }
}

/// Makes the command that a prompt is, if it can be done.
async fn order(
    caller: &Caller,
    service: &Service,
    id: ProjectId,
    command: CommandId,
    asked: PromptRequest,
    now: Millis,
) -> Result<Order, ApiError> {
    check(&asked)?;
    let project = project(service, id).await?;
    let policy = service.policy();
    let agent = provider_of(&policy, &project)?;
    let cwd = directory_of(&project)?;
    let base = Wishes {
        agent: Some(agent.name.to_string()),
        cwd: Some(cwd),
        session: None,
        ..project.settings.wishes
    };
    let given = prepared(&policy, &agent, &base);
    no_more_than(&asked, &given)?;
    let PromptRequest { prompt, stream_id, .. } = &asked;
    let (prompt, stream) = (prompt.clone(), stream_id.clone());
    let wishes = overlay(base, asked);
    can_be_run(&policy, &agent, &wishes, &prompt).await?;
    let detail = json!({
        "project": id, "agent": agent.name.as_ref() as &str, "stream": stream,
        "session": wishes.session,
    });
    Ok(Order {
        id: command,
        project: id,
        kind: CommandKind::Prompt,
        stream,
        text: prompt,
        wishes,
        words: None,
        actor: caller.key.to_string(),
        entry: caller.entry("command.prompt", command, detail, now),
    })
}

/// Returns who answers in a project.
fn provider_of(policy: &Policy, project: &Project) -> Result<AgentRef, ApiError> {
    let name = project.agent.as_deref().unwrap_or(&policy.project_agent);
    let gone = |error| ApiError::conflict(format!("the project's agent: {error}"));
    policy.agents.resolve(Some(name)).map_err(gone)
}

/// Returns where the agents of a project work.
fn directory_of(project: &Project) -> Result<PathBuf, ApiError> {
    Ok(PathBuf::from(&project.directory))
}

/// Checks what can be seen in the request alone.
fn check(asked: &PromptRequest) -> Result<(), ApiError> {
    if asked.prompt.trim().is_empty() {
        return Err(ApiError::bad_request("prompt required"));
    }
    let wrong = |what: &str, why: &str| Err(ApiError::bad_request(format!("{what}: {why}")));
    if asked.prompt.contains('\0') {
        return wrong("prompt", "it must not hold NUL");
    }
    if asked.system_prompt.as_ref().is_some_and(|text| text.contains('\0')) {
        return wrong("system_prompt", "it must not hold NUL");
    }
    let tools = asked.allowed_tools.as_deref().unwrap_or_default();
    if tools.len() > MOST_TOOLS {
        return wrong("allowed_tools", &format!("at most {MOST_TOOLS} of them"));
    }
    let is_long = |name: &String| name.chars().count() > LONGEST_NAME;
    if asked.model.as_ref().is_some_and(is_long) || tools.iter().any(is_long) {
        return wrong("model, allowed_tools", &format!("at most {LONGEST_NAME} characters"));
    }
    if asked.max_turns.is_some_and(|turns| !(1..=MOST_TURNS).contains(&turns)) {
        return wrong("max_turns", &format!("from 1 to {MOST_TURNS}"));
    }
    if let Some(session) = &asked.session_id {
        let wrong = |error: RequestError| ApiError::bad_request(error.to_string());
        request::check_session(session).map_err(wrong)?;
    }
    check_stream(asked.stream_id.as_deref())
}

/// Checks the name of a stream, which stands in addresses.
pub(super) fn check_stream(stream: Option<&str>) -> Result<(), ApiError> {
    let Some(stream) = stream else { return Ok(()) };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if (1..=LONGEST_STREAM).contains(&stream.len()) && stream.bytes().all(is_plain) {
        return Ok(());
    }
    let message = format!("stream_id: 1 to {LONGEST_STREAM} of letters, digits, `.`, `_` and `-`");
    Err(ApiError::bad_request(message))
}

/// Returns the request that comes of wishes and the configuration.
fn prepared(policy: &Policy, agent: &AgentRef, wishes: &Wishes) -> TurnRequest {
    let payload = Payload {
        v: PAYLOAD,
        text: String::new(),
        sender: String::new(),
        channel: API.to_owned(),
        address: String::new(),
        fresh: None,
        wishes: wishes.clone(),
        message: None,
        origin: Origin::Command,
        details: Details::default(),
        belongs: None,
        words: None,
    };
    policy.agents.prepare(agent, &payload).1
}

/// Checks that a prompt does not ask for more than it is given: who may prompt may
/// not decide by that what agents may do.
fn no_more_than(asked: &PromptRequest, given: &TurnRequest) -> Result<(), ApiError> {
    let most = given.options.permissions;
    if asked.permissions.is_some_and(|asked| reach(asked) > reach(most)) {
        let message = "permissions: the project's settings or the configuration give less";
        return Err(ApiError::forbidden(message));
    }
    if let (Some(asked), Some(given)) = (&asked.allowed_tools, &given.options.allowed_tools)
        && let Some(more) = asked.iter().find(|tool| !given.contains(tool))
    {
        let message = format!("allowed_tools: {more:?} is none of those that the project has");
        return Err(ApiError::forbidden(message));
    }
    Ok(())
}

/// Orders how far agents may go.
fn reach(permissions: Permissions) -> u8 {
    match permissions {
        Permissions::ReadOnly => 0,
        Permissions::Ask => 1,
        Permissions::Bypass => 2,
    }
}

/// Lays what a prompt says over what the project says.
fn overlay(base: Wishes, asked: PromptRequest) -> Wishes {
    Wishes {
        model: asked.model.or(base.model),
        session: asked.session_id,
        system: asked.system_prompt.or(base.system),
        allowed_tools: asked.allowed_tools.or(base.allowed_tools),
        max_turns: asked.max_turns.or(base.max_turns),
        timeout_ms: asked.timeout.map(millis).or(base.timeout_ms),
        permissions: asked.permissions.or(base.permissions),
        thinking: asked.thinking.or(base.thinking),
        ..base
    }
}

/// Checks that no agent would refuse it before anything starts.
async fn can_be_run(
    policy: &Arc<Policy>,
    agent: &AgentRef,
    wishes: &Wishes,
    prompt: &str,
) -> Result<(), ApiError> {
    let mut request = prepared(policy, agent, wishes);
    prompt.clone_into(&mut request.prompt);
    // It looks at the working directory.
    let checked = task::spawn_blocking(move || request::validate(&request)).await;
    let failed = |_| ApiError::new(Code::InternalError, "the prompt could not be checked");
    checked.map_err(failed)?.map_err(|error| match error {
        RequestError::BadDirectory { .. } => {
            ApiError::conflict("the project's directory is gone, or cannot be read")
        }
        RequestError::EmptyPrompt
        | RequestError::PromptTooLong { .. }
        | RequestError::InvalidTimeout
        | RequestError::BadSession { .. }
        | RequestError::BadValue { .. }
        | RequestError::ForeignSession { .. } => ApiError::bad_request(error.to_string()),
    })
}

#[cfg(test)]
pub(super) mod tests;
