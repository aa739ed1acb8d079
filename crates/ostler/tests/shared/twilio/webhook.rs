//! How a webhook is called: signed, with a limit of time, and again if the address
//! asks for that.

use std::time::{Duration, Instant};

use reqwest::header::CONTENT_TYPE;
use uuid::Uuid;

use super::{Shared, urlencoded::encoded};

/// The longest that Twilio waits for a webhook.
const PATIENCE: Duration = Duration::from_secs(15);

/// What was posted to a webhook, and what came of it.
#[derive(Clone, Debug)]
pub(crate) struct Post {
    pub(crate) purpose: Purpose,
    /// The message that it is of.
    pub(crate) sid: String,
    /// The address without its fragment, as it was signed.
    pub(crate) url: String,
    pub(crate) params: Vec<(String, String)>,
    pub(crate) signature: String,
    /// The same for every attempt.
    pub(crate) idempotency_token: String,
    /// What was answered, or why nothing was.
    pub(crate) answered: Result<Answered, String>,
    pub(crate) started: Instant,
    pub(crate) took: Duration,
}

impl Post {
    /// Returns a parameter that was posted.
    pub(crate) fn param(&self, name: &str) -> Option<&str> {
        self.params.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Returns the error that Twilio would show its owner, if the answer is no TwiML.
    pub(crate) fn alert(&self) -> Option<u32> {
        let Ok(answered) = &self.answered else { return Some(11200) };
        if !(200..300).contains(&answered.status) {
            return Some(11200);
        }
        let content_type = answered.header("content-type").unwrap_or("");
        let kind = content_type.split(';').next().unwrap_or("").trim();
        let is_read = matches!(kind, "text/xml" | "application/xml" | "text/html" | "text/plain");
        (!answered.body.is_empty() && !is_read).then_some(12300)
    }
}

/// Why something is posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Somebody wrote.
    Incoming,
    /// A message that was sent went on its way.
    Status,
    /// Something was said in a Conversation.
    Conversation,
}

/// What a webhook answered.
#[derive(Clone, Debug)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Answered {
    /// Returns a header by its name in small letters.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// What the fragment of an address overrides. Without one, nothing is tried again.
#[derive(Debug, PartialEq, Eq)]
struct Overrides {
    patience: Duration,
    retries: u32,
    policy: Vec<String>,
}

impl Overrides {
    fn of(fragment: &str) -> Self {
        let pairs = fragment.split('&').filter_map(|pair| pair.split_once('='));
        let mut overrides = Self { patience: PATIENCE, retries: 0, policy: vec!["ct".to_owned()] };
        for (key, value) in pairs {
            match (key, value.parse::<u32>()) {
                ("rt", Ok(millis)) => {
                    overrides.patience = Duration::from_millis(millis.clamp(100, 15_000).into());
                }
                ("rc", Ok(retries)) => overrides.retries = retries.min(5),
                ("rp", _) => overrides.policy = value.split(',').map(ToOwned::to_owned).collect(),
                _ => {}
            }
        }
        overrides
    }

    /// Says whether what came of an attempt is a reason for another.
    fn is_again(&self, answered: &Result<Answered, String>) -> bool {
        let reason = match answered {
            Ok(answered) => match answered.status {
                400..500 => "4xx",
                500..600 => "5xx",
                _ => return false,
            },
            Err(error) if error == TOO_LATE => "rt",
            Err(_) => "ct",
        };
        self.policy.iter().any(|one| one == reason || one == "all")
    }
}

const TOO_LATE: &str = "there was no answer in time";

/// Posts to a webhook until it is answered or given up, and keeps what came of it.
pub(super) async fn post(
    shared: &Shared,
    purpose: Purpose,
    sid: &str,
    address: &str,
    params: &[(String, String)],
) {
    let (url, fragment) = address.split_once('#').unwrap_or((address, ""));
    let overrides = Overrides::of(fragment);
    let token = shared.lock().token.clone();
    let signature = shared.signer.sign(url, params, &token);
    let idempotency_token = Uuid::new_v4().to_string();
    for _ in 0..=overrides.retries {
        let started = Instant::now();
        let request = shared
            .client
            .post(url)
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded; charset=utf-8")
            .header("User-Agent", "TwilioProxy/1.1")
            .header("X-Twilio-Signature", &signature)
            .header("I-Twilio-Idempotency-Token", &idempotency_token)
            .body(encoded(params));
        let attempt = tokio::time::timeout(overrides.patience, ask(request)).await;
        let answered = attempt.unwrap_or_else(|_| Err(TOO_LATE.to_owned()));
        let again = overrides.is_again(&answered);
        let post = Post {
            purpose,
            sid: sid.to_owned(),
            url: url.to_owned(),
            params: params.to_vec(),
            signature: signature.clone(),
            idempotency_token: idempotency_token.clone(),
            answered,
            started,
            took: started.elapsed(),
        };
        shared.change(|world| world.posts.push(post));
        if !again {
            break;
        }
    }
}

async fn ask(request: reqwest::RequestBuilder) -> Result<Answered, String> {
    let response = request.send().await.map_err(|error| format!("{error:?}"))?;
    let status = response.status().as_u16();
    let text = |value: &reqwest::header::HeaderValue| {
        String::from_utf8_lossy(value.as_bytes()).into_owned()
    };
    let headers = response.headers().iter();
    let headers = headers.map(|(name, value)| (name.to_string(), text(value))).collect();
    let body = response.text().await.map_err(|error| format!("{error:?}"))?;
    Ok(Answered { status, headers, body })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fragment_of_an_address_says_how_often_it_is_tried() {
        let overrides = Overrides::of("rc=2&rp=rt,5xx&rt=500&x=y");
        let patience = Duration::from_millis(500);
        let policy = vec!["rt".to_owned(), "5xx".to_owned()];
        assert_eq!(overrides, Overrides { patience, retries: 2, policy });
        let answered = |status| Ok(Answered { status, headers: Vec::new(), body: String::new() });
        assert!(overrides.is_again(&answered(503)) && !overrides.is_again(&answered(404)));
        assert!(overrides.is_again(&Err(TOO_LATE.to_owned())));
        assert!(!overrides.is_again(&Err("refused".to_owned())));
        assert_eq!(Overrides::of("").retries, 0);
    }
}
