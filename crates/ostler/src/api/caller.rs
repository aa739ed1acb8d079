//! Who calls, and what he may do. A route whose handler takes a [`Caller`] can
//! only be called with a key.

use std::net::{IpAddr, SocketAddr};

use axum::{
    extract::{ConnectInfo, FromRequestParts},
    http::{header::AUTHORIZATION, request::Parts},
};
use serde_json::Value;

use super::{ApiError, Code, Service, access, request};
use crate::{
    clock::Millis,
    id::{KeyId, ProjectId},
    key::{KeyText, Scope},
    store::{audit::Entry, keys},
};

/// Somebody with a key that is good.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) key: KeyId,
    scopes: Vec<Scope>,
    /// The projects that the key is for; `None` for all.
    projects: Option<Vec<ProjectId>>,
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
        let unknown =
            || ApiError::new(Code::Unauthorized, "a key is needed that this gateway made");
        let shown = parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let shown = shown.and_then(|value| value.strip_prefix("Bearer "));
        let key = shown.and_then(KeyText::read).ok_or_else(unknown)?;
        let prefix = key.prefix().to_owned();
        let found = service
            .store()
            .read(prefix, |conn, prefix| Box::pin(keys::find_by_prefix(conn, prefix)))
            .await?;
        let stored = found.filter(|stored| key.is_of(&stored.key.hash)).ok_or_else(unknown)?;
        let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>();
        let address = peer.map_or(IpAddr::from([127, 0, 0, 1]), |peer| peer.0.ip());
        let keys::NewKey { id, scopes, projects, .. } = stored.key;
        access::came_with(id);
        Ok(Self { key: id, scopes, projects, address })
    }
}
