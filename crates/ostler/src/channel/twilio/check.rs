//! Whether it all works: the login, the numbers, the groups, whether Twilio can reach
//! this gateway, and the clock. For `ostler doctor`; nothing is changed and nobody
//! written to.

#[cfg(test)]
mod tests;
mod told;

use std::time::Duration;

use reqwest::Method;

use super::{
    api::{Account, Api, Hook, Login, Number, Sender},
    code::Trouble,
    kind::Kind,
    webhook::FORGED,
};
use crate::{
    api::NO_FILE,
    channel::finding::{Finding, bad, clock, good},
    clients::{self, Clients},
    config::{Receive, Secret, Twilio},
};

/// How long it may take to reach this gateway by way of the public address.
const REACH: Duration = Duration::from_secs(10);
/// How much is read of what answers there.
const START: usize = 1024;
/// The number that everybody's sandbox has.
const SANDBOX: &str = "+14155238886";
/// What to do about a number that WhatsApp does not know.
const SENDERS: &str =
    "register it under Messaging → Senders → WhatsApp senders, or use the sandbox";

/// Looks at everything that can be looked at, with what calls are made with and with
/// the account's token.
pub(crate) async fn check(twilio: &Twilio, login: Login, token: Option<Secret>) -> Vec<Finding> {
    let is_key = login.user != login.account;
    let api = Api::new(login, twilio.api_url.as_deref());
    let mut findings = Vec::new();
    if is_key {
        if let Some(password) = token {
            // The key may not look at the account, and Twilio's calls are known by the token.
            let account = api.account_sid().to_owned();
            let login = Login { user: account.clone(), account, password };
            findings.push(account_of(Api::new(login, twilio.api_url.as_deref()).account().await));
        }
        findings.push(key(api.may_look().await));
    } else {
        findings.push(account_of(api.account().await));
    }
    if findings.iter().any(|finding| !finding.is_ok) {
        // Nothing else would be told more than that.
        return findings;
    }
    let called = called(twilio);
    let messages = called.as_deref().map(|at| format!("{at}/messages"));
    if let Some(number) = twilio.whatsapp_number() {
        findings.push(match number {
            SANDBOX => good("WhatsApp answers from Twilio's sandbox"),
            number => whatsapp(number, messages.as_deref(), api.senders().await),
        });
    }
    if let Some(service) = twilio.messaging_service.as_deref() {
        findings.push(told::service(service, messages.as_deref(), api.service(service).await));
    }
    if let Some(number) = twilio.sms_from.as_deref() {
        // A service has a URL of its own for what comes to its numbers.
        let messages = messages.as_deref().filter(|_| twilio.messaging_service.is_none());
        findings.push(sms(number, messages, api.number(number).await));
    }
    for sid in &twilio.groups {
        findings.extend(group(sid, api.may_look_at(sid).await));
    }
    if let Some(called) = called.filter(|_| !twilio.groups.is_empty()) {
        findings.push(told::groups(&format!("{called}/groups"), api.group_hook().await));
    }
    findings.extend(reach(twilio).await);
    findings.extend(api.clock_skew().map(|skew| clock(skew, "Twilio")));
    findings
}

/// Returns below which URL Twilio has to call this gateway; nothing if it need not.
fn called(twilio: &Twilio) -> Option<String> {
    let is_called = twilio.receives() == Receive::Webhook;
    let public = twilio.public_url.as_deref().filter(|_| is_called)?;
    Some(format!("{}/twilio", public.trim_end_matches('/')))
}

fn account_of(account: Result<Account, Trouble>) -> Finding {
    match account {
        Ok(Account { status, friendly_name }) if status == "active" => {
            good(format!("Twilio takes the token; the account is {friendly_name:?}"))
        }
        Ok(Account { status, .. }) => {
            bad(format!("the account is {status}"), Some("look at the account in Twilio's console"))
        }
        Err(trouble) => {
            let fix = if trouble.is_login_refused() || trouble.is_missing() {
                "copy Account SID and Auth Token from Twilio's console to twilio.account_sid and \
                 twilio.auth_token (TWILIO_ACCOUNT_SID, TWILIO_AUTH_TOKEN)"
            } else {
                "check the network, and twilio.api_url if it is set"
            };
            bad(format!("the account could not be looked at: {trouble}"), Some(fix))
        }
    }
}

/// Says whether a key is taken. One that may not look at the account may look at its
/// messages.
fn key(looked: Result<(), Trouble>) -> Finding {
    match looked {
        Ok(()) => good("Twilio takes the API key"),
        Err(trouble) if trouble.is_login_refused() => bad(
            format!("the API key is refused: {trouble}"),
            Some(
                "make a standard key in Twilio's console, under API keys & tokens, and set \
                 twilio.api_key and twilio.api_secret (TWILIO_API_KEY, TWILIO_API_SECRET)",
            ),
        ),
        Err(trouble) => bad(
            format!("the API key could not be tried: {trouble}"),
            Some("check twilio.account_sid, the network, and twilio.api_url if it is set"),
        ),
    }
}

fn whatsapp(number: &str, called: Option<&str>, senders: Result<Vec<Sender>, Trouble>) -> Finding {
    let id = Kind::WhatsApp.address(number);
    let senders = match senders {
        Ok(senders) => senders,
        Err(trouble) => {
            return bad(
                format!("the numbers with WhatsApp could not be looked at: {trouble}"),
                None,
            );
        }
    };
    let Some(sender) = senders.into_iter().find(|sender| sender.sender_id == id) else {
        return bad(format!("{number} has no WhatsApp"), Some(SENDERS));
    };
    let status = sender.status.unwrap_or_default();
    if !status.starts_with("ONLINE") {
        return bad(
            format!("{number} is {status} for WhatsApp"),
            Some("look at it under Messaging → Senders → WhatsApp senders"),
        );
    }
    let hook = sender.webhook.map(|Hook { callback_url, callback_method }| {
        (callback_url.unwrap_or_default(), callback_method.unwrap_or_default())
    });
    told::number(number, called, hook)
        .unwrap_or_else(|| good(format!("WhatsApp answers from {number}")))
}

fn sms(number: &str, called: Option<&str>, found: Result<Option<Number>, Trouble>) -> Finding {
    let found = match found {
        Ok(Some(found)) => found,
        Ok(None) => {
            return bad(
                format!("{number} is not a number of this account"),
                Some("set twilio.sms_from to one under Phone Numbers → Manage → Active numbers"),
            );
        }
        Err(trouble) => return bad(format!("{number} could not be looked at: {trouble}"), None),
    };
    let hook = (found.sms_url.unwrap_or_default(), found.sms_method.unwrap_or_default());
    told::number(number, called, Some(hook))
        .unwrap_or_else(|| good(format!("SMS answers from {number}")))
}

/// Says what is wrong with a group.
fn group(sid: &str, found: Result<(), Trouble>) -> Option<Finding> {
    match found {
        Ok(()) => None,
        Err(trouble) if trouble.is_missing() => Some(bad(
            format!("there is no group {sid}"),
            Some("set twilio.groups to those under Conversations → Manage → Conversations"),
        )),
        Err(trouble) => {
            Some(bad(format!("the group {sid} could not be looked at: {trouble}"), None))
        }
    }
}

/// Looks whether this gateway can be reached where Twilio looks for it. Without a
/// signature it refuses everybody in words of its own, and says of a link that there is
/// nothing, and that is how it is known.
async fn reach(twilio: &Twilio) -> Vec<Finding> {
    let mut findings = vec![match called(twilio) {
        Some(called) => visit(Method::POST, &format!("{called}/messages"), 403, FORGED).await,
        None => good("Twilio is asked for messages, and need not reach this gateway"),
    }];
    if let Some(public) =
        twilio.public_url.as_deref().filter(|_| findings.iter().all(|it| it.is_ok))
    {
        let link = format!("{}/media/x", public.trim_end_matches('/'));
        let files = visit(Method::GET, &link, 404, NO_FILE).await;
        findings.extend(Some(files).filter(|it| !it.is_ok));
    }
    findings
}

/// Looks whether it is this gateway that answers at a URL, by its status and its words.
async fn visit(method: Method, url: &str, own: u16, words: &str) -> Finding {
    let clients = Clients::new(REACH);
    let called = async {
        let response = clients.client(url)?.request(method, url).send().await?;
        let status = response.status();
        let mut start = Vec::new();
        clients::read_start(response, START, &mut start).await.ok();
        Ok::<_, reqwest::Error>((status, start))
    };
    let fix = "run `ostler serve`, and let the proxy or tunnel pass /twilio/ and /media/ on to it";
    match tokio::time::timeout(REACH, called).await {
        Ok(Ok((status, said)))
            if status.as_u16() == own && String::from_utf8_lossy(&said).contains(words) =>
        {
            good(format!("a gateway answers at {url}"))
        }
        Ok(Ok((status, _))) => {
            bad(format!("{url} answered with {status}, which is not this gateway"), Some(fix))
        }
        Ok(Err(error)) => {
            bad(format!("{url} could not be reached: {}", error.without_url()), Some(fix))
        }
        Err(_) => bad(format!("{url} did not answer in time"), Some(fix)),
    }
}
