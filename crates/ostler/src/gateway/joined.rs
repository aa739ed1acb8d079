//! Messages that are answered together with another one.
//!
//! Those that wait behind a job may join it: in its prompt when it begins, or
//! by steering while it runs. They wait on until it ends, and end with it, so
//! that none is lost if it has to be done again.

use crate::id::JobId;

/// How the reason of a job begins that was answered with another.
const ANSWERED_WITH: &str = "answered with ";

/// Returns the reason for the end of a job that joined another.
pub(crate) fn reason(job: JobId) -> String {
    format!("{ANSWERED_WITH}{job}")
}

/// Returns the job that answered another, by the reason of that.
pub(crate) fn answering(reason: Option<&str>) -> Option<JobId> {
    reason?.strip_prefix(ANSWERED_WITH)?.parse().ok()
}

/// Puts the texts of several messages into one prompt.
pub(crate) fn together<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    texts.into_iter().map(str::trim_end).collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_names_the_job_that_answered() {
        let job = JobId::new();
        assert_eq!(answering(Some(&reason(job))), Some(job));
        assert_eq!(answering(Some("stop")), None);
        assert_eq!(answering(None), None);
    }

    #[test]
    fn joined_texts_stay_apart() {
        assert_eq!(together(["one\n", " two", "three"]), "one\n\n two\n\nthree");
    }
}
