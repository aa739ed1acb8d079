//! What has to be done so that a chat shows what it should: which messages are
//! sent, changed and deleted now, and when to look again. Pure.

use super::{Limits, Post, Slot, draft::View};

/// A message that stands in a chat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Posted {
    pub(crate) slot: Slot,
    /// The chat's own id of it.
    pub(crate) message: String,
    /// What stands there, if it is known: after a restart it is not.
    pub(crate) shown: Option<Post>,
    /// When it was sent or changed last, in milliseconds of whoever shows it.
    pub(crate) changed_at: u64,
}

/// Something to do in a chat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Send { slot: Slot, post: Post },
    Edit { slot: Slot, message: String, post: Post },
    Delete { slot: Slot, message: String },
}

impl Operation {
    /// Whether it is about something that is asked in a view and not answered yet.
    pub(crate) fn is_about_open_request(&self, view: &View) -> bool {
        let (Self::Send { slot, .. } | Self::Edit { slot, .. } | Self::Delete { slot, .. }) = self;
        let (Slot::Asked(id) | Slot::Page(id, _)) = slot else { return false };
        let asked = Slot::Asked(id.clone());
        view.posts.iter().any(|(slot, post)| *slot == asked && !post.buttons.is_empty())
    }
}

/// What to do now, in this order, and when something that was held back is due.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) operations: Vec<Operation>,
    pub(crate) again_at: Option<u64>,
}

/// Decides what to do so that a chat shows a view.
pub(crate) fn plan(posted: &[Posted], view: &View, now_ms: u64, limits: &Limits) -> Plan {
    let mut plan = Plan::default();
    let apart = limits.edits.map(|apart| u64::try_from(apart.as_millis()).unwrap_or(u64::MAX));
    if apart.is_some() {
        // A further attempt says it all again: what an earlier one left is changed by
        // what comes, and what is not is known at the end.
        let is_known = |at: &&Posted| view.is_final || at.shown.is_some() && !view.posts.is_empty();
        let is_gone = |at: &&Posted| match at.slot {
            Slot::Text(_) => view.posts.iter().all(|(slot, _)| *slot != at.slot),
            Slot::Asked(_) | Slot::Page(..) | Slot::Note => false,
        };
        plan.operations.extend(
            posted
                .iter()
                .filter(is_known)
                .filter(is_gone)
                .map(|at| Operation::Delete { slot: at.slot.clone(), message: at.message.clone() }),
        );
    }
    for (slot, post) in &view.posts {
        let Some(at) = posted.iter().find(|at| at.slot == *slot) else {
            let is_early = match slot {
                Slot::Text(_) => apart.is_none() && !view.is_final,
                Slot::Asked(_) | Slot::Page(..) | Slot::Note => false,
            };
            if !is_early {
                plan.operations.push(Operation::Send { slot: slot.clone(), post: post.clone() });
            }
            continue;
        };
        let Some(apart) = apart.filter(|_| at.shown.as_ref() != Some(post)) else { continue };
        let due = at.changed_at.saturating_add(apart);
        if view.is_final || due <= now_ms {
            let (slot, message) = (slot.clone(), at.message.clone());
            plan.operations.push(Operation::Edit { slot, message, post: post.clone() });
        } else {
            plan.again_at = Some(plan.again_at.map_or(due, |again| again.min(due)));
        }
    }
    plan
}

/// Returns the view that a turn ends with. What is below the last request is used
/// again; text above it is left out, and so deleted. Where nothing can be changed each
/// page keeps its number, whichever of them are there.
pub(crate) fn finish(posted: &[Posted], posts: Vec<Post>, limits: &Limits) -> View {
    if limits.edits.is_none() {
        let posts = (0..).zip(posts).map(|(number, post)| (Slot::Text(number), post)).collect();
        return View { posts, is_final: true };
    }
    let mut below = Vec::new();
    let mut unused = 0;
    for at in posted {
        match &at.slot {
            Slot::Text(number) => {
                below.push(*number);
                unused = unused.max(number.saturating_add(1));
            }
            Slot::Asked(_) | Slot::Page(..) => below.clear(),
            Slot::Note => {}
        }
    }
    let numbers = below.into_iter().chain(unused..);
    let posts = numbers.zip(posts).map(|(number, post)| (Slot::Text(number), post)).collect();
    View { posts, is_final: true }
}

#[cfg(test)]
mod tests;
