//! The HTTP service: what it lets callers do, and how much of it.

use std::{path::PathBuf, time::Duration};

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use super::duration;

/// Git commands that only look.
const LOOKING: [&str; 9] =
    ["blame", "branch", "diff", "log", "ls-files", "rev-parse", "shortlog", "show", "status"];

/// What callers may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Api {
    /// The folders that projects may lie in.
    pub(crate) roots: Vec<PathBuf>,
    /// The programs that `/shell` may run.
    pub(crate) shell: Vec<String>,
    /// The commands of git that `/git` may run.
    pub(crate) git: Vec<String>,
    /// How many requests a key may make in a minute.
    pub(crate) requests_per_key: u32,
    /// How many an address may.
    pub(crate) requests_per_address: u32,
    /// The most that a body may be long, in bytes.
    pub(crate) max_body: usize,
    /// How often a silent stream shows that it lives.
    #[serde(with = "duration")]
    pub(crate) heartbeat: Duration,
    /// The origins whose pages may call.
    pub(crate) cors_origins: Vec<String>,
    /// The proxies that are believed when they say whom they speak for.
    pub(crate) trusted_proxies: Vec<IpNet>,
    /// Whether webhooks may lead to this machine and the networks around it.
    pub(crate) private_webhooks: bool,
    pub(crate) metrics: Metrics,
}

/// Who may read the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Metrics {
    /// Who has a key with the scope `admin`.
    Admin,
    Anybody,
}

impl Default for Api {
    fn default() -> Self {
        Self {
            roots: Vec::new(),
            shell: Vec::new(),
            git: LOOKING.map(str::to_owned).to_vec(),
            requests_per_key: 600,
            requests_per_address: 1200,
            max_body: 1024 * 1024,
            heartbeat: Duration::from_secs(15),
            cors_origins: Vec::new(),
            trusted_proxies: Vec::new(),
            private_webhooks: false,
            metrics: Metrics::Admin,
        }
    }
}
