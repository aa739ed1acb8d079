//! Where a server is that somebody else runs, and as whom it is called.

use std::{
    fmt,
    net::IpAddr,
    sync::{Arc, PoisonError, RwLock},
};

use thiserror::Error;

use super::Login;

/// A server that is there before and after us. Cheap to clone.
///
/// What is known of its version is shared by the clones.
#[derive(Clone)]
pub struct ServerAddress {
    url: Arc<str>,
    login: Option<Login>,
    version: Arc<RwLock<Option<String>>>,
}

/// Why a text is not the address of a server.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum AddressError {
    /// It is no URL at all.
    #[error("{text:?} is not a URL ({why}); give one such as http://127.0.0.1:4096")]
    NotAUrl {
        /// The text.
        text: String,
        /// What is wrong with it.
        why: String,
    },
    /// It leads somewhere else than to an HTTP server.
    #[error("its scheme is {scheme}; give a URL that begins with http:// or https://")]
    Scheme {
        /// What it is instead.
        scheme: String,
    },
    /// It names a user or a password, which would be shown wherever it is.
    #[error("it has a user name or a password in it; give them apart from the URL")]
    UserInfo,
    /// It has something behind its path.
    #[error("it has a query or a fragment; give the URL without what begins with ? or #")]
    Query,
    /// The user name cannot be sent.
    #[error("the user name has a colon in it, which HTTP cannot tell from the password's")]
    UserName,
    /// There is no way to any server in this build.
    #[error("this build cannot speak with HTTP servers: its feature `http` is off")]
    NoHttp,
}

impl ServerAddress {
    /// Reads the address of a server: `http` or `https`, a host, perhaps a port
    /// and a path below which the server is.
    ///
    /// # Errors
    /// When it is anything else. What is secret in it is not repeated.
    pub fn new(url: &str, login: Option<Login>) -> Result<Self, AddressError> {
        if login.as_ref().is_some_and(|login| login.user.contains(':')) {
            return Err(AddressError::UserName);
        }
        let url = read(url)?;
        Ok(Self { url: url.into(), login, version: Arc::default() })
    }

    /// Returns the URL, without a slash at its end. There is nothing secret in it.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns as whom the server is called, if it wants to know.
    #[must_use]
    pub fn login(&self) -> Option<&Login> {
        self.login.as_ref()
    }

    /// Returns whether a password would travel so that others could read it.
    #[must_use]
    pub fn is_exposed(&self) -> bool {
        let host = self.url.strip_prefix("http://").and_then(|rest| rest.split('/').next());
        self.login.is_some() && host.is_some_and(|host| !is_here(host))
    }

    /// Returns the version that the server told last.
    #[must_use]
    pub fn version(&self) -> Option<String> {
        self.version.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn remember_version(&self, version: &str) {
        let mut known = self.version.write().unwrap_or_else(PoisonError::into_inner);
        *known = Some(version.to_owned()).filter(|version| !version.is_empty());
    }
}

/// Whether a host, perhaps with a port, is this machine.
fn is_here(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next(),
        None => host.split(':').next(),
    };
    let name = name.unwrap_or_default();
    let address = name.parse::<IpAddr>();
    name == "localhost" || address.is_ok_and(|address| address.to_canonical().is_loopback())
}

impl PartialEq for ServerAddress {
    /// Compares where it is and who calls, which is all that it is made of.
    fn eq(&self, other: &Self) -> bool {
        (&self.url, &self.login) == (&other.url, &other.login)
    }
}

impl Eq for ServerAddress {}

impl fmt::Debug for ServerAddress {
    /// Leaves the secret out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerAddress")
            .field("url", &self.url)
            .field("login", &self.login)
            .finish_non_exhaustive()
    }
}

#[cfg(feature = "http")]
fn read(text: &str) -> Result<String, AddressError> {
    // Whoever puts a password into a URL does not want it in an error.
    let shown = if text.contains('@') { "(not shown)" } else { text };
    let url = reqwest::Url::parse(text).map_err(|error| AddressError::NotAUrl {
        text: shown.to_owned(),
        why: error.to_string(),
    })?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(AddressError::Scheme { scheme: url.scheme().to_owned() });
    }
    if !url.username().is_empty() || url.password().is_some() || text.contains('@') {
        return Err(AddressError::UserInfo);
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(AddressError::Query);
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

#[cfg(not(feature = "http"))]
fn read(_text: &str) -> Result<String, AddressError> {
    Err(AddressError::NoHttp)
}

#[cfg(all(test, feature = "http"))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn login() -> Option<Login> {
        Some(Login { user: "opencode".to_owned(), password: "very-secret".to_owned() })
    }

    #[test]
    fn an_address_is_kept_without_the_slash_at_its_end() {
        for (text, url) in [
            ("http://127.0.0.1:4096", "http://127.0.0.1:4096"),
            ("http://127.0.0.1:4096/", "http://127.0.0.1:4096"),
            ("HTTPS://Example.org/oc/", "https://example.org/oc"),
            ("http://[::1]:80/", "http://[::1]"),
        ] {
            assert_eq!(ServerAddress::new(text, None).unwrap().url(), url);
        }
    }

    #[test]
    fn what_is_no_address_is_told_with_what_to_give() {
        for (text, expected) in [
            ("", "is not a URL"),
            ("127.0.0.1:4096", "is not a URL"),
            ("localhost:4096", "begins with http://"),
            ("ftp://host/", "begins with http://"),
            ("http://", "is not a URL"),
            ("http://me:very-secret@host/", "apart from the URL"),
            ("http://me@host/", "apart from the URL"),
            ("http://@host/", "apart from the URL"),
            ("me:very-secret@host", "begins with http://"),
            ("http://host/?token=x", "without what begins"),
            ("http://host/?", "without what begins"),
            ("http://host/#x", "without what begins"),
        ] {
            let error = ServerAddress::new(text, None).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
            assert!(!error.contains("very-secret"), "{error}");
        }
        let login = Some(Login { user: "a:b".to_owned(), password: String::new() });
        assert!(ServerAddress::new("http://host", login).is_err());
    }

    #[test]
    fn a_password_that_travels_openly_is_known() {
        let exposed = |text: &str| ServerAddress::new(text, login()).unwrap().is_exposed();
        for there in [
            "http://example.org:4096",
            "http://10.0.0.1",
            "http://127.evil.example",
            "http://127.0.0.1.evil.example:4096",
            "http://localhost.evil.example",
            "http://[2001:db8::1]",
        ] {
            assert!(exposed(there), "{there}");
        }
        for here in [
            "http://127.0.0.1:4096",
            "http://127.1.2.3",
            "http://localhost/oc",
            "http://[::1]:4096",
            "http://[::1]",
            "http://[::ffff:127.0.0.1]/oc",
        ] {
            assert!(!exposed(here), "{here}");
        }
        assert!(!exposed("https://example.org"));
        assert!(!ServerAddress::new("http://example.org", None).unwrap().is_exposed());
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic_or_tells_a_secret(before in ".{0,20}", behind in ".{0,20}") {
            let text = format!("{before}very-secret@{behind}");
            let shown = match ServerAddress::new(&text, login()) {
                Ok(address) => format!("{address:?}"),
                Err(error) => error.to_string(),
            };
            prop_assert!(!shown.contains("very-secret"), "{}", shown);
        }
    }
}
