//! Where a page lies. Whatever a conversation is called, its pages stay within
//! the archive, and no two conversations share one.

use std::path::{Path, PathBuf};

use jiff::{Timestamp, tz::TimeZone};

use crate::{
    channel::{WEBHOOK, place},
    clock::Millis,
    id::ConversationId,
    store::messages::Unarchived,
};

/// How long the readable part of a name may be, in bytes.
const LONGEST: usize = 80;
/// How many digits of an id stand in a name: those at its end are random.
const DIGITS: usize = 12;

/// Returns the day of a time, by UTC.
pub(super) fn day(at: Millis) -> String {
    match Timestamp::from_millisecond(at.0) {
        Ok(at) => at.to_zoned(TimeZone::UTC).date().to_string(),
        Err(_) => "undated".to_owned(),
    }
}

/// Returns the page of a message.
pub(super) fn page(dir: &Path, one: &Unarchived, day: &str) -> PathBuf {
    let folder = folder(&one.channel, &one.name, one.message.conversation);
    dir.join(folder).join(format!("{day}.md"))
}

/// Returns what a conversation is called for people.
pub(super) fn name(channel: &str, address: &str) -> String {
    format!("{channel}:{}", shown(channel, address))
}

/// Returns an address without what is secret in it.
fn shown(channel: &str, address: &str) -> String {
    if channel == WEBHOOK { place(channel, address) } else { address.to_owned() }
}

/// Returns the folder of a conversation within the archive.
fn folder(channel: &str, address: &str, id: ConversationId) -> PathBuf {
    let id = id.to_string();
    let digits = id.get(id.len().saturating_sub(DIGITS)..).unwrap_or(&id);
    let name = safe(&shown(channel, address));
    PathBuf::from(safe(channel)).join(format!("{name}-{digits}"))
}

/// Returns a text as a part of the name of a file: letters and digits, and a dash
/// for whatever else there is.
fn safe(text: &str) -> String {
    let mut safe = String::new();
    for c in text.chars().flat_map(char::to_lowercase) {
        let c = if c.is_alphanumeric() || c == '_' { c } else { '-' };
        if safe.len() + c.len_utf8() > LONGEST {
            break;
        }
        if c != '-' || !(safe.is_empty() || safe.ends_with('-')) {
            safe.push(c);
        }
    }
    let safe = safe.trim_end_matches('-');
    if safe.is_empty() { "unnamed".to_owned() } else { safe.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::path::Component;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_is_kept_as_far_as_it_can_be_read() {
        let id: ConversationId = "cnv_01890a5dac96774bbcceb302099a8057".parse().unwrap();
        for (channel, address, expected) in [
            ("local", "main", "local/main-b302099a8057"),
            ("local", "Größe 2", "local/größe-2-b302099a8057"),
            ("local", "../../etc/passwd", "local/etc-passwd-b302099a8057"),
            ("local", "..", "local/unnamed-b302099a8057"),
            ("..", "/", "unnamed/unnamed-b302099a8057"),
            ("local", "a\0b\n", "local/a-b-b302099a8057"),
        ] {
            assert_eq!(folder(channel, address, id), PathBuf::from(expected), "{address:?}");
        }
        let hook = folder(WEBHOOK, "https://hooks.example:8443/services/secret?key=secret", id);
        assert_eq!(hook, PathBuf::from("webhook/https-hooks-example-8443-b302099a8057"));
        assert!(!name(WEBHOOK, "https://hooks.example/secret").contains("secret"));
    }

    #[test]
    fn conversations_that_differ_in_case_alone_have_folders_of_their_own() {
        let (one, other) = (ConversationId::new(), ConversationId::new());
        assert_ne!(folder("local", "Main", one), folder("local", "main", other));
    }

    #[test]
    fn a_day_is_that_of_utc() {
        assert_eq!(day(Millis(0)), "1970-01-01");
        assert_eq!(day(Millis(1_794_873_599_999)), "2026-11-16");
        assert_eq!(day(Millis(1_794_873_600_000)), "2026-11-17");
        assert_eq!(day(Millis(i64::MAX)), "undated");
    }

    proptest! {
        #[test]
        fn no_name_leads_out_of_the_archive_or_is_too_long(
            channel in any::<String>(),
            address in prop_oneof![any::<String>(), "[./\\\\~]{0,300}", "[A-Za-z]{300}"],
        ) {
            let folder = folder(&channel, &address, ConversationId::new());
            let parts: Vec<_> = folder.components().collect();
            prop_assert_eq!(parts.len(), 2);
            for part in parts {
                let Component::Normal(name) = part else { panic!("{part:?}") };
                let name = name.to_str().unwrap();
                prop_assert!(name.len() <= 100 && !name.contains(['/', '\\', '.', '\0']));
                prop_assert!(!name.starts_with('-'));
            }
        }
    }
}
