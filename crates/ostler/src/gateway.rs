//! The gateway: what every input goes through, from its acceptance to the reply.
//!
//! `inbound` and `gate` take a message in, `runtime` runs its turn, `log` and
//! `follow` are the event log, `delivery` sends replies. State lives in the
//! store, so that a gateway that is killed goes on where it was.

mod follow;
mod gate;
mod inbound;
mod joined;
