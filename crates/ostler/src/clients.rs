//! What calls a URL that somebody gave us, for webhooks and hooks alike.
//!
//! Straight to the address: no proxy of the environment is asked, for a call
//! to this machine must never leave it, and no redirect is followed, for
//! somebody gave one address and not whatever that leads to.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use reqwest::{Client, Response, Url, dns::Resolve, redirect::Policy};

/// Clients for calls with and without encryption.
pub(crate) struct Clients {
    /// How long it may take to get through.
    connect: Duration,
    /// What looks names up, if not the system.
    names: Option<Arc<dyn Resolve>>,
    plain: OnceLock<Client>,
    /// Made when it is first needed: the certificates of the system are read then,
    /// which takes a moment, and fails where there are none.
    secure: OnceLock<Client>,
}

impl fmt::Debug for Clients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clients").field("connect", &self.connect).finish_non_exhaustive()
    }
}

impl Clients {
    pub(crate) fn new(connect: Duration) -> Self {
        Self { connect, names: None, plain: OnceLock::new(), secure: OnceLock::new() }
    }

    /// Makes some that ask somebody else than the system where names lead. An
    /// address in a URL needs no asking.
    pub(crate) fn with_names(self, names: Arc<dyn Resolve>) -> Self {
        Self { names: Some(names), ..self }
    }

    /// Returns the client for a URL.
    pub(crate) fn client(&self, url: &str) -> reqwest::Result<&Client> {
        let is_secure = Url::parse(url).is_ok_and(|url| url.scheme() == "https");
        let cell = if is_secure { &self.secure } else { &self.plain };
        if let Some(client) = cell.get() {
            return Ok(client);
        }
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            // Somebody else may be quicker, and then theirs is as good.
            rustls::crypto::ring::default_provider().install_default().ok();
        }
        let builder = Client::builder();
        let builder = if is_secure { builder } else { builder.tls_certs_only([]) };
        let builder = match &self.names {
            Some(names) => builder.dns_resolver(Arc::clone(names)),
            None => builder,
        };
        let client = builder
            .no_proxy()
            .redirect(Policy::none())
            .connect_timeout(self.connect)
            // A kept connection may be gone when it is used again, and nobody could
            // say then whether what was sent was.
            .pool_max_idle_per_host(0)
            .user_agent(concat!("ostler/", env!("CARGO_PKG_VERSION")))
            .build()?;
        Ok(cell.get_or_init(|| client))
    }
}

/// Reads the start of an answer, of `max` bytes at most, and returns whether
/// there is more. What came before a failure, or before nobody waited any more, is
/// in `start` all the same.
pub(crate) async fn read_start(
    mut response: Response,
    max: usize,
    start: &mut Vec<u8>,
) -> reqwest::Result<bool> {
    while let Some(chunk) = response.chunk().await? {
        start.extend_from_slice(&chunk);
        if start.len() > max {
            start.truncate(max);
            return Ok(true);
        }
    }
    Ok(false)
}
