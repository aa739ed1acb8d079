//! Keys over HTTP: made, looked at and revoked by those who may. Nobody gives more
//! than he has, and the word of a key is in one answer only.

use axum::extract::{FromRequest as _, Request, State};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    ApiError, Code, Data, Service,
    caller::Caller,
    error::{BodyErrors, ErrorBody, Errors},
    take::{Body, Named, Params},
};
use crate::{
    clock::Millis,
    config::duration,
    id::{KeyId, ProjectId},
    key::{
        Scope,
        wanted::{Own, Wanted, read_network},
    },
    store::{
        Conn, StoreError,
        audit::{self, Entry},
        keys::{self, KeyState, Revoked, StoredKey},
    },
};

pub(super) fn routes() -> OpenApiRouter<Service> {
    OpenApiRouter::new().routes(routes!(create, list)).routes(routes!(get, revoke))
}

/// A key that is wanted.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewKeyBody {
    /// What people call it.
    #[schema(min_length = 1, max_length = 64)]
    name: String,
    /// What it may be used for: nothing that the caller's own key may not.
    #[schema(min_items = 1)]
    scopes: Vec<Scope>,
    /// The projects that it is for; those of the caller's own key if left out.
    #[schema(value_type = Option<Vec<String>>, min_items = 1, max_items = 100)]
    projects: Option<Vec<ProjectId>>,
    /// The networks that it may be used from, such as `10.0.0.0/8`; those of the
    /// caller's own key if left out.
    #[schema(min_items = 1, max_items = 100)]
    networks: Option<Vec<String>>,
    /// When it can no longer be used.
    #[schema(format = DateTime)]
    expires_at: Option<String>,
    /// The same as a duration from now, such as `30d`.
    #[schema(example = "30d")]
    expires_in: Option<String>,
}

impl NewKeyBody {
    fn wanted(self, now: Millis) -> Result<Wanted, String> {
        let Self { name, scopes, projects, networks, expires_at, expires_in } = self;
        let networks = networks.map(|list| list.iter().map(|text| read_network(text)).collect());
        let expires_at = match (expires_at, expires_in) {
            (None, None) => None,
            (Some(text), None) => Some(read_time("expires_at", &text)?),
            (None, Some(text)) => {
                let length = duration::parse(&text);
                let length = length.ok_or_else(|| format!("expires_in: {}", duration::HINT))?;
                Some(now.after(length))
            }
            (Some(_), Some(_)) => {
                return Err("give expires_at or expires_in, not both".to_owned());
            }
        };
        let networks = networks.transpose()?;
        Wanted { name, scopes, projects, networks, expires_at }.checked(now)
    }
}

/// Reads a time.
pub(super) fn read_time(name: &str, text: &str) -> Result<Millis, String> {
    let time = text.parse::<Timestamp>().map(|time| Millis(time.as_millisecond()));
    time.map_err(|_| format!("{name}: give a time such as 2030-01-31T12:00:00Z"))
}

/// A key.
#[derive(Serialize, ToSchema)]
struct KeyView {
    #[schema(value_type = String)]
    id: KeyId,
    /// Its word. Only in the answer to the request that made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    name: String,
    /// How its word begins.
    #[schema(example = "ost_0123abcd")]
    prefix: String,
    state: KeyState,
    scopes: Vec<Scope>,
    /// The projects that it is for; null for all.
    #[schema(value_type = Option<Vec<String>>)]
    projects: Option<Vec<ProjectId>>,
    /// The networks that it may be used from; null for all.
    networks: Option<Vec<String>>,
    /// The key that made it, or `operator` or `bootstrap`.
    created_by: String,
    #[schema(value_type = String, format = DateTime)]
    created_at: Millis,
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Millis>,
    #[schema(value_type = Option<String>, format = DateTime)]
    revoked_at: Option<Millis>,
    /// When it was used last, to the minute.
    #[schema(value_type = Option<String>, format = DateTime)]
    last_used_at: Option<Millis>,
}

impl KeyView {
    fn new(stored: StoredKey, now: Millis) -> Self {
        let state = stored.state(now);
        let StoredKey { key, revoked_at, last_used_at } = stored;
        Self {
            id: key.id,
            key: None,
            name: key.name,
            prefix: key.prefix,
            state,
            scopes: key.scopes,
            projects: key.projects,
            networks: key.networks.map(|list| list.iter().map(ToString::to_string).collect()),
            created_by: key.created_by,
            created_at: key.created_at,
            expires_at: key.expires_at,
            revoked_at,
            last_used_at,
        }
    }
}

/// Make a key
///
/// The word of the key is in the answer, and nowhere else: it cannot be had again.
#[utoipa::path(post, path = "/keys", tag = "keys", security(("key" = ["keys:write"])),
    request_body = NewKeyBody,
    responses((status = 201, body = Data<KeyView>), Errors, BodyErrors))]
async fn create(
    caller: Caller,
    State(service): State<Service>,
    request: Request,
) -> Result<Data<KeyView>, ApiError> {
    caller.may(Scope::KeysWrite)?;
    let Body(body): Body<NewKeyBody> = Body::from_request(request, &service).await?;
    let now = Millis::now();
    let wanted = body.wanted(now).map_err(ApiError::bad_request)?;
    let own = Own {
        scopes: caller.scopes(),
        projects: caller.projects(),
        networks: caller.networks(),
        expires_at: caller.expires_at(),
    };
    let wanted = wanted.within(own).map_err(ApiError::forbidden)?;
    let made = wanted.make(caller.key.to_string(), now);
    let (text, key) = made.map_err(|error| {
        tracing::error!(%error, "a key could not be made");
        ApiError::new(Code::InternalError, "a key could not be made")
    })?;
    let entry = caller.entry("key.create", key.id, key.summary(), now);
    let added = service
        .store()
        .write((key.clone(), entry), |conn, (key, entry)| Box::pin(keys::grant(conn, key, entry)));
    let missing: Option<ProjectId> = added.await?;
    if let Some(project) = missing {
        return Err(ApiError::bad_request(format!("there is no project {project}")));
    }
    let stored = StoredKey { key, revoked_at: None, last_used_at: None };
    let mut view = KeyView::new(stored, now);
    view.key = Some(text.reveal().to_owned());
    Ok(Data::created(view))
}

/// Which part of a list is wanted.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Page {
    /// How many at most.
    #[param(minimum = 1, maximum = 100, default = 50)]
    limit: Option<u32>,
    /// The `next_cursor` of the page before.
    cursor: Option<String>,
}

/// List the keys
///
/// Newest first, those that were revoked among them. A key that is for some
/// projects sees those that are for no others.
#[utoipa::path(get, path = "/keys", tag = "keys", security(("key" = ["keys:read"])),
    params(Page),
    responses((status = 200, body = Data<Vec<KeyView>>), Errors))]
async fn list(
    caller: Caller,
    State(service): State<Service>,
    Params(page): Params<Page>,
) -> Result<Data<Vec<KeyView>>, ApiError> {
    caller.may(Scope::KeysRead)?;
    let limit = page_limit(page.limit)?;
    let after = page.cursor.map(|cursor| read_cursor(&cursor)).transpose()?;
    let args = (caller, after, limit);
    let found = service
        .store()
        .read(args, |conn, (caller, after, limit)| Box::pin(visible(conn, caller, *after, *limit)));
    let (found, next): (Vec<StoredKey>, Option<KeyId>) = found.await?;
    let now = Millis::now();
    let views = found.into_iter().map(|key| KeyView::new(key, now)).collect();
    Ok(Data::page(views, next.map(|id| id.to_string())))
}

/// Returns how many things a page has.
pub(super) fn page_limit(wanted: Option<u32>) -> Result<usize, ApiError> {
    let limit = wanted.unwrap_or(50);
    if !(1..=100).contains(&limit) {
        return Err(ApiError::bad_request("limit: give a number from 1 to 100"));
    }
    usize::try_from(limit).map_err(|_| ApiError::bad_request("limit: give a number from 1 to 100"))
}

/// Reads where a page begins.
pub(super) fn read_cursor<T: std::str::FromStr>(text: &str) -> Result<T, ApiError> {
    text.parse().map_err(|_| ApiError::bad_request("cursor: give the next_cursor of a page"))
}

/// Returns a page of those that a caller may see, and where the next one begins.
async fn visible(
    conn: &mut Conn,
    caller: &Caller,
    mut after: Option<KeyId>,
    limit: usize,
) -> Result<(Vec<StoredKey>, Option<KeyId>), StoreError> {
    const BATCH: u32 = 101;
    let mut found = Vec::new();
    loop {
        let batch = keys::list(conn, after, BATCH).await?;
        let is_last = u32::try_from(batch.len()).is_ok_and(|n_keys| n_keys < BATCH);
        after = batch.last().map(|key| key.key.id);
        found.extend(batch.into_iter().filter(|key| sees(caller, key)));
        if found.len() > limit || is_last {
            break;
        }
    }
    let is_more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| is_more).map(|key| key.key.id);
    Ok((found, next))
}

/// Whether a key is within the limits of a caller.
fn sees(caller: &Caller, key: &StoredKey) -> bool {
    match &key.key.projects {
        None => caller.projects().is_none(),
        Some(projects) => projects.iter().all(|project| caller.sees(*project)),
    }
}

/// Look at a key
#[utoipa::path(get, path = "/keys/{key}", tag = "keys", security(("key" = ["keys:read"])),
    params(("key" = String, Path, description = "The id of the key", pattern = "^key_[0-9a-f]{32}$")),
    responses((status = 200, body = Data<KeyView>), Errors))]
async fn get(
    caller: Caller,
    State(service): State<Service>,
    Named(id): Named<KeyId>,
) -> Result<Data<KeyView>, ApiError> {
    caller.may(Scope::KeysRead)?;
    let found = service.store().read(id, |conn, id| Box::pin(keys::find(conn, *id)));
    let found: Option<StoredKey> = found.await?;
    let found = found.filter(|key| sees(&caller, key)).ok_or_else(|| unknown(id))?;
    Ok(Data::new(KeyView::new(found, Millis::now())))
}

fn unknown(id: KeyId) -> ApiError {
    ApiError::not_found(format!("there is no key {id}"))
}

/// Revoke a key
///
/// It can never be used again, and stays in the list. To revoke it again changes
/// nothing. An admin key can be revoked by an admin only, and not if it is the last.
#[utoipa::path(delete, path = "/keys/{key}", tag = "keys", security(("key" = ["keys:write"])),
    params(("key" = String, Path, description = "The id of the key", pattern = "^key_[0-9a-f]{32}$")),
    responses((status = 200, body = Data<KeyView>), Errors,
        (status = 409, description = "It is the last admin key", body = ErrorBody)))]
async fn revoke(
    caller: Caller,
    State(service): State<Service>,
    Named(id): Named<KeyId>,
) -> Result<Data<KeyView>, ApiError> {
    caller.may(Scope::KeysWrite)?;
    let now = Millis::now();
    let entry = caller.entry("key.revoke", id, json!({}), now);
    let args = (caller, id, entry, now);
    let done = service.store().write_repeatable(args, |conn, (caller, id, entry, now)| {
        Box::pin(revoke_for(conn, caller, *id, entry, *now))
    });
    let done: Result<Result<_, ApiError>, StoreError> = done.await;
    Ok(Data::new(KeyView::new(done??, now)))
}

/// Revokes a key for a caller, if he may.
async fn revoke_for(
    conn: &mut Conn,
    caller: &Caller,
    id: KeyId,
    entry: &Entry,
    now: Millis,
) -> Result<Result<StoredKey, ApiError>, StoreError> {
    let found = keys::find(conn, id).await?.filter(|key| sees(caller, key));
    let Some(key) = found else { return Ok(Err(unknown(id))) };
    if key.key.scopes.contains(&Scope::Admin)
        && let Err(error) = caller.may(Scope::Admin)
    {
        return Ok(Err(error));
    }
    if key.revoked_at.is_some() {
        return Ok(Ok(key));
    }
    match keys::revoke(conn, key, now).await? {
        Revoked::Done(key) => {
            audit::add(conn, entry).await?;
            Ok(Ok(*key))
        }
        Revoked::Last => Ok(Err(ApiError::conflict(
            "this is the last admin key that works; make another one before",
        ))),
    }
}

#[cfg(test)]
mod tests;
