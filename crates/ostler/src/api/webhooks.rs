//! Webhooks: who is called when something happens to commands, and what came of the
//! calls. The secret of one is seen once, when it is made.

use axum::extract::{FromRequest as _, Request, State};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    ApiError, Code, Data, Service,
    caller::Caller,
    commands::page,
    error::{BodyErrors, Errors},
    take::{Body, Named, Params},
};
use crate::{
    channel::{reach, webhook},
    clock::Millis,
    gateway::notices::read_key,
    id::{CommandId, OutboxId, ProjectId, WebhookId},
    key::{Scope, random_text},
    store::{
        StoreError, WriteError, audit, projects,
        webhooks::{self, Call, NoticeKind, Seen, Webhook},
    },
};

/// What every secret begins with.
const START: &str = "whsec_";
/// How many random characters follow.
const LENGTH: usize = 32;
/// How many webhooks a project may have, and all projects together: each command
/// calls all of them.
const MOST: u64 = 20;
const PAGE: u32 = 50;
const LONGEST_PAGE: u32 = 100;

pub(super) fn routes() -> OpenApiRouter<Service> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(get, remove))
        .routes(routes!(deliveries))
}

/// A webhook that is wanted.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewWebhook {
    /// Where to call: http or https, without a login.
    #[schema(max_length = 512, example = "https://example.org/ostler")]
    url: String,
    /// What to tell of.
    #[schema(min_items = 1)]
    events: Vec<NoticeKind>,
    /// The project whose commands to tell of; without it those of all, for which the
    /// key needs the scope `admin`.
    #[schema(value_type = Option<String>, pattern = "^prj_[0-9a-f]{32}$")]
    project_id: Option<ProjectId>,
}

/// A webhook.
#[derive(Serialize, ToSchema)]
struct WebhookView {
    #[schema(value_type = String)]
    id: WebhookId,
    url: String,
    events: Vec<NoticeKind>,
    /// Null if it hears of all projects.
    #[schema(value_type = Option<String>)]
    project_id: Option<ProjectId>,
    /// The key that made it.
    created_by: String,
    #[schema(value_type = String, format = DateTime)]
    created_at: Millis,
}

/// A webhook that was just made.
#[derive(Serialize, ToSchema)]
struct CreatedWebhook {
    #[schema(value_type = String)]
    id: WebhookId,
    url: String,
    events: Vec<NoticeKind>,
    /// Null if it hears of all projects.
    #[schema(value_type = Option<String>)]
    project_id: Option<ProjectId>,
    /// What its calls are signed with. It is not shown again.
    #[schema(example = "whsec_0123456789abcdefABCDEF0123456789")]
    secret: String,
    created_by: String,
    #[schema(value_type = String, format = DateTime)]
    created_at: Millis,
}

/// A call of a webhook.
#[derive(Serialize, ToSchema)]
struct DeliveryView {
    /// The same in all tries: what the receiver knows as `id` and `Idempotency-Key`.
    #[schema(value_type = String)]
    id: OutboxId,
    event: Option<NoticeKind>,
    #[schema(value_type = Option<String>)]
    command_id: Option<CommandId>,
    #[schema(value_type = DeliveryState)]
    state: String,
    attempts: i64,
    /// The status of the last answer, if there was one.
    response_status: Option<u16>,
    /// Why the last try failed.
    reason: Option<String>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Millis,
    #[schema(value_type = Option<String>, format = DateTime)]
    ended_at: Option<Millis>,
}

/// How far a call is.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(dead_code, reason = "only the document is made of it")]
enum DeliveryState {
    Waiting,
    Sending,
    Sent,
    Failed,
}

/// Which part of a list is wanted.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Paging {
    /// How many, 50 unless given.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<u32>,
    /// Where to go on: `meta.next_cursor` of the page before.
    cursor: Option<String>,
}

impl Paging {
    /// Returns the id to begin after, and how many.
    fn take<T: std::str::FromStr>(&self) -> Result<(Option<T>, u32), ApiError> {
        let limit = self.limit.unwrap_or(PAGE);
        if !(1..=LONGEST_PAGE).contains(&limit) {
            return Err(ApiError::bad_request("limit is a number from 1 to 100"));
        }
        let wrong = |_| ApiError::bad_request("cursor is none that a page gave");
        let after = self.cursor.as_deref().map(str::parse).transpose().map_err(wrong)?;
        Ok((after, limit))
    }
}

/// Says what stands against a webhook.
enum Refused {
    Store(StoreError),
    NoProject(ProjectId),
    TooMany,
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl WriteError for Refused {
    fn store_error(&self) -> Option<&StoreError> {
        match self {
            Self::Store(error) => Some(error),
            Self::NoProject(_) | Self::TooMany => None,
        }
    }
}

impl From<Refused> for ApiError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Store(error) => error.into(),
            Refused::NoProject(project) => {
                Self::not_found(format!("there is no project {project}"))
            }
            Refused::TooMany => Self::conflict(format!(
                "there are {MOST} webhooks for it already; delete one that is not needed"
            )),
        }
    }
}

/// Make a webhook
///
/// The answer has the secret that its calls are signed with; it is not shown again.
#[utoipa::path(post, path = "/webhooks", tag = "webhooks", request_body = NewWebhook,
    security(("key" = ["projects:execute"])),
    responses((status = 201, body = Data<CreatedWebhook>), Errors, BodyErrors),
)]
async fn create(
    caller: Caller,
    State(service): State<Service>,
    request: Request,
) -> Result<Data<CreatedWebhook>, ApiError> {
    // What else is needed is in the body, which nobody else has read.
    caller.may(Scope::ProjectsExecute)?;
    let Body(wanted) = Body::from_request(request, &service).await?;
    let NewWebhook { url, mut events, project_id } = wanted;
    match project_id {
        Some(project) => caller.may_in(Scope::ProjectsExecute, project)?,
        None => caller.may_everywhere(Scope::Admin)?,
    }
    let wrong = |why: String| ApiError::bad_request(format!("url: {why}"));
    webhook::check(&url).map_err(|error| wrong(error.to_string()))?;
    if !service.policy().api.private_webhooks {
        reach::check(&url).map_err(|error| wrong(error.to_string()))?;
    }
    if events.is_empty() {
        return Err(ApiError::bad_request("events: name at least one"));
    }
    events.sort_by_key(|kind| kind.as_str());
    events.dedup();
    let random = rustls::crypto::ring::default_provider().secure_random;
    let secret = random_text(random, LENGTH)
        .map_err(|error| ApiError::new(Code::InternalError, error.to_string()))?;
    let now = Millis::now();
    let webhook = Webhook {
        id: WebhookId::new(),
        project: project_id,
        url,
        kinds: events,
        secret: format!("{START}{secret}"),
        created_by: caller.key.to_string(),
        created_at: now,
    };
    let detail = json!({
        "project_id": webhook.project,
        "events": webhook.kinds,
        "to": webhook::origin(&webhook.url),
    });
    let entry = caller.entry("webhook.create", webhook.id, detail, now);
    service
        .store()
        .write((webhook.clone(), entry), |conn, (webhook, entry)| {
            Box::pin(async move {
                if let Some(project) = webhook.project
                    && projects::find(conn, project).await?.is_none()
                {
                    return Err(Refused::NoProject(project));
                }
                if webhooks::count(conn, webhook.project).await? >= MOST {
                    return Err(Refused::TooMany);
                }
                webhooks::add(conn, webhook).await?;
                audit::add(conn, entry).await.map_err(Refused::from)
            })
        })
        .await?;
    let Webhook { id, project, url, kinds, secret, created_by, created_at } = webhook;
    Ok(Data::created(CreatedWebhook {
        id,
        url,
        events: kinds,
        project_id: project,
        secret,
        created_by,
        created_at,
    }))
}

/// List webhooks
#[utoipa::path(get, path = "/webhooks", tag = "webhooks", params(Paging),
    security(("key" = ["projects:execute"])),
    responses((status = 200, body = Data<Vec<WebhookView>>), Errors),
)]
async fn list(
    caller: Caller,
    State(service): State<Service>,
    Params(paging): Params<Paging>,
) -> Result<Data<Vec<WebhookView>>, ApiError> {
    caller.may(Scope::ProjectsExecute)?;
    let (after, limit) = paging.take::<WebhookId>()?;
    let args = (seen(&caller), after, limit + 1);
    let found = service.store().read(args, |conn, (seen, after, limit)| {
        Box::pin(webhooks::list(conn, seen, *after, *limit))
    });
    let (found, next) = page(found.await?, limit, |webhook| webhook.id.to_string());
    Ok(Data::page(found.into_iter().map(view).collect(), next))
}

/// Show a webhook
#[utoipa::path(get, path = "/webhooks/{webhook}", tag = "webhooks",
    params(("webhook" = String, Path, description = "The id of the webhook.")),
    security(("key" = ["projects:execute"])),
    responses((status = 200, body = Data<WebhookView>), Errors),
)]
async fn get(
    caller: Caller,
    State(service): State<Service>,
    Named(id): Named<WebhookId>,
) -> Result<Data<WebhookView>, ApiError> {
    Ok(Data::new(view(find(&caller, &service, id).await?)))
}

/// Delete a webhook
///
/// What waits to be sent to it is not sent any more.
#[utoipa::path(delete, path = "/webhooks/{webhook}", tag = "webhooks",
    params(("webhook" = String, Path, description = "The id of the webhook.")),
    security(("key" = ["projects:execute"])),
    responses((status = 200, body = Data<WebhookView>), Errors),
)]
async fn remove(
    caller: Caller,
    State(service): State<Service>,
    Named(id): Named<WebhookId>,
) -> Result<Data<WebhookView>, ApiError> {
    let webhook = find(&caller, &service, id).await?;
    let now = Millis::now();
    let detail = json!({ "project_id": webhook.project });
    let entry = caller.entry("webhook.delete", id, detail, now);
    let deleted = service.store().write((id, entry, now), |conn, (id, entry, now)| {
        Box::pin(async move {
            let is_news = webhooks::delete(conn, *id, *now).await?;
            if is_news {
                audit::add(conn, entry).await?;
            }
            Ok::<_, StoreError>(is_news)
        })
    });
    if deleted.await? { Ok(Data::new(view(webhook))) } else { Err(missing(id)) }
}

/// List what a webhook was told
///
/// Kept for a week.
#[utoipa::path(get, path = "/webhooks/{webhook}/deliveries", tag = "webhooks",
    params(("webhook" = String, Path, description = "The id of the webhook."), Paging),
    security(("key" = ["projects:execute"])),
    responses((status = 200, body = Data<Vec<DeliveryView>>), Errors),
)]
async fn deliveries(
    caller: Caller,
    State(service): State<Service>,
    Named(id): Named<WebhookId>,
    Params(paging): Params<Paging>,
) -> Result<Data<Vec<DeliveryView>>, ApiError> {
    find(&caller, &service, id).await?;
    let (after, limit) = paging.take::<OutboxId>()?;
    let calls = service.store().read((id, after, limit + 1), |conn, (id, after, limit)| {
        Box::pin(webhooks::calls(conn, *id, *after, *limit))
    });
    let (calls, next) = page(calls.await?, limit, |call| call.id.to_string());
    Ok(Data::page(calls.into_iter().map(delivery).collect(), next))
}

/// Returns which webhooks a caller may see.
fn seen(caller: &Caller) -> Seen {
    match caller.projects() {
        Some(projects) => Seen::Of(projects.to_vec()),
        None if caller.may(Scope::Admin).is_ok() => Seen::All,
        None => Seen::OfProjects,
    }
}

/// Finds a webhook that a caller may see.
async fn find(caller: &Caller, service: &Service, id: WebhookId) -> Result<Webhook, ApiError> {
    caller.may(Scope::ProjectsExecute)?;
    let found = service.store().read(id, |conn, id| {
        Box::pin(async move {
            let Some(webhook) = webhooks::find(conn, *id).await? else { return Ok(None) };
            let is_there = match webhook.project {
                Some(project) => projects::find(conn, project).await?.is_some(),
                None => true,
            };
            Ok::<_, StoreError>(Some(webhook).filter(|_| is_there))
        })
    });
    let is_seen = |webhook: &Webhook| match webhook.project {
        Some(project) => caller.sees(project),
        None => caller.may_everywhere(Scope::Admin).is_ok(),
    };
    found.await?.filter(is_seen).ok_or_else(|| missing(id))
}

fn missing(id: WebhookId) -> ApiError {
    ApiError::not_found(format!("there is no webhook {id}"))
}

fn view(webhook: Webhook) -> WebhookView {
    let Webhook { id, project, url, kinds, created_by, created_at, .. } = webhook;
    WebhookView { id, url, events: kinds, project_id: project, created_by, created_at }
}

fn delivery(call: Call) -> DeliveryView {
    let Call { id, dedupe, state, attempts, answer, reason, created_at, ended_at } = call;
    let (command_id, event) = read_key(&dedupe);
    // A refusal is told with its status first.
    let status = answer.as_deref().or(reason.as_deref()).and_then(|text| text.get(..3));
    let response_status = status.and_then(|digits| digits.parse().ok());
    DeliveryView {
        id,
        event,
        command_id,
        state,
        attempts,
        response_status,
        reason,
        created_at,
        ended_at,
    }
}

#[cfg(test)]
mod tests;
