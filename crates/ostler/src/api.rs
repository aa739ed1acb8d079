//! The HTTP service: one file a resource, and what they have in common.
//!
//! A handler asks [`Caller`] whether it may, does one thing through the gateway or
//! the store, and answers with [`Data`] or an [`ApiError`]; both write the envelope.
//! What changes something writes its line of the audit in the same transaction.
//! The OpenAPI document is made from the handlers.

mod accepted;
mod access;
mod agents;
mod audit;
mod caller;
mod client;
mod commands;
mod docs;
pub(crate) mod document;
mod envelope;
mod error;
pub(crate) mod events;
mod feed;
mod headers;
mod health;
mod keys;
mod limits;
mod media;
mod metrics;
mod once;
mod permissions;
mod programs;
mod projects;
mod prompt;
mod request;
mod take;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod turns;
mod webhooks;

use std::sync::Arc;

use axum::{Router, middleware};
use tokio::sync::watch;
use utoipa_axum::router::OpenApiRouter;

use self::{
    caller::{Caller, Used},
    envelope::Data,
    error::{ApiError, Code},
    feed::Feed,
    health::Look,
    limits::Limits,
};
pub(crate) use self::{
    health::{Phase, provider},
    media::NO_FILE,
};
use crate::{
    gateway::{Gateway, policy::Policy},
    store::Store,
};

/// What the handlers work with. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Service {
    shared: Arc<Shared>,
}

struct Shared {
    gateway: Gateway,
    store: Store,
    policy: watch::Receiver<Arc<Policy>>,
    phase: watch::Receiver<Phase>,
    look: Look,
    feed: Feed,
    limits: Limits,
    used: Used,
}

impl Service {
    pub(crate) fn new(
        gateway: Gateway,
        store: Store,
        policy: watch::Receiver<Arc<Policy>>,
        phase: watch::Receiver<Phase>,
    ) -> Self {
        let (look, used) = (Look::default(), Used::default());
        let limits = Limits::new(&policy.borrow().api);
        let feed = Feed::new(store.clone());
        let shared = Shared { gateway, store, policy, phase, look, feed, limits, used };
        Self { shared: Arc::new(shared) }
    }

    /// Ends the streams: answers that have no end of their own.
    pub(crate) fn end_streams(&self) {
        self.shared.feed.close();
    }

    fn gateway(&self) -> &Gateway {
        &self.shared.gateway
    }

    fn store(&self) -> &Store {
        &self.shared.store
    }

    fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    fn used(&self) -> &Used {
        &self.shared.used
    }

    /// Returns when nothing is left to be written, once nobody calls any more.
    pub(crate) async fn settled(&self) {
        self.shared.used.settled().await;
    }

    /// Returns what is configured now.
    fn policy(&self) -> Arc<Policy> {
        Arc::clone(&self.shared.policy.borrow())
    }
}

/// Returns everything that can be called.
pub(crate) fn router(service: &Service) -> Router {
    let (router, _) = routes().split_for_parts();
    let router = router
        .fallback(async || ApiError::not_found("there is nothing here"))
        .method_not_allowed_fallback(async || ApiError::wrong_method())
        .layer(middleware::from_fn_with_state(service.clone(), limits::by_address))
        .layer(middleware::from_fn_with_state(service.clone(), access::note))
        .layer(middleware::from_fn(request::with_id))
        .layer(middleware::from_fn(headers::secure))
        .with_state(service.clone());
    headers::allow_origins(router, &service.policy().api.cors_origins)
}

/// Returns what others call by ways of their own, noted as everything is. How often one
/// address may call does not count there: a proxy is one.
pub(crate) fn called_by_others(service: &Service, router: Router) -> Router {
    router
        .layer(middleware::from_fn_with_state(service.clone(), access::note))
        .layer(middleware::from_fn(request::with_id))
        .layer(middleware::from_fn(headers::secure))
}

/// Returns the routes, each with its documentation.
fn routes() -> OpenApiRouter<Service> {
    OpenApiRouter::with_openapi(document::about())
        .merge(health::routes())
        .merge(docs::routes())
        .merge(projects::routes())
        .merge(agents::routes())
        .merge(programs::routes())
        .merge(events::routes())
        .merge(commands::routes())
        .merge(permissions::routes())
        .merge(prompt::routes())
        .merge(turns::routes())
        .merge(keys::routes())
        .merge(audit::routes())
        .merge(metrics::routes())
        .merge(media::routes())
        .merge(webhooks::routes())
}
