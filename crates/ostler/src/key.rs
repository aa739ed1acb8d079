//! Keys: the words by which callers of the HTTP service show who they are, and
//! what each may do. The word itself is seen once, when it is made; kept is only
//! its hash, which leads to nothing.

pub(crate) mod wanted;

use std::{fmt, str::FromStr};

use rustls::crypto::SecureRandom;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use thiserror::Error;

/// What every key begins with.
const START: &str = "ost_";
/// How many random characters follow. Each has more than five bits.
const LENGTH: usize = 32;
/// How much of a key is shown: enough to know it by.
const SHOWN: usize = START.len() + 8;
const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// What a key may be used for. The words are stored, and part of the contract.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema,
)]
// An object with one of the words as its field would be taken for the word.
#[serde(try_from = "String")]
pub(crate) enum Scope {
    #[serde(rename = "projects:read")]
    ProjectsRead,
    #[serde(rename = "projects:execute")]
    ProjectsExecute,
    #[serde(rename = "keys:read")]
    KeysRead,
    #[serde(rename = "keys:write")]
    KeysWrite,
    #[serde(rename = "audit:read")]
    AuditRead,
    /// Everything.
    #[serde(rename = "admin")]
    Admin,
}

impl Scope {
    pub(crate) const ALL: [Self; 6] = [
        Self::ProjectsRead,
        Self::ProjectsExecute,
        Self::KeysRead,
        Self::KeysWrite,
        Self::AuditRead,
        Self::Admin,
    ];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::ProjectsRead => "projects:read",
            Self::ProjectsExecute => "projects:execute",
            Self::KeysRead => "keys:read",
            Self::KeysWrite => "keys:write",
            Self::AuditRead => "audit:read",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A text that is no scope.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0:?} is none of {all}", all = Scope::ALL.map(Scope::as_str).join(", "))]
pub(crate) struct NoScope(String);

impl FromStr for Scope {
    type Err = NoScope;

    fn from_str(text: &str) -> Result<Self, NoScope> {
        let found = Self::ALL.into_iter().find(|scope| scope.as_str() == text);
        found.ok_or_else(|| NoScope(text.to_owned()))
    }
}

impl TryFrom<String> for Scope {
    type Error = NoScope;

    fn try_from(text: String) -> Result<Self, NoScope> {
        text.parse()
    }
}

/// A key as its owner has it. Whoever prints it means to: [`KeyText::reveal`].
#[derive(Clone)]
pub(crate) struct KeyText(String);

impl fmt::Debug for KeyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyText({}…)", self.prefix())
    }
}

/// No random numbers can be had.
#[derive(Clone, Copy, Debug, Error)]
#[error("the system gives no random numbers")]
pub(crate) struct NoRandomness;

impl KeyText {
    /// Makes a new one, which nobody could guess.
    pub(crate) fn make() -> Result<Self, NoRandomness> {
        let provider = rustls::crypto::ring::default_provider();
        let text = random_text(provider.secure_random, LENGTH)?;
        Ok(Self(format!("{START}{text}")))
    }

    /// Reads what a caller showed. Nothing, if it cannot be a key.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(START)?;
        let is_one = rest.len() == LENGTH && rest.bytes().all(|byte| byte.is_ascii_alphanumeric());
        is_one.then(|| Self(text.to_owned()))
    }

    /// Returns it, to be shown to its owner.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// Returns the start by which it is known.
    pub(crate) fn prefix(&self) -> &str {
        self.0.get(..SHOWN).unwrap_or_default()
    }

    /// Returns what is kept of it.
    pub(crate) fn hash(&self) -> String {
        let digest = Sha256::digest(self.0.as_bytes());
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Whether a kept hash is of this key, in a time that tells nothing.
    pub(crate) fn is_of(&self, hash: &str) -> bool {
        self.hash().as_bytes().ct_eq(hash.as_bytes()).into()
    }
}

/// Returns random letters and digits, all equally likely.
pub(crate) fn random_text(from: &dyn SecureRandom, length: usize) -> Result<String, NoRandomness> {
    // The largest multiple of 62 in a byte: those above would favour some letters.
    const FAIR: u8 = 248;
    let mut text = String::with_capacity(length);
    let mut bytes = [0; 64];
    while text.len() < length {
        from.fill(&mut bytes).map_err(|_| NoRandomness)?;
        let fair = bytes.iter().filter(|byte| **byte < FAIR);
        let letters = fair.filter_map(|byte| ALPHABET.get(usize::from(byte % 62)));
        text.extend(letters.map(|letter| char::from(*letter)).take(length - text.len()));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_again_by_its_hash_alone() {
        let (key, other) = (KeyText::make().unwrap(), KeyText::make().unwrap());
        let shown = KeyText::read(key.reveal()).unwrap();
        assert!(shown.is_of(&key.hash()));
        assert!(!shown.is_of(&other.hash()) && !shown.is_of(""));
        assert_eq!(key.reveal().len(), 36);
        assert!(!key.hash().contains(key.reveal()) && !format!("{key:?}").contains(key.reveal()));
    }

    #[test]
    fn what_cannot_be_a_key_is_none() {
        let key = KeyText::make().unwrap();
        let long = format!("{}a", key.reveal());
        for text in ["", "ost_", "ost_short", &long, "OST_0123456789abcdef0123456789abcdef"] {
            assert!(KeyText::read(text).is_none(), "{text}");
        }
        assert!(KeyText::read("ost_0123456789abcdef0123456789abcd ü").is_none());
    }

    #[test]
    fn a_scope_is_read_back_from_its_word() {
        for scope in Scope::ALL {
            assert_eq!(scope.as_str().parse(), Ok(scope));
            assert_eq!(serde_json::to_value(scope).unwrap(), scope.as_str());
            let word = serde_json::json!(scope.as_str());
            assert_eq!(serde_json::from_value::<Scope>(word).unwrap(), scope);
            let object = serde_json::json!({ scope.as_str(): null });
            assert!(serde_json::from_value::<Scope>(object).is_err());
        }
        let error = "root".parse::<Scope>().unwrap_err().to_string();
        assert!(error.contains("projects:read") && error.contains("admin"), "{error}");
    }
}
