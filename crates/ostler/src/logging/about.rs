//! What a task is about: the request, the job or the turn. Every line that is logged
//! in it says so, wherever in the program it is written.

use std::future::Future;

/// Names and values.
pub(super) type About = Vec<(&'static str, String)>;

tokio::task_local! {
    static ABOUT: About;
}

/// Does something, with every line of it about these. Tasks that it starts are not.
pub(crate) fn about<F: Future>(fields: About, doing: F) -> impl Future<Output = F::Output> {
    ABOUT.scope(fields, doing)
}

/// Returns what the present task is about.
pub(super) fn now() -> About {
    ABOUT.try_with(Clone::clone).unwrap_or_default()
}
