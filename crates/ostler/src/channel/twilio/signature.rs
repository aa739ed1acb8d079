//! Knows calls of Twilio's: each is signed with the account's token, by its URL and
//! what it says. Pure.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha1::Sha1;

/// Whether a signature is Twilio's, under the URL by which Twilio knows this gateway, as it
/// is written. Whether it has its usual port in it is up to whoever signed it, and so is
/// whether its host is in small letters.
pub(crate) fn is_good(
    token: &str,
    url: &str,
    parameters: &[(String, String)],
    signature: &str,
) -> bool {
    let Ok(signature) = STANDARD.decode(signature.trim()) else { return false };
    let text = sorted(parameters);
    // All are looked at, so that it takes as long whichever it is.
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

/// Returns a URL without its port and with it, its host as it is and in small letters.
/// Everything else stays as it was written.
fn written(url: &str) -> [String; 4] {
    let (scheme, rest) = url.split_once("://").unwrap_or(("https", url));
    let (place, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let usual = if scheme.eq_ignore_ascii_case("http") { "80" } else { "443" };
    let named = place.rsplit_once(':').filter(|(_, port)| is_port(port));
    let (host, port) = named.unwrap_or((place, usual));
    let (small, port) = (host.to_ascii_lowercase(), format!(":{port}"));
    [(host, ""), (host, &port), (&small, ""), (&small, &port)]
        .map(|(host, port)| format!("{scheme}://{host}{port}{path}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::{prelude::*, sample::Index};

    use super::*;

    const TOKEN: &str = "12345";

    /// The example of Twilio's own documentation.
    fn example() -> (&'static str, Vec<(String, String)>, &'static str) {
        let said = pairs(&[
            ("CallSid", "CA1234567890ABCDE"),
            ("Caller", "+14158675310"),
            ("Digits", "1234"),
            ("From", "+14158675310"),
            ("To", "+18005551212"),
        ]);
        ("https://example.com/myapp.php?foo=1&bar=2", said, "L/OH5YylLD5NRKLltdqwSvS0BnU=")
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_call_is_known_by_its_url_and_what_it_says_in_any_order() {
        let (url, mut said, signature) = example();
        assert!(is_good(TOKEN, url, &said, signature));
        said.reverse();
        assert!(is_good(TOKEN, url, &said, signature));
        for same in ["https://example.com:443/", "https://Example.com/", "https://EXAMPLE.com:443/"]
        {
            let same = url.replace("https://example.com/", same);
            assert!(is_good(TOKEN, &same, &said, signature), "{same}");
        }
    }

    #[test]
    fn odd_calls_are_known_as_twilios_library_signs_them() {
        const TOKEN: &str = "6f1ed002ab5595859014ebf0951522d9";
        for (url, said, signature) in [
            ("https://example.org/hook", pairs(&[]), "gcuothVuWMbp5V9Q9w+AffUt+QU="),
            (
                "https://example.org/hook",
                pairs(&[("Body", ""), ("From", "+1")]),
                "ojpXxz3sakRe5QVN3XSSZ3jXq4A=",
            ),
            (
                "http://127.0.0.1:8080/a?b=c&d=%20e",
                pairs(&[("Body", "a+b &=%\r\n\"\\\u{0}")]),
                "rEoeYSGQ9d7U6IoCxWO9b048pSI=",
            ),
            (
                "https://example.org:443/",
                pairs(&[("Body", "ein Roß 🐎 e\u{301}\u{2028}")]),
                "XtOvhCoadqoWKyfA7O2rxsy0CNw=",
            ),
            // What is said twice counts once.
            (
                "https://example.org",
                pairs(&[("b", "2"), ("a", "z"), ("a", "y"), ("a", "z")]),
                "qha8mXYlyXx6Y8MLs4MNmRjF2cM=",
            ),
            (
                "https://example.org/#rc=1",
                pairs(&[("Z", "1"), ("a", "2"), ("É", "3"), ("", "4")]),
                "XlWFM0fsaYEAX5dmHV5/2Nj6lh4=",
            ),
            (
                "https://Ostler.Example.org/twilio/messages?a='b'",
                pairs(&[("Body", "x")]),
                "ikKxWF/pLQNmhy4MmE7VydHUn5M=",
            ),
        ] {
            assert!(is_good(TOKEN, url, &said, signature), "{url} {said:?}");
        }
    }

    #[test]
    fn a_url_is_written_with_its_port_and_without_and_stays_as_it_is() {
        let url = "https://Example.org/Ostler?a='b:1'";
        let small = "https://example.org/Ostler?a='b:1'";
        let with = |url: &str| url.replace(".org/", ".org:443/");
        let expected = [url.to_owned(), with(url), small.to_owned(), with(small)];
        assert_eq!(written(url), expected);
        assert_eq!(written(&with(url)), expected);
        assert_eq!(written("http://[::1]:8474/x")[..2], ["http://[::1]/x", "http://[::1]:8474/x"]);
        assert_eq!(written("http://[::1]/x")[..2], ["http://[::1]/x", "http://[::1]:80/x"]);
    }

    #[test]
    fn a_call_that_is_changed_or_signed_otherwise_is_not_known() {
        let (url, said, signature) = example();
        let mut more = said.clone();
        more.push(("Body".to_owned(), "x".to_owned()));
        assert!(!is_good(TOKEN, url, &more, signature));
        assert!(!is_good(TOKEN, url, &said[1..], signature));
        assert!(!is_good("54321", url, &said, signature));
        assert!(!is_good("", url, &said, signature));
        let elsewhere = "https://example.com/myapp.php?foo=1";
        assert!(!is_good(TOKEN, elsewhere, &said, signature));
        for wrong in ["", "L/OH5YylLD5NRKLltdqwSvS0BnU", "L/OH5Yyl", "ä", "AAAA"] {
            assert!(!is_good(TOKEN, url, &said, wrong), "{wrong}");
        }
    }

    /// Signs a call as Twilio does.
    fn signed(token: &str, url: &str, said: &[(String, String)]) -> Vec<u8> {
        let sorted: BTreeSet<_> = said.iter().collect();
        let text: String = sorted.iter().map(|(name, value)| format!("{name}{value}")).collect();
        let mut mac = Hmac::<Sha1>::new_from_slice(token.as_bytes()).unwrap();
        mac.update(format!("{url}{text}").as_bytes());
        mac.finalize().into_bytes().to_vec()
    }

    /// Returns a text with another character at a place, or with one if it had none.
    fn changed(text: &str, at: Index) -> String {
        let mut all: Vec<char> = text.chars().collect();
        match all.len() {
            0 => all.push('x'),
            n_all => {
                let one = &mut all[at.index(n_all)];
                *one = if *one == 'x' { 'y' } else { 'x' };
            }
        }
        all.into_iter().collect()
    }

    proptest! {
        #[test]
        fn a_call_is_known_as_it_was_signed_and_not_with_one_thing_changed(
            token in "[ -~]{1,40}",
            path in "[a-z0-9/?=&%.-]{1,20}",
            said in proptest::collection::vec(("(?s).{0,8}", "(?s).{0,8}"), 1..4),
            at: Index,
            bits in 1..=u8::MAX,
        ) {
            let url = |path: &str| format!("https://example.org/{path}");
            let mac = signed(&token, &url(&path), &said);
            let signature = STANDARD.encode(&mac);
            prop_assert!(is_good(&token, &url(&path), &said, &signature));
            let mut wrong = mac.clone();
            wrong[at.index(mac.len())] ^= bits;
            prop_assert!(!is_good(&token, &url(&path), &said, &STANDARD.encode(wrong)));
            prop_assert!(!is_good(&changed(&token, at), &url(&path), &said, &signature));
            prop_assert!(!is_good(&token, &url(&changed(&path, at)), &said, &signature));
            let which = at.index(said.len());
            for is_name in [true, false] {
                let mut other = said.clone();
                let (name, value) = &mut other[which];
                let part = if is_name { name } else { value };
                *part = changed(part, at);
                prop_assert!(!is_good(&token, &url(&path), &other, &signature), "{:?}", other);
            }
        }
    }
}
