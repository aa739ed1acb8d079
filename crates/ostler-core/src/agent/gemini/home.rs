//! The surroundings of the CLI: its variables, and the settings of a home that
//! is Ostler's own.
//!
//! Settings come from the user's home, from the working directory and from a
//! file of the machine's administrator. That last one would override all, but
//! the CLI reads it only if root owns it and every folder above it, and nobody
//! else may write there: a run folder never qualifies. So in a home of its own
//! the CLI finds settings that Ostler wrote there, and in the user's home it
//! finds the user's, and only variables and flags are Ostler's.

use std::{ffi::OsString, path::PathBuf};

use crate::{
    agent::command_line::push_variables,
    request::{Options, ProjectSettings},
};

/// Where the CLI keeps its settings, below its home.
const SETTINGS_PATH: &str = ".gemini/settings.json";

/// What a home of Ostler's own says.
///
/// - `useExternal` takes the kind of login from the variables alone. Without it
///   a base URL beside an API key is refused, and the working directory's
///   `.env` is read once more after the directory counts as trusted.
/// - `ignoreLocalEnv`: a `.env` cannot supply keys either.
/// - `sessionRetention`: its clean-up deletes sessions that were resumed.
/// - `maxAttempts`: ten tries take more than three minutes; the second comes
///   after 3.5 to 6.5 seconds.
/// - The rest keeps it from looking for updates and from talking to anybody
///   but its model.
const SETTINGS: &str = r#"{
  "security": { "auth": { "useExternal": true } },
  "advanced": { "ignoreLocalEnv": true },
  "general": {
    "enableAutoUpdate": false,
    "enableAutoUpdateNotification": false,
    "maxAttempts": 2,
    "sessionRetention": { "enabled": false }
  },
  "privacy": { "usageStatisticsEnabled": false },
  "telemetry": { "enabled": false }
}
"#;

/// The variables that every run gets; one that the operator names wins.
const ALWAYS: &[(&str, &str)] = &[
    // Else it starts itself a second time, with more memory, and the first
    // process ignores every signal.
    ("GEMINI_CLI_NO_RELAUNCH", "true"),
    // Its last words would else be printed in red, and the first ones be a
    // complaint about the terminal that is not there.
    ("NO_COLOR", "1"),
    ("COLORTERM", "truecolor"),
    ("GEMINI_TELEMETRY_ENABLED", "false"),
];

/// Variables that a `.env` of the working directory cannot set any more,
/// because they are set: it never overrides, and an empty value is a value.
///
/// In the user's home the CLI cannot be told not to read that file. These lead
/// a key or a login elsewhere, switch the check of certificates off, or load
/// code into every program that is started.
const PINNED: &[(&str, &str)] = &[
    ("GOOGLE_GEMINI_BASE_URL", ""),
    ("GOOGLE_VERTEX_BASE_URL", ""),
    ("GEMINI_CLI_CUSTOM_HEADERS", ""),
    // An empty value would count here; this is the CLI's own.
    ("CODE_ASSIST_ENDPOINT", "https://cloudcode-pa.googleapis.com"),
    ("NODE_TLS_REJECT_UNAUTHORIZED", "1"),
    ("NODE_OPTIONS", ""),
    ("LD_PRELOAD", ""),
    ("LD_LIBRARY_PATH", ""),
    ("LD_AUDIT", ""),
    ("BASH_ENV", ""),
];

/// Returns the variables of a run.
pub(super) fn environment(options: &Options) -> Vec<(OsString, OsString)> {
    let mut variables = Vec::new();
    let mut add = |table: &[(&str, &str)]| push_variables(&mut variables, table);
    add(ALWAYS);
    match (options.project_settings, &options.home) {
        // Given by this variable, trust is there before settings are read; given
        // by a flag it comes too late for them.
        (ProjectSettings::Trusted, _) => add(&[("GEMINI_CLI_TRUST_WORKSPACE", "true")]),
        (ProjectSettings::Ignored, None) => add(PINNED),
        (ProjectSettings::Ignored, Some(_)) => {}
    }
    if let Some(home) = &options.home {
        // Else it asks the user's own key ring for a key.
        add(&[("GEMINI_FORCE_FILE_STORAGE", "true")]);
        variables.push(("HOME".into(), home.into()));
        variables.push(("GEMINI_CLI_HOME".into(), home.into()));
    }
    variables
}

/// Returns the files of a home of Ostler's own.
pub(super) fn files(options: &Options) -> Vec<(PathBuf, Vec<u8>)> {
    match options.home {
        Some(_) => vec![(SETTINGS_PATH.into(), SETTINGS.into())],
        None => Vec::new(),
    }
}
