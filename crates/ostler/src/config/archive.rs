//! What is kept of what was said, and what programs drop for people.

use std::{path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};

use super::duration::or_off;

/// Messages that agents and programs send by themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Outbound {
    /// The folder that is watched for them; unset: none.
    pub(crate) dir: Option<PathBuf>,
}

/// What is kept of what was said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Archive {
    /// Whether it is written to files.
    pub(crate) enabled: bool,
    /// Unset: a folder in the data folder.
    pub(crate) dir: Option<PathBuf>,
    /// `None`: the history is kept for ever.
    #[serde(with = "or_off")]
    pub(crate) history_retention: Option<Duration>,
}

impl Default for Archive {
    fn default() -> Self {
        Self { enabled: true, dir: None, history_retention: None }
    }
}
