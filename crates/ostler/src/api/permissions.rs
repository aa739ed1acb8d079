//! What agents of a project ask before they go on, and the answers to that.

use axum::{
    extract::{FromRequest as _, Request, State},
    response::IntoResponse as _,
};
use ostler_core::permission::{Answer, Decision};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    ApiError, Caller, Data, Service,
    commands::{limit, page, param},
    error::{BodyErrors, Errors},
    projects,
    take::{Body, Named, Params, Within},
};
use crate::{
    clock::Millis,
    gateway::asking::{Actor, AnswerError},
    id::{CommandId, JobId, PermissionId, ProjectId, TurnId},
    key::Scope,
    store::{
        StoreError,
        permissions::{self, StoredRequest},
    },
};

/// The longest text of an answer, in characters.
const LONGEST: usize = 64 * 1024;

pub(super) fn routes() -> OpenApiRouter<Service> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(answer))
}

/// A request that waits for an answer.
#[derive(Debug, Serialize, ToSchema)]
struct PermissionView {
    #[schema(value_type = String)]
    id: PermissionId,
    #[schema(value_type = Option<String>)]
    command_id: Option<CommandId>,
    #[schema(value_type = String)]
    turn_id: TurnId,
    /// `command`, `edit`, `read`, `network`, `question` or `other`.
    kind: String,
    /// The tool that would run, in the agent's own words.
    tool: String,
    /// One line for people: the whole command, the path, the question.
    title: String,
    /// The tool's arguments, if the agent tells them.
    #[schema(value_type = Option<Object>)]
    input: Option<Value>,
    /// What can be answered: decisions, or the choices of a question.
    options: Vec<String>,
    #[schema(value_type = String, format = DateTime)]
    asked_at: Millis,
    /// When it counts as denied.
    #[schema(value_type = String, format = DateTime)]
    expires_at: Millis,
}

impl From<(StoredRequest, Option<JobId>)> for PermissionView {
    fn from((stored, job): (StoredRequest, Option<JobId>)) -> Self {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Asked {
            kind: String,
            tool: String,
            title: String,
            input: Option<Value>,
            options: Vec<String>,
        }
        let StoredRequest { id, request, .. } = stored;
        let asked: Asked = serde_json::from_str(&request.body).unwrap_or_default();
        Self {
            id,
            command_id: job.map(CommandId::from),
            turn_id: request.turn,
            kind: asked.kind,
            tool: asked.tool,
            title: asked.title,
            input: asked.input,
            options: asked.options,
            asked_at: request.asked_at,
            expires_at: request.expires_at,
        }
    }
}

/// Which requests to list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Listed {
    /// How many at most
    #[param(minimum = 1, maximum = 100, default = 50)]
    limit: Option<u32>,
    /// The request after which to go on
    #[param(pattern = "^prm_[0-9a-f]{32}$")]
    cursor: Option<String>,
}

/// List what agents ask, newest first
#[utoipa::path(get, path = "/projects/{project}/permissions", tag = "permissions",
    security(("key" = ["projects:read"])),
    params(
        ("project" = String, Path, description = "The project", pattern = "^prj_[0-9a-f]{32}$"),
        Listed,
    ),
    responses((status = 200, body = Data<Vec<PermissionView>>), Errors),
)]
async fn list(
    caller: Caller,
    State(service): State<Service>,
    Named(id): Named<ProjectId>,
    Params(asked): Params<Listed>,
) -> Result<Data<Vec<PermissionView>>, ApiError> {
    caller.may_in(Scope::ProjectsRead, id)?;
    let n_listed = limit(asked.limit)?;
    let after = param("cursor", asked.cursor.as_ref())?;
    projects::find(&service, id).await?;
    let args = (id, Millis::now(), after, n_listed + 1);
    let found = service.store().read(args, |conn, (id, now, after, limit)| {
        Box::pin(permissions::open_of(conn, *id, *now, *after, *limit))
    });
    let found: Vec<(StoredRequest, Option<JobId>)> =
        found.await.map_err(|error: StoreError| error)?;
    let (found, cursor) = page(found, n_listed, |(last, _)| last.id.to_string());
    Ok(Data::page(found.into_iter().map(PermissionView::from).collect(), cursor))
}

/// What may be decided.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case", try_from = "String")]
enum Verdict {
    /// This time.
    Allow,
    /// This time and whenever the same tool asks with the same input, as long as
    /// the session is open.
    AllowAlways,
    Deny,
}

impl TryFrom<String> for Verdict {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.as_str() {
            "allow" => Ok(Self::Allow),
            "allow_always" => Ok(Self::AllowAlways),
            "deny" => Ok(Self::Deny),
            _ => Err(format!("{text:?} is none of allow, allow_always, deny")),
        }
    }
}

impl From<Verdict> for Decision {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Allow => Self::Allow,
            Verdict::AllowAlways => Self::AllowAlways,
            Verdict::Deny => Self::Deny,
        }
    }
}

/// An answer to what an agent asks.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct AnswerRequest {
    decision: Verdict,
    /// The answer to a question, or why not
    #[schema(max_length = 65536)]
    text: Option<String>,
}

/// What was decided.
#[derive(Debug, Serialize, ToSchema)]
struct Decided {
    #[schema(value_type = String)]
    id: PermissionId,
    decision: Verdict,
}

/// Answer what an agent asks
///
/// The first answer stands.
#[utoipa::path(post, path = "/projects/{project}/permissions/{permission}", tag = "permissions",
    security(("key" = ["projects:execute"])),
    params(
        ("project" = String, Path, description = "The project", pattern = "^prj_[0-9a-f]{32}$"),
        ("permission" = String, Path, description = "What was asked",
            pattern = "^prm_[0-9a-f]{32}$"),
    ),
    request_body = AnswerRequest,
    responses((status = 200, body = Data<Decided>), Errors, BodyErrors),
)]
async fn answer(
    caller: Caller,
    State(service): State<Service>,
    Within(id, one): Within<ProjectId, PermissionId>,
    request: Request,
) -> Result<axum::response::Response, ApiError> {
    caller.may_in(Scope::ProjectsExecute, id)?;
    let Body(AnswerRequest { decision, text }) = Body::from_request(request, &service).await?;
    if text.as_ref().is_some_and(|text| text.contains('\0') || text.chars().count() > LONGEST) {
        let message = format!("text: at most {LONGEST} characters, and no NUL");
        return Err(ApiError::bad_request(message));
    }
    projects::find(&service, id).await?;
    let unknown = || ApiError::not_found(format!("there is no permission request {one}"));
    let is_here = service
        .store()
        .read((id, one), |conn, (id, one)| Box::pin(permissions::is_in(conn, *id, *one)));
    let is_here: Result<bool, StoreError> = is_here.await;
    if !is_here? {
        return Err(unknown());
    }
    let said = Answer { decision: decision.into(), text };
    let by = caller.entry("permission", one, json!({ "project": id }), Millis::now());
    let answered = service.gateway().answer(one, said, Actor::Caller(by)).await;
    answered.map_err(|error| match error {
        AnswerError::Unknown => unknown(),
        AnswerError::NotYours => ApiError::forbidden(error.to_string()),
        AnswerError::Again(_) | AnswerError::Before(_) | AnswerError::Late => {
            ApiError::conflict(error.to_string())
        }
        AnswerError::Store(error) => error.into(),
    })?;
    Ok(Data::new(Decided { id: one, decision }).into_response())
}

#[cfg(test)]
pub(super) mod tests;
