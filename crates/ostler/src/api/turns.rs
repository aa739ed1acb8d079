//! Turns of a project: what its agents did, one prompt after the other.

use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    ApiError, Caller, Data, Service,
    commands::{Page, limit, page, param},
    error::Errors,
    events::render::object,
    health::provider,
    projects,
    take::{Named, Params, Within},
};
use crate::{
    clock::Millis,
    id::{CommandId, ProjectId, TurnId},
    key::Scope,
    store::{
        StoreError,
        events::{self, StoredEvent},
        turns::{self, StoredTurn},
    },
};

pub(super) fn routes() -> OpenApiRouter<Service> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(get))
}

/// A turn.
#[derive(Debug, Serialize, ToSchema)]
struct TurnView {
    #[schema(value_type = String)]
    id: TurnId,
    /// The command that asked for it; none if the agent began by itself.
    #[schema(value_type = Option<String>)]
    command_id: Option<CommandId>,
    /// Which try at the command it is, from 1.
    attempt: i64,
    agent_provider: String,
    /// `running`, `ended`, or `abandoned` if nobody was left to end it.
    #[schema(example = "ended")]
    state: &'static str,
    #[schema(value_type = String, format = DateTime)]
    begun_at: Millis,
    #[schema(value_type = Option<String>, format = DateTime)]
    ended_at: Option<Millis>,
    /// What came of it, as `ostler run --output json` has it, once it has ended.
    /// Lists leave it out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    report: Option<Value>,
    /// A page of what happened. Lists leave it out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    events: Option<Vec<Value>>,
}

impl From<StoredTurn> for TurnView {
    fn from(stored: StoredTurn) -> Self {
        let StoredTurn { turn, state, result, ended_at } = stored;
        Self {
            id: turn.id,
            command_id: turn.job.map(CommandId::from),
            attempt: turn.attempt,
            agent_provider: provider(&turn.agent).to_owned(),
            state: state.as_str(),
            begun_at: turn.begun_at,
            ended_at,
            report: result.and_then(|report| serde_json::from_str(&report).ok()),
            events: None,
        }
    }
}

/// Which turns to list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Listed {
    /// How many at most
    #[param(minimum = 1, maximum = 100, default = 50)]
    limit: Option<u32>,
    /// The turn after which to go on
    #[param(pattern = "^trn_[0-9a-f]{32}$")]
    cursor: Option<String>,
}

/// List turns, newest first
#[utoipa::path(get, path = "/projects/{project}/turns", tag = "turns",
    security(("key" = ["projects:read"])),
    params(
        ("project" = String, Path, description = "The project", pattern = "^prj_[0-9a-f]{32}$"),
        Listed,
    ),
    responses((status = 200, body = Data<Vec<TurnView>>), Errors),
)]
async fn list(
    caller: Caller,
    State(service): State<Service>,
    Named(id): Named<ProjectId>,
    Params(asked): Params<Listed>,
) -> Result<Data<Vec<TurnView>>, ApiError> {
    caller.may_in(Scope::ProjectsRead, id)?;
    let n_listed = limit(asked.limit)?;
    let after = param("cursor", asked.cursor.as_ref())?;
    projects::find(&service, id).await?;
    let found = service.store().read((id, after, n_listed + 1), |conn, (id, after, limit)| {
        Box::pin(turns::of_project(conn, *id, *after, *limit))
    });
    let found: Vec<StoredTurn> = found.await.map_err(|error: StoreError| error)?;
    let (found, cursor) = page(found, n_listed, |last| last.turn.id.to_string());
    Ok(Data::page(found.into_iter().map(TurnView::from).collect(), cursor))
}

/// Read a turn: its report, and what happened in it
///
/// `next_cursor` is the number to give as `after`.
#[utoipa::path(get, path = "/projects/{project}/turns/{turn}", tag = "turns",
    security(("key" = ["projects:read"])),
    params(
        ("project" = String, Path, description = "The project", pattern = "^prj_[0-9a-f]{32}$"),
        ("turn" = String, Path, description = "The turn", pattern = "^trn_[0-9a-f]{32}$"),
        Page,
    ),
    responses((status = 200, body = Data<TurnView>), Errors),
)]
async fn get(
    caller: Caller,
    State(service): State<Service>,
    Within(id, one): Within<ProjectId, TurnId>,
    Params(asked): Params<Page>,
) -> Result<Data<TurnView>, ApiError> {
    caller.may_in(Scope::ProjectsRead, id)?;
    let (after, n_events) = asked.read()?;
    projects::find(&service, id).await?;
    let found = service.store().read((id, one, after, n_events + 1), |conn, args| {
        Box::pin(async move {
            let (id, one, after, limit) = *args;
            let Some(turn) = turns::find_in(conn, id, one).await? else { return Ok(None) };
            Ok(Some((turn, events::read_turn(conn, one, after, limit).await?)))
        })
    });
    let found: Option<(StoredTurn, Vec<StoredEvent>)> =
        found.await.map_err(|error: StoreError| error)?;
    let (turn, events) =
        found.ok_or_else(|| ApiError::not_found(format!("there is no turn {one}")))?;
    let (events, cursor) = page(events, n_events, |last| last.number.to_string());
    let events = Some(events.iter().map(object).collect());
    Ok(Data::page(TurnView { events, ..turn.into() }, cursor))
}
