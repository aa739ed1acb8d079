//! The gateway: what every input goes through, from its acceptance to the reply.

pub(crate) mod delivery;
