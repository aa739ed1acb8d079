//! The variables that keep a turn of OpenCode safe, quiet and quick to fail.

use std::ffi::OsString;

use serde_json::Value;

use crate::{
    agent::command_line::push_variables,
    request::{Options, ProjectSettings},
};

/// The variables that every run gets; one that the operator names wins.
const ENV: &[(&str, &str)] = &[
    ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
    // A user's own setting would publish other people's conversations.
    ("OPENCODE_DISABLE_SHARE", "1"),
    // The only place where the CLI tells that a call of the model failed and is
    // tried again, and why a turn could not even begin.
    ("OPENCODE_PRINT_LOGS", "1"),
    ("OPENCODE_LOG_LEVEL", "ERROR"),
];

/// What a directory that nobody trusts does not get to say.
const UNTRUSTED_ENV: &[(&str, &str)] = &[
    // Its settings can start programs and send the key elsewhere.
    ("OPENCODE_DISABLE_PROJECT_CONFIG", "1"),
    // Skills in `.claude` and `.agents` are read in spite of the former.
    ("OPENCODE_DISABLE_EXTERNAL_SKILLS", "1"),
];

/// With a home of its own, the CLI downloads nothing and brings no logins.
const ISOLATED_ENV: &[(&str, &str)] = &[
    ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
    ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
    ("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1"),
];

/// The folders below a home of its own.
const HOME_FOLDERS: &[(&str, &str)] = &[
    ("XDG_CONFIG_HOME", ".config"),
    ("XDG_DATA_HOME", ".local/share"),
    ("XDG_CACHE_HOME", ".cache"),
    ("XDG_STATE_HOME", ".local/state"),
];

/// Returns the variables of a turn; `permission` counts for every agent in it.
pub(super) fn environment(
    options: &Options,
    permission: Option<&Value>,
) -> Vec<(OsString, OsString)> {
    let mut env = Vec::new();
    let mut add = |table: &[(&str, &str)]| push_variables(&mut env, table);
    add(ENV);
    if options.project_settings == ProjectSettings::Ignored {
        add(UNTRUSTED_ENV);
    }
    if options.home.is_some() {
        add(ISOLATED_ENV);
    }
    if let Some(home) = &options.home {
        env.push(("HOME".into(), home.into()));
        for (name, folder) in HOME_FOLDERS {
            env.push((name.into(), home.join(folder).into()));
        }
    }
    if let Some(permission) = permission {
        env.push(("OPENCODE_PERMISSION".into(), permission.to_string().into()));
    }
    env
}
