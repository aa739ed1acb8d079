//! What everything that runs in a gateway works with.

use std::sync::Arc;

use super::{log::Log, unasked::Unasked};
use crate::{
    hooks::runner::Runner, media::incoming::Fetcher, queue::Queue, store::Store,
    telemetry::Telemetry,
};

/// The store and what is built on it. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Tools {
    pub(crate) store: Store,
    pub(crate) queue: Queue,
    pub(crate) log: Log,
    pub(crate) unasked: Unasked,
    pub(crate) hooks: Runner,
    pub(crate) fetcher: Arc<Fetcher>,
    pub(crate) telemetry: Telemetry,
}
