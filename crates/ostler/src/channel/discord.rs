//! Discord: what comes from there in words of our own (`heard`), what is done there
//! (`api`), the connection (`shard`), which commands there are (`slash`), what the bot
//! may do where (`rights`), and whether it all works (`check`). `desk` hands what
//! happens to the intake that all chats share, and `bot` is all of it for as long as
//! a gateway runs. Who may talk to the bot and what it answers is decided elsewhere.

pub(crate) mod api;
pub(crate) mod bot;
pub(crate) mod check;
mod desk;
pub(crate) mod heard;
mod names;
mod rights;
pub(crate) mod shard;
pub(crate) mod slash;
mod snowflake;
#[cfg(test)]
mod testing;

use rustls::RootCertStore;
use thiserror::Error;

/// Why no connection to Discord can be encrypted on this machine.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum CertificateError {
    #[error("this machine has no certificates to know Discord by; install ca-certificates")]
    None,
    #[error(
        "{0} of this machine's certificates cannot be read, and no connection can be made \
         with it; repair the certificates, or name good ones in SSL_CERT_FILE"
    )]
    Broken(usize),
}

/// Makes sure that connections can be encrypted. What makes them panics where they
/// cannot, at the first certificate that it does not understand.
fn prepare_encryption() -> Result<(), CertificateError> {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Somebody else may be quicker, and then theirs is as good.
        rustls::crypto::ring::default_provider().install_default().ok();
    }
    let certificates = rustls_native_certs::load_native_certs().certs;
    if certificates.is_empty() {
        return Err(CertificateError::None);
    }
    let mut store = RootCertStore::empty();
    match store.add_parsable_certificates(certificates) {
        (_, 0) => Ok(()),
        (_, broken) => Err(CertificateError::Broken(broken)),
    }
}
