//! Prompts: what a caller asks the agent of a project, and how. Accepted means
//! stored; who wants to know what comes of it reads the stream, or waits.

use std::{sync::Arc, time::Duration};

use axum::{
    extract::{FromRequest as _, Request, State},
    response::Response,
};
use ostler_core::{
    agent::AgentRef,
    request::{self, Permissions, RequestError, Thinking, TurnRequest},
};
use serde::Deserialize;
use serde_json::json;
use tokio::task;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    ApiError, Caller, Code, Data, Service,
    accepted::{CommandAccepted, Waiting, accept, check_stream, respond, timeout, timeout_schema},
    commands::CommandView,
    error::{BodyErrors, Errors},
    once::Once,
    projects,
    take::{self, Bytes, Named, Params},
};
use crate::{
    clock::Millis,
    config::word,
    gateway::{
        commands::accept::Order,
        inbound::{API, Details, Origin, PAYLOAD, Payload},
        policy::Policy,
    },
    id::{CommandId, ProjectId},
    key::Scope,
    store::commands::CommandKind,
    wishes::{Wishes, millis},
};

/// The longest name of a model or a tool, in characters.
const LONGEST_NAME: usize = 256;
/// The longest name of a session, in bytes: it becomes part of a longer one.
const LONGEST_SESSION: usize = 400;
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
    #[schema(min_length = 1, max_length = 400, pattern = r"^[A-Za-z0-9][!-~]*$")]
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
    // What was answered in a project is gone with it.
    projects::find(service, id).await?;
    let request = once.request(caller, &bytes);
    if let Some(before) = request.answered(service).await? {
        return respond(service, before, patience).await;
    }
    let asked: PromptRequest = take::parse(&bytes)?;
    let now = Millis::now();
    let command = CommandId::new();
    let order = order(caller, service, id, command, asked, now).await?;
    accept(service, order, request, patience, now).await
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
    let project = projects::find(service, id).await?;
    let policy = service.policy();
    let agent = projects::provider_of(service, &project).await?;
    let cwd = projects::working_directory(service, &project).await?;
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
        if session.len() > LONGEST_SESSION {
            let message = format!("session_id: at most {LONGEST_SESSION} bytes");
            return Err(ApiError::bad_request(message));
        }
    }
    check_stream(asked.stream_id.as_deref())
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
        at: None,
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
