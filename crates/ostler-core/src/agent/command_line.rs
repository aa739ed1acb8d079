//! What every agent's command line is made of: its form, arguments, variables,
//! and warnings about what could not be done as asked.
//!
//! Which of them an agent takes is for its own `launch` to say.

use std::ffi::OsString;

use crate::request::{Options, Permissions};

/// Which of its two lines an agent gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// The one that existing deployments rely on.
    Literal,
    /// The one with everything that keeps the user safe and tells more.
    Default,
}

impl Form {
    pub(crate) fn of(options: &Options) -> Self {
        if options.is_literal() { Self::Literal } else { Self::Default }
    }
}

/// Adds arguments.
pub(crate) fn push<T: Into<OsString>>(args: &mut Vec<OsString>, more: impl IntoIterator<Item = T>) {
    args.extend(more.into_iter().map(Into::into));
}

/// Adds a flag and its value, of whichever type.
pub(crate) fn push_pair(args: &mut Vec<OsString>, flag: &str, value: impl Into<OsString>) {
    args.extend([flag.into(), value.into()]);
}

/// Adds the variables of a table.
pub(crate) fn push_variables(env: &mut Vec<(OsString, OsString)>, table: &[(&str, &str)]) {
    env.extend(table.iter().map(|(name, value)| (name.into(), value.into())));
}

/// Adds a warning where it applies.
pub(crate) fn warn_if(warnings: &mut Vec<String>, applies: bool, text: &str) {
    if applies {
        warnings.push(text.to_owned());
    }
}

/// Warns that permissions are not asked for, where they should be: a process of
/// one turn has nobody to ask.
pub(crate) fn warn_if_asking(warnings: &mut Vec<String>, options: &Options) {
    warn_if(
        warnings,
        options.permissions == Permissions::Ask,
        "nobody can be asked in a one-shot turn; running read-only",
    );
}

/// Warns of tools that were asked for and would do more than look.
pub(crate) fn warn_if_refused(warnings: &mut Vec<String>, refused: &[&str]) {
    if !refused.is_empty() {
        let refused = refused.join(", ");
        warnings.push(format!("not allowed, because the turn is read-only: {refused}"));
    }
}
