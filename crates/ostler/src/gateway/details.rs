//! How much a channel may say of a message beside its text, and of what kind it
//! must be. Checked when the message is accepted, whoever brings it.

use reqwest::Url;

use super::inbound::{Details, Group, Line, Media};

/// The longest name, and the longest path or URL.
const NAME: usize = 512;
const PLACE: usize = 4096;
/// The longest transcript.
const TRANSCRIPT: usize = 64 * 1024;
/// How many people may be in a group, and how long their names may be together.
const MEMBERS: usize = 1024;
const MEMBER_BYTES: usize = 32 * 1024;
/// How much of what was said before comes with a message.
const BEFORE: usize = 50;
const BEFORE_BYTES: usize = 512 * 1024;
/// How many media a message may have.
const MEDIA: usize = 32;

/// Says what is wrong, if something is.
pub(crate) fn check(details: &Details) -> Result<(), String> {
    let Details { sender_name, sender_number, to, group, media, transcript } = details;
    name("sender_name", sender_name.as_deref())?;
    name("to", to.as_deref())?;
    if sender_number.as_deref().is_some_and(|number| !is_number(number)) {
        return Err("`sender_number` must be a plus sign and 2 to 15 digits".to_owned());
    }
    if let Some(Group { subject, members, before }) = group {
        text("group.subject", subject, NAME)?;
        for member in members {
            name("group.members", Some(member))?;
        }
        let bytes: usize = members.iter().map(String::len).sum();
        if members.len() > MEMBERS || bytes > MEMBER_BYTES {
            return Err(format!(
                "`group.members` must be at most {MEMBERS}, with {MEMBER_BYTES} bytes together"
            ));
        }
        for Line { name: who, .. } in before {
            name("group.before.name", Some(who))?;
        }
        let bytes: usize = before.iter().map(|line| line.text.len()).sum();
        if before.len() > BEFORE || bytes > BEFORE_BYTES {
            return Err(format!(
                "`group.before` must be at most {BEFORE}, with {BEFORE_BYTES} bytes together"
            ));
        }
    }
    if media.len() > MEDIA {
        return Err(format!("`media` must be at most {MEDIA}"));
    }
    for Media { path, url, media_type, trouble: _, unheard: _ } in media {
        name("media.type", media_type.as_deref())?;
        if let Some(path) = path {
            text("media.path", path, PLACE)?;
            if !path.starts_with('/') {
                return Err("`media.path` must be an absolute path".to_owned());
            }
        }
        if let Some(url) = url {
            text("media.url", url, PLACE)?;
            if !Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https")) {
                return Err("`media.url` must be an http or https URL".to_owned());
            }
        }
        if path.is_none() && url.is_none() && media_type.is_none() {
            return Err("`media` must have a `path`, a `url` or a `type` each".to_owned());
        }
    }
    if transcript.as_ref().is_some_and(|text| text.len() > TRANSCRIPT) {
        return Err(format!("`transcript` must have at most {TRANSCRIPT} bytes"));
    }
    Ok(())
}

/// Whether something was said beside the text, so that the text may be empty.
pub(crate) fn has_content(details: &Details) -> bool {
    let is_spoken = details.transcript.as_ref().is_some_and(|text| !text.trim().is_empty());
    is_spoken || !details.media.is_empty()
}

fn name(of: &str, value: Option<&str>) -> Result<(), String> {
    match value {
        Some("") => Err(format!("`{of}` must not be empty")),
        Some(value) => text(of, value, NAME),
        None => Ok(()),
    }
}

fn text(of: &str, value: &str, longest: usize) -> Result<(), String> {
    if value.len() > longest || value.chars().any(char::is_control) {
        return Err(format!("`{of}` must have at most {longest} bytes and no control characters"));
    }
    Ok(())
}

/// Whether a text is a telephone number as everybody in the world would dial it.
fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('+').unwrap_or_default();
    (2..=15).contains(&digits.len())
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && !digits.starts_with('0')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: serde_json::Value) -> Result<(), String> {
        check(&serde_json::from_value(value).unwrap())
    }

    #[test]
    fn what_a_channel_may_say_is_taken() {
        let all = serde_json::json!({
            "sender_name": "Ann 🐎", "sender_number": "+491701234567", "to": "+4930123",
            "group": { "subject": "", "members": ["Ann", "Bob"] },
            "media": [{ "path": "/m/1.png", "type": "image/png" }, { "url": "https://a/b" }],
            "transcript": "well\nyes",
        });
        assert_eq!(of(all), Ok(()));
        assert_eq!(check(&Details::default()), Ok(()));
    }

    #[test]
    fn what_is_too_much_or_of_another_kind_is_refused_by_its_name() {
        let long = "x".repeat(513);
        let many = vec!["somebody with a rather long name here"; 1000];
        for (value, says) in [
            (serde_json::json!({ "sender_name": "" }), "`sender_name`"),
            (serde_json::json!({ "sender_name": "a\nb" }), "`sender_name`"),
            (serde_json::json!({ "to": long }), "`to`"),
            (serde_json::json!({ "sender_number": "0170" }), "`sender_number`"),
            (serde_json::json!({ "sender_number": "+1234567890123456" }), "`sender_number`"),
            (serde_json::json!({ "group": { "subject": long } }), "`group.subject`"),
            (serde_json::json!({ "group": { "members": [""] } }), "`group.members`"),
            (serde_json::json!({ "group": { "members": many } }), "bytes together"),
            (serde_json::json!({ "group": { "members": vec!["a"; 1025] } }), "at most 1024"),
            (serde_json::json!({ "media": vec![serde_json::json!({ "path": "/a" }); 33] }), "32"),
            (serde_json::json!({ "media": [{}] }), "`media`"),
            (serde_json::json!({ "media": [{ "path": "a/b" }] }), "absolute"),
            (serde_json::json!({ "media": [{ "path": "/a\u{1b}" }] }), "`media.path`"),
            (serde_json::json!({ "media": [{ "url": "file:///etc/passwd" }] }), "`media.url`"),
            (serde_json::json!({ "media": [{ "type": "a\rb" }] }), "`media.type`"),
            (serde_json::json!({ "transcript": "x".repeat(64 * 1024 + 1) }), "`transcript`"),
        ] {
            let said = of(value.clone()).unwrap_err();
            assert!(said.contains(says), "{value}: {said}");
        }
    }
}
