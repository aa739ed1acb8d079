//! Where the files of a channel may lie: hosts that it vouches for, what is shown to
//! them so that they hand a file out, and where they may send us on to. Pure.

use std::{fmt, time::Duration};

use reqwest::Url;

use crate::config::Secret;

/// Where Twilio keeps what came with messages, unless its API is elsewhere.
const OF_TWILIO: &str = "api.twilio.com";
/// Where it sends those on to who showed that they may have a file; and where files
/// are that came before that had to be shown, on a host that has everybody's.
const BEYOND_TWILIO: [&str; 2] =
    [".twiliocdn.com", "s3-external-1.amazonaws.com/media.twiliocdn.com/"];

/// The same for what came in groups.
const OF_GROUPS: &str = "mcs.us1.twilio.com";
const BEYOND_GROUPS: [&str; 2] = ["media.us1.twilio.com", ".twiliocdn.com"];

/// Twilio may tell of a message before its files are there.
const WAITS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(3)];

/// Some hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hosts {
    /// As [`host`] writes them. One that begins with a dot stands for all below it;
    /// of one with a path it is only what lies there.
    names: Vec<String>,
    /// Whether they may be on this machine or in a private network.
    pub(crate) may_be_private: bool,
    /// Whether they may be asked without encryption.
    may_be_plain: bool,
}

impl Hosts {
    /// Takes hosts of the public Internet.
    pub(crate) fn public<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let names = names.into_iter().map(str::to_owned).collect();
        Self { names, may_be_private: false, may_be_plain: false }
    }

    /// Takes the host of a service that the operator has himself, which may be on
    /// this machine; without encryption only if the URL is. Nothing, if it has none.
    pub(crate) fn own(url: &str) -> Option<Self> {
        let url = Url::parse(url).ok()?;
        let may_be_plain = url.scheme() == "http";
        Some(Self { names: vec![host(&url)?], may_be_private: true, may_be_plain })
    }

    /// Whether a URL leads to one of them, in a way that may be gone.
    pub(crate) fn have(&self, url: &Url) -> bool {
        let Some(host) = host(url) else { return false };
        let is_it = |name: &String| {
            let (name, path) = name.split_at(name.find('/').unwrap_or(name.len()));
            let is_host = if name.starts_with('.') { host.ends_with(name) } else { name == host };
            is_host && url.path().starts_with(path)
        };
        let is_fit = match url.scheme() {
            "https" => true,
            "http" => self.may_be_plain,
            _ => false,
        };
        let is_anonymous = url.username().is_empty() && url.password().is_none();
        is_fit && is_anonymous && self.names.iter().any(is_it)
    }
}

/// Returns the host of a URL, with its port if that is not the usual one.
fn host(url: &Url) -> Option<String> {
    let host = url.host_str()?;
    Some(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
}

/// As whom to ask a host.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Login {
    pub(crate) user: String,
    pub(crate) password: Secret,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("password", &self.password).finish_non_exhaustive()
    }
}

/// Hosts that a channel vouches for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Vouched {
    pub(crate) at: Hosts,
    /// What they are shown, and nobody else.
    pub(crate) login: Option<Login>,
    /// Where they may send us on to, once.
    pub(crate) onward: Option<Hosts>,
    /// How long to wait each time before a file is asked for again that is not there
    /// yet.
    pub(crate) waits: &'static [Duration],
}

impl Vouched {
    /// Vouches for hosts that hand out their files themselves, to anybody.
    pub(crate) fn open(at: Hosts) -> Self {
        Self { at, login: None, onward: None, waits: &[] }
    }

    /// Vouches for Twilio: at its own place, or where the operator has one. Who has
    /// one himself may be sent on within it.
    pub(crate) fn twilio(api_url: Option<&str>, login: Option<Login>) -> Self {
        Self::of_twilio(api_url, login, OF_TWILIO, &BEYOND_TWILIO)
    }

    /// The same for what came in groups.
    pub(crate) fn twilio_groups(api_url: Option<&str>, login: Option<Login>) -> Self {
        Self::of_twilio(api_url, login, OF_GROUPS, &BEYOND_GROUPS)
    }

    fn of_twilio(api_url: Option<&str>, login: Option<Login>, at: &str, beyond: &[&str]) -> Self {
        let own = api_url.and_then(Hosts::own);
        let onward = own.clone().unwrap_or_else(|| Hosts::public(beyond.iter().copied()));
        let at = own.unwrap_or_else(|| Hosts::public([at]));
        Self { at, login, onward: Some(onward), waits: &WAITS }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn have(hosts: &Hosts, url: &str) -> bool {
        Url::parse(url).is_ok_and(|url| hosts.have(&url))
    }

    #[test]
    fn a_host_is_meant_exactly_or_with_all_below_it() {
        let hosts = Hosts::public(BEYOND_TWILIO);
        for url in [
            "https://mms.twiliocdn.com/a?b",
            "https://media.twiliocdn.com/",
            "https://MMS.TwilioCDN.com:443/",
            "https://s3-external-1.amazonaws.com/media.twiliocdn.com/a",
        ] {
            assert!(have(&hosts, url), "{url}");
        }
        for url in [
            "http://mms.twiliocdn.com/a",
            "https://twiliocdn.com/",
            "https://eviltwiliocdn.com/",
            "https://mms.twiliocdn.com.evil.example/",
            "https://mms.twiliocdn.com:8443/",
            "https://evil.example/.twiliocdn.com",
            "https://evil.example#.twiliocdn.com",
            "https://u@mms.twiliocdn.com/",
            "https://mms.twiliocdn.com@evil.example/",
            "https://s3-external-1.amazonaws.com/evil/media.twiliocdn.com/a",
            "https://s3-external-1.amazonaws.com/media.twiliocdn.com.evil/a",
            "https://s3-external-1.amazonaws.com/media.twiliocdn.com/../evil/a",
            "https://s3-external-1.amazonaws.com/media.twiliocdn.com/%2e%2E/evil/a",
            "https://s3-external-1.amazonaws.com/",
            "https://evil.s3-external-1.amazonaws.com/",
            "https://s3.amazonaws.com/",
            "https://127.0.0.1/",
            "ftp://mms.twiliocdn.com/",
            "file:///etc/passwd",
        ] {
            assert!(!have(&hosts, url), "{url}");
        }
    }

    #[test]
    fn twilio_is_where_it_is_or_where_the_operator_has_one() {
        let login = || Login { user: "AC1".to_owned(), password: Secret::new("x".to_owned()) };
        let there = Vouched::twilio(None, Some(login()));
        assert!(have(&there.at, "https://api.twilio.com/2010-04-01/Accounts/AC1/Messages/MM1"));
        assert!(!have(&there.at, "https://mms.twiliocdn.com/") && !there.at.may_be_private);
        let onward = there.onward.unwrap();
        assert!(have(&onward, "https://mms.twiliocdn.com/") && !onward.may_be_private);
        let own = Vouched::twilio(Some("http://127.0.0.1:8080/x"), Some(login()));
        assert!(have(&own.at, "http://127.0.0.1:8080/a") && own.at.may_be_private);
        assert!(!have(&own.at, "https://api.twilio.com/"));
        assert!(!have(&own.onward.unwrap(), "https://mms.twiliocdn.com/"));
    }

    #[test]
    fn who_is_asked_with_encryption_is_not_asked_without() {
        let own = Vouched::twilio(Some("https://twilio.example/x"), None);
        for hosts in [own.at, own.onward.unwrap()] {
            assert!(have(&hosts, "https://twilio.example/a") && hosts.may_be_private);
            assert!(!have(&hosts, "http://twilio.example/a"));
            assert!(!have(&hosts, "http://twilio.example:443/a"));
        }
    }

    #[test]
    fn what_is_shown_to_a_host_is_shown_nowhere_else() {
        let login = Login { user: "AC1".to_owned(), password: Secret::new("secret".to_owned()) };
        let shown = format!("{:?}", Vouched::twilio(None, Some(login)));
        assert!(!shown.contains("secret") && !shown.contains("AC1"), "{shown}");
    }

    proptest! {
        #[test]
        fn what_only_ends_like_a_name_is_not_meant(before in "[a-z0-9-]{0,10}") {
            let url = format!("https://x{before}twiliocdn.com/");
            prop_assert!(!have(&Hosts::public([".twiliocdn.com"]), &url));
        }
    }
}
