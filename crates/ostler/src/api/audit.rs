//! The audit over HTTP: who did what to what.

use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    ApiError, Data, Service,
    caller::Caller,
    error::Errors,
    keys::{page_limit, read_cursor, read_time},
    take::Params,
};
use crate::{
    clock::Millis,
    id::AuditId,
    key::Scope,
    store::audit::{self, Entry, Filter},
};

pub(super) fn routes() -> OpenApiRouter<Service> {
    OpenApiRouter::new().routes(routes!(list))
}

/// Which lines are wanted.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Wanted {
    /// Who did it: the id of a key, or `operator`.
    actor: Option<String>,
    /// What was done, such as `key.create`.
    action: Option<String>,
    /// The id of what it was done to.
    subject: Option<String>,
    /// From this time on.
    #[param(format = DateTime)]
    since: Option<String>,
    /// Before this time.
    #[param(format = DateTime)]
    until: Option<String>,
    /// How many at most.
    #[param(minimum = 1, maximum = 100, default = 50)]
    limit: Option<u32>,
    /// The `next_cursor` of the page before.
    cursor: Option<String>,
}

/// Something that was done.
#[derive(Serialize, ToSchema)]
struct Line {
    #[schema(value_type = String)]
    id: AuditId,
    #[schema(value_type = String, format = DateTime)]
    at: Millis,
    /// Who did it: the id of a key, or `operator`.
    actor: String,
    /// What was done.
    #[schema(example = "key.create")]
    action: String,
    /// The id of what it was done to.
    subject: String,
    /// What else there is to know, such as the request and where it came from.
    #[schema(value_type = Object)]
    detail: Value,
}

impl From<(AuditId, Entry)> for Line {
    fn from((id, entry): (AuditId, Entry)) -> Self {
        let Entry { at, actor, action, subject, detail } = entry;
        let detail = serde_json::from_str(&detail).unwrap_or(Value::String(detail));
        Self { id, at, actor, action, subject, detail }
    }
}

/// List what was done
///
/// Newest first. A key that is for some projects only cannot see it, for it is about
/// all of them.
#[utoipa::path(get, path = "/audit", tag = "audit", security(("key" = ["audit:read"])),
    params(Wanted),
    responses((status = 200, body = Data<Vec<Line>>), Errors))]
async fn list(
    caller: Caller,
    State(service): State<Service>,
    Params(wanted): Params<Wanted>,
) -> Result<Data<Vec<Line>>, ApiError> {
    caller.may_everywhere(Scope::AuditRead)?;
    let Wanted { actor, action, subject, since, until, limit, cursor } = wanted;
    let limit = page_limit(limit)?;
    let time = |name, text: Option<String>| {
        let time = text.map(|text| read_time(name, &text)).transpose();
        time.map_err(ApiError::bad_request)
    };
    let (since, until) = (time("since", since)?, time("until", until)?);
    let after = cursor.map(|cursor| read_cursor(&cursor)).transpose()?;
    let filter = Filter { actor, action, subject, since, until, after };
    // One more than wanted tells whether there is another page.
    let most = u32::try_from(limit + 1).unwrap_or(u32::MAX);
    let found = service
        .store()
        .read((filter, most), |conn, (filter, most)| Box::pin(audit::list(conn, filter, *most)));
    let mut found: Vec<(AuditId, Entry)> = found.await?;
    let is_more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| is_more).map(|(id, _)| id.to_string());
    Ok(Data::page(found.into_iter().map(Line::from).collect(), next))
}

#[cfg(test)]
mod tests;
