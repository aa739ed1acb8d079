//! Knows calls of Twilio's: each is signed with the account's token, by its URL and
//! what it says. Pure.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use reqwest::Url;
use sha1::Sha1;

/// Whether a signature is Twilio's, under the URL by which Twilio knows this gateway.
/// Whether a URL has its usual port in it is up to whoever signed it.
pub(crate) fn is_good(
    token: &str,
    url: &Url,
    parameters: &[(String, String)],
    signature: &str,
) -> bool {
    let Ok(signature) = STANDARD.decode(signature.trim()) else { return false };
    let text = sorted(parameters);
    // Both are looked at, so that it takes as long whichever it is.
    let good = written(url).map(|url| {
        let Ok(mut mac) = Hmac::<Sha1>::new_from_slice(token.as_bytes()) else { return false };
        mac.update(url.as_bytes());
        mac.update(text.as_bytes());
        mac.verify_slice(&signature).is_ok()
    });
    !token.is_empty() && good.into_iter().any(|good| good)
}

/// Returns what a call says, in the order in which it is signed. What is said twice
/// counts once.
fn sorted(parameters: &[(String, String)]) -> String {
    let mut sorted: Vec<_> = parameters.iter().collect();
    sorted.sort();
    sorted.dedup();
    sorted.iter().map(|(name, value)| format!("{name}{value}")).collect()
}

/// Returns a URL without its port and with it.
fn written(url: &Url) -> [String; 2] {
    let host = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default().map(|port| format!(":{port}")).unwrap_or_default();
    let path = url.path();
    let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
    let scheme = url.scheme();
    ["", &port].map(|port| format!("{scheme}://{host}{port}{path}{query}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TOKEN: &str = "12345";

    /// The example of Twilio's own documentation.
    fn example() -> (Url, Vec<(String, String)>, &'static str) {
        let url = Url::parse("https://example.com/myapp.php?foo=1&bar=2").unwrap();
        let said = [
            ("CallSid", "CA1234567890ABCDE"),
            ("Caller", "+14158675310"),
            ("Digits", "1234"),
            ("From", "+14158675310"),
            ("To", "+18005551212"),
        ];
        let said = said.map(|(name, value)| (name.to_owned(), value.to_owned()));
        (url, said.to_vec(), "L/OH5YylLD5NRKLltdqwSvS0BnU=")
    }

    #[test]
    fn a_call_is_known_by_its_url_and_what_it_says_in_any_order() {
        let (url, mut said, signature) = example();
        assert!(is_good(TOKEN, &url, &said, signature));
        said.reverse();
        assert!(is_good(TOKEN, &url, &said, signature));
        let mut with_port = url.clone();
        with_port.set_port(Some(443)).unwrap();
        assert!(is_good(TOKEN, &with_port, &said, signature));
    }

    #[test]
    fn a_call_that_is_changed_or_signed_otherwise_is_not_known() {
        let (url, said, signature) = example();
        let mut more = said.clone();
        more.push(("Body".to_owned(), "x".to_owned()));
        assert!(!is_good(TOKEN, &url, &more, signature));
        assert!(!is_good(TOKEN, &url, &said[1..], signature));
        assert!(!is_good("54321", &url, &said, signature));
        assert!(!is_good("", &url, &said, signature));
        let elsewhere = Url::parse("https://example.com/myapp.php?foo=1").unwrap();
        assert!(!is_good(TOKEN, &elsewhere, &said, signature));
        for wrong in ["", "L/OH5YylLD5NRKLltdqwSvS0BnU", "L/OH5Yyl", "ä", "AAAA"] {
            assert!(!is_good(TOKEN, &url, &said, wrong), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn nothing_is_known_by_chance(
            said in proptest::collection::vec((".*", ".*"), 0..4), signature in ".*",
        ) {
            let url = Url::parse("https://example.org/twilio/messages").unwrap();
            prop_assert!(!is_good(TOKEN, &url, &said, &signature));
        }
    }
}
