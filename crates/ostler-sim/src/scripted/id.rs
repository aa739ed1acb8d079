//! Random identifiers in the forms that the CLIs use.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::Error;
use super::clock;

/// A source of identifiers.
pub(super) struct Ids(File);

impl Ids {
    pub(super) fn open() -> Result<Self, Error> {
        let path = Path::new("/dev/urandom");
        File::open(path).map(Self).map_err(Error::file("open", path))
    }

    /// A random UUID, as Claude names sessions and lines.
    pub(super) fn uuid_v4(&mut self) -> Result<String, Error> {
        Ok(uuid(4, self.random()?))
    }

    /// A UUID that sorts by time, as Codex names threads.
    pub(super) fn uuid_v7(&mut self) -> Result<String, Error> {
        let mut bytes = self.random()?;
        let [_, _, time @ ..] = clock::now_ms().to_be_bytes();
        for (byte, of_time) in bytes.iter_mut().zip(time) {
            *byte = of_time;
        }
        Ok(uuid(7, bytes))
    }

    /// `prefix` and 26 random digits, as OpenCode names everything; Claude's own
    /// are about as long.
    pub(super) fn prefixed(&mut self, prefix: &str) -> Result<String, Error> {
        let digits = hex(&self.random()?);
        Ok(format!("{prefix}{}", digits.get(..26).unwrap_or(&digits)))
    }

    fn random(&mut self) -> Result<[u8; 16], Error> {
        let mut bytes = [0; 16];
        self.0.read_exact(&mut bytes).map_err(Error::io("no random bytes"))?;
        Ok(bytes)
    }
}

/// Whether a word can be a file name as it is: letters, digits and, between
/// them, dashes, dots and underscores.
pub(super) fn is_plain(word: &str) -> bool {
    let ends = [word.bytes().next(), word.bytes().next_back()];
    ends.iter().all(|byte| byte.is_some_and(|byte| byte.is_ascii_alphanumeric()))
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
}

/// Whether a word has the form of a UUID.
pub(super) fn is_uuid(word: &str) -> bool {
    word.len() == 36
        && word.bytes().enumerate().all(|(index, byte)| match index {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

fn uuid(version: u8, mut bytes: [u8; 16]) -> String {
    bytes[6] = version << 4 | bytes[6] & 0x0f;
    bytes[8] = 0x80 | bytes[8] & 0x3f;
    let mut text = hex(&bytes);
    for index in [20, 16, 12, 8] {
        text.insert(index, '-');
    }
    text
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_has_the_form_of_its_version() {
        let mut ids = Ids::open().unwrap();
        for (id, version) in [(ids.uuid_v4().unwrap(), b'4'), (ids.uuid_v7().unwrap(), b'7')] {
            assert!(is_uuid(&id), "{id}");
            assert_eq!(id.as_bytes()[14], version, "{id}");
            assert!(b"89ab".contains(&id.as_bytes()[19]), "{id}");
        }
        assert_ne!(ids.uuid_v4().unwrap(), ids.uuid_v4().unwrap());
    }

    #[test]
    fn words_that_are_no_uuid_are_recognised() {
        assert!(is_uuid("11111111-2222-4333-8444-555555555555"));
        for word in ["", "nonsense", "../../../../../../../../etc/passwd00", "no-such-session"] {
            assert!(!is_uuid(word), "{word}");
        }
    }

    #[test]
    fn only_plain_words_become_file_names() {
        for word in ["a", "ses_1a2B", "gw-own.id_42"] {
            assert!(is_plain(word), "{word}");
        }
        for word in ["", ".", "..", "../x", "a/b", "-a", "a.", "é"] {
            assert!(!is_plain(word), "{word}");
        }
    }
}
