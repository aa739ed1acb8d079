//! The HTTP service: one file a resource, and what they have in common.
//!
//! A handler asks [`Caller`] whether it may, does one thing through the gateway or
//! the store, and answers with [`Data`] or an [`ApiError`]; both write the envelope.
//! What changes something writes its line of the audit in the same transaction.
//! The OpenAPI document is made from the handlers.

mod access;
mod caller;
mod envelope;
mod error;
mod health;
mod metrics;
mod request;
mod take;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod webhooks;

use std::sync::Arc;

use axum::{Router, middleware};
use tokio::sync::watch;
use utoipa::openapi::{
    InfoBuilder, OpenApi, OpenApiBuilder,
    security::{Http, HttpAuthScheme, SecurityScheme},
};
use utoipa_axum::router::OpenApiRouter;

pub(crate) use self::health::{Phase, provider};
use self::{
    envelope::Data,
    error::{ApiError, Code},
    health::Look,
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
}

impl Service {
    pub(crate) fn new(
        gateway: Gateway,
        store: Store,
        policy: watch::Receiver<Arc<Policy>>,
        phase: watch::Receiver<Phase>,
    ) -> Self {
        let look = Look::default();
        Self { shared: Arc::new(Shared { gateway, store, policy, phase, look }) }
    }

    fn gateway(&self) -> &Gateway {
        &self.shared.gateway
    }

    fn store(&self) -> &Store {
        &self.shared.store
    }

    /// Returns what is configured now.
    fn policy(&self) -> Arc<Policy> {
        Arc::clone(&self.shared.policy.borrow())
    }
}

/// Returns everything that can be called.
pub(crate) fn router(service: &Service) -> Router {
    let (router, _) = routes().split_for_parts();
    router
        .fallback(async || ApiError::not_found("there is nothing here"))
        .method_not_allowed_fallback(async || ApiError::wrong_method())
        .layer(middleware::from_fn_with_state(service.clone(), access::note))
        .layer(middleware::from_fn(request::with_id))
        .with_state(service.clone())
}

/// Returns the routes, each with its documentation.
fn routes() -> OpenApiRouter<Service> {
    OpenApiRouter::with_openapi(about())
        .merge(health::routes())
        .merge(metrics::routes())
        .merge(webhooks::routes())
}

/// Returns what the document says of the whole.
fn about() -> OpenApi {
    let info = InfoBuilder::new()
        .title("Ostler")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some("Coding agents behind one interface."))
        .build();
    let mut about = OpenApiBuilder::new().info(info).build();
    let mut key = Http::new(HttpAuthScheme::Bearer);
    key.description = Some("A key of `ostler keys create`, such as `ost_…`.".to_owned());
    let components = about.components.get_or_insert_default();
    components.add_security_scheme("key", SecurityScheme::Http(key));
    about
}
