//! Signatures of webhooks, made by Twilio's own library where that is installed.
//!
//! `OSTLER_TEST_TWILIO` names a Python that has the library. Without it the double
//! signs by itself, which a test holds against the library.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{OsStr, OsString},
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, Command, Stdio},
    sync::{
        Mutex, PoisonError,
        mpsc::{Receiver, sync_channel},
    },
    time::Duration,
};

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::json;
use sha1::Sha1;

/// The longest that a signature may take, the start of Python included.
const PATIENCE: Duration = Duration::from_secs(60);

/// Who signs.
pub(super) struct Signer {
    python: Option<OsString>,
    /// Started when it is first needed.
    library: Mutex<Option<Library>>,
}

impl Signer {
    pub(super) fn from_environment() -> Self {
        let python = std::env::var_os("OSTLER_TEST_TWILIO");
        if python.is_none() {
            let is_ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
            assert!(!is_ci, "OSTLER_TEST_TWILIO does not say where Twilio's library is");
            eprintln!("OSTLER_TEST_TWILIO is not set: the double of Twilio signs by itself");
        }
        Self { python, library: Mutex::new(None) }
    }

    /// Returns whether Twilio's own library signs.
    pub(super) fn is_library(&self) -> bool {
        self.python.is_some()
    }

    pub(super) fn sign(&self, url: &str, params: &[(String, String)], token: &str) -> String {
        let Some(python) = &self.python else { return signature(url, params, token) };
        let mut library = self.library.lock().unwrap_or_else(PoisonError::into_inner);
        library.get_or_insert_with(|| Library::start(python)).sign(url, params, token)
    }
}

/// A process with Twilio's library, which ends with its input.
struct Library {
    child: Child,
    signatures: Receiver<String>,
}

impl Library {
    fn start(python: &OsStr) -> Self {
        let mut child = Command::new(python)
            .args(["-c", include_str!("sign.py")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (sender, signatures) = sync_channel(1);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Self { child, signatures }
    }

    fn sign(&mut self, url: &str, params: &[(String, String)], token: &str) -> String {
        let request = json!({ "url": url, "params": params, "token": token });
        let mut input = self.child.stdin.as_ref().unwrap();
        input.write_all(format!("{request}\n").as_bytes()).unwrap();
        self.signatures.recv_timeout(PATIENCE).expect("Twilio's library signs")
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Signs a request as Twilio documents it: the address and the sorted parameters, with
/// HMAC-SHA1 by the account's token.
pub(crate) fn signature(url: &str, params: &[(String, String)], token: &str) -> String {
    let mut sorted: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (name, value) in params {
        sorted.entry(name).or_default().insert(value);
    }
    let mut mac = Hmac::<Sha1>::new_from_slice(token.as_bytes()).unwrap();
    mac.update(url.as_bytes());
    for (name, values) in sorted {
        for value in values {
            mac.update(name.as_bytes());
            mac.update(value.as_bytes());
        }
    }
    base64(&mac.finalize().into_bytes())
}

/// Writes bytes in base64, with padding.
pub(super) fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let sextet = usize::try_from(bits >> (18 - 6 * place) & 63).unwrap();
            let is_there = place <= u32::try_from(three.len()).unwrap();
            text.push(if is_there { char::from(ALPHABET[sextet]) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn the_double_signs_as_the_documentation_does() {
        // The example of https://www.twilio.com/docs/usage/security.
        let params = pairs(&[
            ("CallSid", "CA1234567890ABCDE"),
            ("Caller", "+14158675309"),
            ("Digits", "1234"),
            ("From", "+14158675309"),
            ("To", "+18005551212"),
        ]);
        let url = "https://mycompany.com/myapp.php?foo=1&bar=2";
        assert_eq!(signature(url, &params, "12345"), "RSOYDt4T1cUTdK1PDd93/VVr8B8=");
    }

    #[test]
    fn the_double_signs_odd_requests_as_twilios_library_does() {
        let signer = Signer::from_environment();
        if !signer.is_library() {
            eprintln!("skipped: OSTLER_TEST_TWILIO does not say where Twilio's library is");
            return;
        }
        let requests = [
            ("https://example.org/hook", pairs(&[])),
            ("https://example.org/hook", pairs(&[("Body", ""), ("From", "+1")])),
            ("http://127.0.0.1:8080/a?b=c&d=%20e", pairs(&[("Body", "a+b &=%\r\n\"\\\u{0}")])),
            ("https://example.org:443/", pairs(&[("Body", "ein Roß 🐎 e\u{301}\u{2028}")])),
            ("https://example.org", pairs(&[("b", "2"), ("a", "z"), ("a", "y"), ("a", "z")])),
            ("https://example.org/#rc=1", pairs(&[("Z", "1"), ("a", "2"), ("É", "3"), ("", "4")])),
        ];
        for (url, params) in requests {
            let ours = signature(url, &params, "6f1ed002ab5595859014ebf0951522d9");
            let theirs = signer.sign(url, &params, "6f1ed002ab5595859014ebf0951522d9");
            assert_eq!(ours, theirs, "{url} {params:?}");
        }
    }
}
