//! Who calls, and what he may do. A route whose handler takes a [`Caller`] can
//! only be called with a key.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, HeaderName, header::AUTHORIZATION, request::Parts},
};
use ipnet::IpNet;
use serde_json::Value;
use tokio_util::task::TaskTracker;

use super::{ApiError, Code, Service, access, limits::Address, request};
use crate::{
    clock::Millis,
    id::{KeyId, ProjectId},
    key::{KeyText, Scope},
    store::{
        StoreError,
        audit::Entry,
        keys::{self, KeyState, StoredKey},
    },
};

/// Where a key may stand instead of in `Authorization`.
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
/// How often it is written down that a key is used.
const USED: Duration = Duration::from_secs(60);

/// Somebody with a key that is good.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) key: KeyId,
    scopes: Vec<Scope>,
    /// The projects that the key is for; `None` for all.
    projects: Option<Vec<ProjectId>>,
    /// The networks that it may be used from; `None` for all.
    networks: Option<Vec<IpNet>>,
    expires_at: Option<Millis>,
    pub(crate) address: IpAddr,
}

impl Caller {
    /// Returns an error unless the key may be used for this.
    pub(crate) fn may(&self, scope: Scope) -> Result<(), ApiError> {
        if self.scopes.contains(&scope) || self.scopes.contains(&Scope::Admin) {
            return Ok(());
        }
        Err(ApiError::forbidden(format!("the key has not the scope {scope}")))
    }

    /// Returns an error unless the key may be used for this in that project. What
    /// a key is not for is not there for it.
    pub(crate) fn may_in(&self, scope: Scope, project: ProjectId) -> Result<(), ApiError> {
        self.may(scope)?;
        if self.sees(project) {
            return Ok(());
        }
        Err(ApiError::not_found(format!("there is no project {project}")))
    }

    /// Returns an error unless the key may be used for this in all projects.
    pub(crate) fn may_everywhere(&self, scope: Scope) -> Result<(), ApiError> {
        self.may(scope)?;
        match self.projects {
            None => Ok(()),
            Some(_) => Err(ApiError::forbidden("the key is for some projects only")),
        }
    }

    /// Whether the key is for a project.
    pub(crate) fn sees(&self, project: ProjectId) -> bool {
        self.projects.as_ref().is_none_or(|projects| projects.contains(&project))
    }

    /// Returns the projects that the key is for; `None` for all.
    pub(crate) fn projects(&self) -> Option<&[ProjectId]> {
        self.projects.as_deref()
    }

    /// Returns what the key can be used for, its scopes being `admin` or some.
    pub(crate) fn scopes(&self) -> &[Scope] {
        &self.scopes
    }

    /// Returns the networks that the key may be used from; `None` for all.
    pub(crate) fn networks(&self) -> Option<&[IpNet]> {
        self.networks.as_deref()
    }

    /// Returns when the key can no longer be used.
    pub(crate) fn expires_at(&self) -> Option<Millis> {
        self.expires_at
    }

    /// Makes the line of the audit about something that the caller does.
    pub(crate) fn entry(
        &self,
        action: &str,
        subject: impl ToString,
        detail: Value,
        now: Millis,
    ) -> Entry {
        let mut fields = serde_json::json!({ "request": request::id(), "from": self.address });
        if let (Some(fields), Value::Object(detail)) = (fields.as_object_mut(), detail) {
            fields.extend(detail);
        }
        Entry {
            at: now,
            actor: self.key.to_string(),
            action: action.to_owned(),
            subject: subject.to_string(),
            detail: fields.to_string(),
        }
    }
}

impl FromRequestParts<Service> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, service: &Service) -> Result<Self, ApiError> {
        let nowhere = || ApiError::new(Code::InternalError, "nobody knows who asks");
        let Address(address) = *parts.extensions.get::<Address>().ok_or_else(nowhere)?;
        let Some(shown) = shown(&parts.headers) else { return Err(unknown()) };
        let now = Millis::now();
        let stored = match check(shown, address, now, service).await? {
            Ok(stored) => stored,
            Err(error) => {
                // Whoever only tries keys is told nothing more about them after a while.
                service.limits().failure(address)?;
                tracing::info!(%address, code = ?error.code, "a key was refused");
                return Err(error);
            }
        };
        service.limits().key(stored.key.id)?;
        service.used().note(&stored, now, service);
        let keys::NewKey { id, scopes, projects, networks, expires_at, .. } = stored.key;
        access::came_with(id);
        Ok(Self { key: id, scopes, projects, networks, expires_at, address })
    }
}

fn unknown() -> ApiError {
    ApiError::new(Code::Unauthorized, "a key is needed that this gateway made")
}

/// Returns what a caller shows as his key. A proxy may want `Authorization` for
/// itself, and so one that is no key leaves the other header.
fn shown(headers: &HeaderMap) -> Option<&str> {
    let text = |name: &HeaderName| Some(headers.get(name)?.to_str().unwrap_or_default().trim());
    let authorization = text(&AUTHORIZATION);
    let (scheme, key) = authorization.and_then(|value| value.split_once(' ')).unwrap_or_default();
    let bearer = scheme.eq_ignore_ascii_case("bearer").then(|| key.trim());
    let bearer = bearer.filter(|key| KeyText::read(key).is_some());
    bearer.or_else(|| text(&API_KEY)).or(authorization.map(|_| ""))
}

/// Finds the key, and says what stands against its use from there.
async fn check(
    shown: &str,
    address: IpAddr,
    now: Millis,
    service: &Service,
) -> Result<Result<StoredKey, ApiError>, ApiError> {
    let Some(key) = KeyText::read(shown) else { return Ok(Err(unknown())) };
    let prefix = key.prefix().to_owned();
    let found =
        service.store().read(prefix, |conn, prefix| Box::pin(keys::find_by_prefix(conn, prefix)));
    let found: Option<StoredKey> = found.await?;
    let Some(stored) = found.filter(|stored| key.is_of(&stored.key.hash)) else {
        return Ok(Err(unknown()));
    };
    let error = match stored.state(now) {
        KeyState::Revoked => ApiError::new(Code::KeyRevoked, "the key was revoked"),
        KeyState::Expired => ApiError::new(Code::KeyExpired, "the key has expired"),
        KeyState::Active if !is_within(stored.key.networks.as_deref(), address) => {
            ApiError::new(Code::IpNotAllowed, format!("the key cannot be used from {address}"))
        }
        KeyState::Active => return Ok(Ok(stored)),
    };
    Ok(Err(error))
}

/// Whether an address lies in the networks that a key is for; `None` for all.
fn is_within(networks: Option<&[IpNet]>, address: IpAddr) -> bool {
    networks.is_none_or(|networks| networks.iter().any(|network| network.contains(&address)))
}

/// When keys were used last, as far as it was written down.
#[derive(Debug, Default)]
pub(super) struct Used {
    noted: Mutex<HashMap<KeyId, Millis>>,
    tasks: TaskTracker,
}

impl Used {
    /// Writes down behind the scenes that a key is used, unless that was done a
    /// moment ago.
    fn note(&self, stored: &StoredKey, now: Millis, service: &Service) {
        let (id, since) = (stored.key.id, now.before(USED));
        if stored.last_used_at.is_some_and(|at| at > since) || !self.is_due(id, since, now) {
            return;
        }
        let store = service.store().clone();
        self.tasks.spawn(async move {
            let noted = store.write_repeatable((id, now, since), |conn, (id, now, since)| {
                Box::pin(keys::note_use(conn, *id, *now, *since))
            });
            let noted: Result<(), StoreError> = noted.await;
            if let Err(error) = noted {
                tracing::debug!(%error, "it is not written down that a key was used");
            }
        });
    }

    /// Whether it is time to write, for one of those who ask at once.
    fn is_due(&self, id: KeyId, since: Millis, now: Millis) -> bool {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        if noted.get(&id).is_some_and(|at| *at > since) {
            return false;
        }
        noted.retain(|_, at| *at > since);
        noted.insert(id, now);
        true
    }

    /// Returns when everything is written.
    pub(super) async fn settled(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }
}

#[cfg(test)]
mod tests;
