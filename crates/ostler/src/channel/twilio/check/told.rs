//! Whether Twilio tells this gateway of what is said: by the URLs that are set there
//! for numbers, services and groups. Pure.

use crate::channel::{
    finding::{Finding, bad, good},
    twilio::{
        api::{GroupHook, Service},
        code::Trouble,
        heard::ADDED,
    },
};

/// A URL that is set, and the method with which it is called, if Twilio says.
type Hook = (String, String);

/// Says what is wrong with where Twilio tells of messages to a number.
pub(super) fn number(number: &str, wanted: Option<&str>, hook: Option<Hook>) -> Option<Finding> {
    let fix = "set that URL in Twilio's console where the number is, for when a message comes \
               in, with HTTP POST";
    wrong(&format!("to {number}"), wanted?, hook?, fix)
}

/// Says whether Twilio tells of messages to the numbers of a service.
pub(super) fn service(sid: &str, wanted: Option<&str>, found: Result<Service, Trouble>) -> Finding {
    let found = match found {
        Ok(found) => found,
        Err(trouble) if trouble.is_missing() => {
            return bad(
                format!("there is no messaging service {sid}"),
                Some("set twilio.messaging_service to one under Messaging → Services"),
            );
        }
        Err(trouble) => {
            let text = format!("the messaging service {sid} could not be looked at: {trouble}");
            return bad(text, None);
        }
    };
    let chooses = good(format!("the messaging service {sid} chooses numbers for SMS"));
    let Some(wanted) = wanted else { return chooses };
    if found.use_inbound_webhook_on_number == Some(true) {
        return bad(
            format!("the URL of each number of {sid} says where its messages are told"),
            Some("choose \"Send a webhook\" under Messaging → Services, the service, Integration"),
        );
    }
    let hook =
        (found.inbound_request_url.unwrap_or_default(), found.inbound_method.unwrap_or_default());
    let fix = "set that URL under Messaging → Services, the service, Integration, as the request \
               URL of \"Send a webhook\", with HTTP POST";
    wrong(&format!("to the numbers of {sid}"), wanted, hook, fix).unwrap_or(chooses)
}

/// Says whether Twilio tells of what is said in groups.
pub(super) fn groups(wanted: &str, found: Result<GroupHook, Trouble>) -> Finding {
    let found = match found {
        Ok(found) => found,
        Err(trouble) => {
            let text = format!("where messages in groups are told could not be seen: {trouble}");
            return bad(text, None);
        }
    };
    let fix = "set that URL under Conversations → Global webhooks, as Post-Event URL, with HTTP \
               POST and the event onMessageAdded";
    let hook = (found.post_webhook_url.unwrap_or_default(), found.method.unwrap_or_default());
    if let Some(finding) = wrong("in groups", wanted, hook, fix) {
        return finding;
    }
    if !found.filters.unwrap_or_default().iter().any(|event| event == ADDED) {
        return bad(format!("{wanted} is not told of the event {ADDED}"), Some(fix));
    }
    good("Twilio tells of what is said in groups")
}

/// Says what is wrong with where some messages are told.
fn wrong(which: &str, wanted: &str, (url, method): Hook, fix: &'static str) -> Option<Finding> {
    // What is after it says how Twilio calls, and is not called.
    let url = url.split_once('#').map_or(url.as_str(), |(url, _)| url);
    if url != wanted {
        let now = if url.is_empty() { "nobody" } else { url };
        let text = format!("messages {which} are told to {now}, not to {wanted}");
        return Some(bad(text, Some(fix)));
    }
    let is_post = method.is_empty() || method.eq_ignore_ascii_case("POST");
    (!is_post)
        .then(|| bad(format!("{wanted} is called with {method} for messages {which}"), Some(fix)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBER: &str = "+15017122661";
    const HERE: &str = "https://x/twilio/messages";

    fn hook(url: &str, method: &str) -> Option<Hook> {
        Some((url.to_owned(), method.to_owned()))
    }

    #[test]
    fn a_number_has_to_be_told_here_by_post() {
        assert_eq!(number(NUMBER, Some(HERE), hook(HERE, "POST")), None);
        // How often Twilio tries is set behind the URL.
        assert_eq!(number(NUMBER, Some(HERE), hook(&format!("{HERE}#rc=3"), "")), None);
        assert_eq!(number(NUMBER, None, hook("https://demo", "POST")), None);
        assert_eq!(number(NUMBER, Some(HERE), None), None);
        let elsewhere = number(NUMBER, Some(HERE), hook("https://demo", "POST")).unwrap();
        assert!(elsewhere.text.contains("are told to https://demo, not to https://x/"));
        let nobody = number(NUMBER, Some(HERE), hook("", "")).unwrap();
        assert!(nobody.text.contains("told to nobody"));
        let read = number(NUMBER, Some(HERE), hook(HERE, "GET")).unwrap();
        assert!(read.text.contains("called with GET"));
    }

    #[test]
    fn a_service_has_to_tell_here_for_all_its_numbers() {
        let of = |url: &str, each: Option<bool>| Service {
            inbound_request_url: Some(url.to_owned()),
            inbound_method: Some("POST".to_owned()),
            use_inbound_webhook_on_number: each,
        };
        let told = |found: Service| service("MG1", Some(HERE), Ok(found));
        assert!(told(of(HERE, Some(false))).is_ok && told(of(HERE, None)).is_ok);
        assert!(told(of("https://demo", None)).text.contains("the numbers of MG1 are told to"));
        assert!(told(of(HERE, Some(true))).fix.unwrap().contains("Send a webhook"));
        assert!(service("MG1", None, Ok(of("https://demo", None))).is_ok);
        let gone = Trouble::Refused { status: 404, code: 20404, after: None };
        assert!(service("MG1", None, Err(gone)).text.contains("there is no messaging service"));
    }

    #[test]
    fn groups_have_to_be_told_of_messages() {
        let of = |url: &str, filters: &[&str]| GroupHook {
            post_webhook_url: Some(url.to_owned()),
            method: Some("POST".to_owned()),
            filters: Some(filters.iter().map(ToString::to_string).collect()),
        };
        let here = "https://x/twilio/groups";
        assert!(groups(here, Ok(of(here, &["onMessageUpdated", ADDED]))).is_ok);
        assert!(groups(here, Ok(of(here, &[]))).text.contains(ADDED));
        assert!(groups(here, Ok(of("", &[ADDED]))).text.contains("told to nobody"));
        assert!(!groups(here, Err(Trouble::Unreachable)).is_ok);
    }
}
