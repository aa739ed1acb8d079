//! The server of OpenCode's that the operator runs, as the environment has it.

use ostler_core::agent::http::{Login, ServerAddress};

use super::ConfigError;

/// Where `opencode serve` listens unless it is told otherwise.
const DEFAULT_URL: &str = "http://127.0.0.1:4096";
const DEFAULT_USER: &str = "opencode";

/// What the variables say.
pub(super) struct Raw<'a> {
    /// `OPENCODE_ENABLED`.
    pub(super) enabled: Option<&'a str>,
    /// `OPENCODE_URL`.
    pub(super) url: Option<&'a str>,
    /// `OPENCODE_USERNAME`.
    pub(super) user: Option<&'a str>,
    /// `OPENCODE_PASSWORD`.
    pub(super) password: Option<&'a str>,
}

/// Reads them; what the others say counts only if the first says yes.
pub(super) fn read(
    raw: &Raw<'_>,
    warnings: &mut Vec<String>,
) -> Result<Option<ServerAddress>, ConfigError> {
    match raw.enabled {
        None | Some("" | "false" | "0") => return Ok(None),
        Some("true" | "1") => {}
        Some(other) => {
            return Err(ConfigError::Value {
                name: "OPENCODE_ENABLED",
                why: format!(
                    "{other:?} is neither true nor false; true makes the agent opencode use the \
                     server at OPENCODE_URL, false its own program"
                ),
            });
        }
    }
    let login = raw.password.filter(|password| !password.is_empty()).map(|password| Login {
        user: raw.user.filter(|user| !user.is_empty()).unwrap_or(DEFAULT_USER).to_owned(),
        password: password.to_owned(),
    });
    let name = match &login {
        Some(login) if login.user.contains(':') => "OPENCODE_USERNAME",
        Some(_) | None => "OPENCODE_URL",
    };
    let server = ServerAddress::new(raw.url.unwrap_or(DEFAULT_URL), login)
        .map_err(|error| ConfigError::Value { name, why: error.to_string() })?;
    if server.is_exposed() {
        warnings.push(format!(
            "OPENCODE_URL: whoever is on the way to {} can read the password; use https",
            server.url()
        ));
    }
    Ok(Some(server))
}

#[cfg(test)]
mod tests {
    use super::super::{Settings, tests::read};
    use super::*;

    fn server(pairs: &[(&str, &str)]) -> Option<ServerAddress> {
        let on = [("OPENCODE_ENABLED", "true")];
        read(&[&on[..], pairs].concat()).unwrap().opencode_server
    }

    #[test]
    fn without_the_switch_there_is_no_server_whatever_the_rest_says() {
        let nonsense = ("OPENCODE_URL", "nonsense");
        for pairs in [
            vec![nonsense],
            vec![("OPENCODE_ENABLED", "false"), nonsense],
            vec![("OPENCODE_ENABLED", ""), nonsense],
        ] {
            assert!(read(&pairs).unwrap().opencode_server.is_none(), "{pairs:?}");
        }
    }

    #[test]
    fn the_defaults_are_those_of_opencode_serve() {
        let plain = server(&[]).unwrap();
        assert_eq!((plain.url(), plain.login()), (DEFAULT_URL, None));
        let known = server(&[("OPENCODE_PASSWORD", "very-secret")]).unwrap();
        assert_eq!(known.login().unwrap().user, "opencode");
        let other = [("OPENCODE_PASSWORD", "x"), ("OPENCODE_USERNAME", "me")];
        assert_eq!(server(&other).unwrap().login().unwrap().user, "me");
    }

    #[test]
    fn a_wrong_value_is_an_error_that_names_the_variable_and_what_is_right() {
        for (name, value, right) in [
            ("OPENCODE_ENABLED", "maybe", "true nor false"),
            ("OPENCODE_URL", "", "http://127.0.0.1:4096"),
            ("OPENCODE_URL", "ftp://host", "http:// or https://"),
            ("OPENCODE_URL", "http://me:very-secret@host", "apart from the URL"),
            ("OPENCODE_URL", "http://host?x=1", "without what begins with ?"),
        ] {
            let error = read(&[("OPENCODE_ENABLED", "true"), (name, value)]).unwrap_err();
            let error = error.to_string();
            assert!(error.starts_with(name) && error.contains(right), "{error}");
            assert!(!error.contains("very-secret"), "{error}");
        }
        let user = [("OPENCODE_USERNAME", "a:b"), ("OPENCODE_PASSWORD", "very-secret")];
        let error = read(&[&[("OPENCODE_ENABLED", "true")][..], &user].concat()).unwrap_err();
        assert!(error.to_string().starts_with("OPENCODE_USERNAME"), "{error}");
    }

    #[test]
    fn the_password_is_in_no_text_about_the_settings() {
        let pairs = [("OPENCODE_ENABLED", "1"), ("OPENCODE_PASSWORD", "very-secret")];
        let settings: Settings = read(&pairs).unwrap();
        let text = format!("{settings:?} {:?}", settings.opencode_server);
        assert!(!text.contains("very-secret"), "{text}");
    }

    #[test]
    fn a_password_that_others_can_read_is_warned_about() {
        let pairs = [
            ("OPENCODE_ENABLED", "true"),
            ("OPENCODE_URL", "http://example.org:4096"),
            ("OPENCODE_PASSWORD", "very-secret"),
        ];
        let warnings = read(&pairs).unwrap().warnings.join("\n");
        assert!(warnings.contains("use https") && !warnings.contains("secret"), "{warnings}");
    }
}
