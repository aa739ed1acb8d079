//! The gateway: what every input goes through, from its acceptance to the reply.

pub(crate) mod delivery;
pub(crate) mod http;
pub(crate) mod notify;
