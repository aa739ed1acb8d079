//! The environment of an agent's process, built from nothing.
//!
//! Only variables that are listed by name get through, so no secret of
//! Ostler's or of the operator's other programs reaches an agent or its tools.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    path::Path,
};

use crate::agent::AgentSpec;

/// What every program needs in order to behave as it does in the user's shell.
const BASE: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "TZ",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "LC_MESSAGES",
    "LC_COLLATE",
    "LC_NUMERIC",
    "LC_TIME",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "SSH_AUTH_SOCK",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_CACHE_HOME",
    "XDG_STATE_HOME",
];

/// What leads to the user's own files even when HOME is another; left out then.
const HOME_BOUND: &[&str] =
    &["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "SSH_AUTH_SOCK"];

/// The variable that marks every process of a turn.
pub const MARK: &str = "OSTLER_TURN";

/// Variables by name.
pub type Variables = BTreeMap<OsString, OsString>;

/// What decides a child's environment, in rising order of authority.
#[derive(Clone, Copy)]
pub struct ChildEnvironment<'a> {
    /// Ostler's own environment, of which only listed names are taken.
    pub inherited: &'a Variables,
    /// Whose lists apply.
    pub spec: &'a AgentSpec,
    /// The agent's home, when it is not the user's.
    pub home: Option<&'a Path>,
    /// The turn's private folder.
    pub run_dir: &'a Path,
    /// The turn's mark.
    pub mark: &'a str,
    /// What the agent's command line sets.
    pub line: &'a [(OsString, OsString)],
    /// What the operator names: with a value, or to be passed on.
    pub named: &'a [(String, Option<String>)],
}

impl ChildEnvironment<'_> {
    /// Returns the whole environment, sorted by name.
    #[must_use]
    pub fn build(&self) -> Vec<(OsString, OsString)> {
        let mut result = Variables::new();
        for name in BASE.iter().copied().chain(self.spec.env.iter()) {
            if self.home.is_some() && is_home_bound(self.spec, name) {
                continue;
            }
            if let Some(value) = self.inherited.get(OsStr::new(name)) {
                result.insert(name.into(), value.clone());
            }
        }
        if let Some(home) = self.home {
            result.insert("HOME".into(), home.into());
        }
        result.insert("TMPDIR".into(), self.run_dir.into());
        result.insert(MARK.into(), self.mark.into());
        for (name, value) in self.line {
            result.insert(name.clone(), value.clone());
        }
        for (name, value) in self.named {
            let name = OsStr::new(name);
            match value.as_ref().map(OsString::from).or_else(|| self.inherited.get(name).cloned()) {
                Some(value) => result.insert(name.to_owned(), value),
                None => result.remove(name),
            };
        }
        result.into_iter().collect()
    }
}

fn is_home_bound(spec: &AgentSpec, name: &str) -> bool {
    HOME_BOUND.contains(&name) || spec.home_env.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::{claude, codex};

    fn build(
        spec: &AgentSpec,
        inherited: &[(&str, &str)],
        home: Option<&str>,
        named: &[(String, Option<String>)],
    ) -> BTreeMap<String, String> {
        let inherited: Variables =
            inherited.iter().map(|(k, v)| (OsString::from(k), OsString::from(v))).collect();
        let environment = ChildEnvironment {
            inherited: &inherited,
            spec,
            home: home.map(Path::new),
            run_dir: Path::new("/run/x"),
            mark: "trn_1",
            line: &[],
            named,
        };
        let text = |s: OsString| s.into_string().unwrap();
        environment.build().into_iter().map(|(k, v)| (text(k), text(v))).collect()
    }

    #[test]
    fn only_listed_names_get_through() {
        let inherited = [
            ("PATH", "/bin"),
            ("ANTHROPIC_API_KEY", "a"),
            ("DISCORD_BOT_TOKEN", "secret"),
            ("OSTLER_DATABASE_URL", "secret"),
            ("AWS_SECRET", "secret"),
            ("ANTHROPIC_API_KEY_OTHER", "secret"),
        ];
        let names: Vec<_> = build(&claude::SPEC, &inherited, None, &[]).into_keys().collect();
        assert_eq!(names, ["ANTHROPIC_API_KEY", "OSTLER_TURN", "PATH", "TMPDIR"]);
        let names: Vec<_> = build(&codex::SPEC, &inherited, None, &[]).into_keys().collect();
        assert_eq!(names, ["OSTLER_TURN", "PATH", "TMPDIR"]);
    }

    #[test]
    fn another_home_cuts_every_way_to_the_users_own() {
        let inherited = [
            ("HOME", "/home/me"),
            ("XDG_CONFIG_HOME", "/home/me/.config"),
            ("CLAUDE_CONFIG_DIR", "/home/me/.claude"),
        ];
        let environment = build(&claude::SPEC, &inherited, Some("/elsewhere"), &[]);
        assert_eq!(environment.get("HOME").unwrap(), "/elsewhere");
        assert!(!environment.values().any(|value| value.contains("/home/me")), "{environment:?}");
    }

    #[test]
    fn the_operator_can_pass_set_and_remove_by_name() {
        let inherited = [("EXTRA", "from outside"), ("LANG", "C")];
        let named = [
            ("EXTRA".to_owned(), None),
            ("LANG".to_owned(), Some("de_DE.UTF-8".to_owned())),
            ("UNSET".to_owned(), None),
        ];
        let environment = build(&claude::SPEC, &inherited, None, &named);
        assert_eq!(environment.get("EXTRA").unwrap(), "from outside");
        assert_eq!(environment.get("LANG").unwrap(), "de_DE.UTF-8");
        assert!(!environment.contains_key("UNSET"));
    }
}
