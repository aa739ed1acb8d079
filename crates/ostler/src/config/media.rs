//! Files that come with messages and go out with answers.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What may come and go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Media {
    /// The largest file that is taken or sent, in megabytes.
    pub(crate) max_mb: u64,
    /// The folders, beside that in which the agent works, whose files an answer may send.
    pub(crate) send_from: Vec<PathBuf>,
}

impl Default for Media {
    fn default() -> Self {
        Self { max_mb: 25, send_from: Vec::new() }
    }
}
