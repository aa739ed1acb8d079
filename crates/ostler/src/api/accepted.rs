//! Commands that were accepted: what callers hear of them, at once or at their end,
//! and what prompts and programs have in common until then.

use std::time::Duration;

use axum::{
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::Value;
use utoipa::{
    IntoParams, ToSchema,
    openapi::schema::{ObjectBuilder, OneOfBuilder, Schema, Type},
};

use super::{
    ApiError, Data, Service,
    commands::{stream_url, until_over},
    health::provider,
    once::{self, Answered},
};
use crate::{
    clock::Millis, config::duration, gateway::commands::accept::Order, id::CommandId,
    store::commands::CommandState,
};

/// How long a command may take at least and at most.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);
/// How long a request may wait for the end of its command.
const PATIENCE: Duration = Duration::from_secs(10 * 60);
/// The longest name of a stream, in characters.
const LONGEST_STREAM: usize = 64;

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

/// Accepts a command, once if its request has a name, and answers.
pub(super) async fn accept(
    service: &Service,
    order: Order,
    request: once::Request,
    patience: Option<Duration>,
    now: Millis,
) -> Result<Response, ApiError> {
    let answer = request.answer(StatusCode::ACCEPTED, &accepted(&order), now)?;
    let before = match answer.kept() {
        Some(kept) => service.gateway().command_once(order, kept).await?,
        None => service.gateway().command(order).await.map(|_| None)?,
    };
    respond(service, answer.settle(before)?, patience).await
}

/// Answers, after a while if the caller wants to know what came of it.
pub(super) async fn respond(
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
fn accepted(order: &Order) -> CommandAccepted {
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

/// Checks the name of a stream, which stands in addresses.
pub(super) fn check_stream(stream: Option<&str>) -> Result<(), ApiError> {
    let Some(stream) = stream else { return Ok(()) };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    // A command without a stream has one with its id, which is its alone.
    if stream.parse::<CommandId>().is_ok() {
        return Err(ApiError::bad_request("stream_id: it must not be the id of a command"));
    }
    if (1..=LONGEST_STREAM).contains(&stream.len()) && stream.bytes().all(is_plain) {
        return Ok(());
    }
    let message = format!("stream_id: 1 to {LONGEST_STREAM} of letters, digits, `.`, `_` and `-`");
    Err(ApiError::bad_request(message))
}
