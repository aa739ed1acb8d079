//! What people meet who talk to a gateway in a chat: how soon it shows that it is
//! there and what it has to say, and what becomes of many who talk at once. The
//! gateway is a process, the chat a double, the agent scripted and kept.

mod crowd;
mod one;
mod site;
mod webhook;

use std::path::Path;

/// Measures everything; returns whether the limits hold.
pub(crate) fn measure(place: &Path) -> bool {
    let place = place.join("chats");
    let mut fine = one::compare(&place.join("one"));
    fine &= crowd::measure(&place.join("crowd"));
    fine &= webhook::measure(&place.join("webhook"));
    fine
}
