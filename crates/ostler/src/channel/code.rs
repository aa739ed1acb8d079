//! Codes by which the operator tells strangers from each other: short enough to
//! be read aloud, and of letters and digits that nobody mixes up.

use std::{fmt, str::FromStr};

use thiserror::Error;

use crate::key::NoRandomness;

/// How many characters a code has.
const LENGTH: usize = 8;
/// Without 0 and O, 1 and I. A byte has room for each of them equally often.
const ALPHABET: &[u8; 32] = b"23456789ABCDEFGHJKLMNPQRSTUVWXYZ";

/// A code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Code(String);

/// A text that is no code.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0:?} is no code; those are {LENGTH} letters and digits, such as K7WQ2MXP")]
pub(crate) struct NoCode(String);

impl Code {
    /// Makes a new one, which nobody could guess.
    pub(crate) fn make() -> Result<Self, NoRandomness> {
        let mut bytes = [0; LENGTH];
        let random = rustls::crypto::ring::default_provider().secure_random;
        random.fill(&mut bytes).map_err(|_| NoRandomness)?;
        let letters = bytes.iter().filter_map(|byte| ALPHABET.get(usize::from(byte % 32)));
        Ok(Self(letters.map(|letter| char::from(*letter)).collect()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for Code {
    type Err = NoCode;

    /// Reads what somebody typed: in small letters, or in groups.
    fn from_str(text: &str) -> Result<Self, NoCode> {
        let typed = text.chars().filter(|c| !c.is_whitespace() && *c != '-');
        let code: String = typed.map(|c| c.to_ascii_uppercase()).collect();
        let is_one = code.len() == LENGTH && code.bytes().all(|byte| ALPHABET.contains(&byte));
        if is_one { Ok(Self(code)) } else { Err(NoCode(text.to_owned())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_read_back_however_it_is_typed() {
        let code = Code::make().unwrap();
        assert_ne!(code, Code::make().unwrap());
        let (first, second) = code.as_str().split_at(4);
        for typed in [
            code.to_string(),
            code.as_str().to_lowercase(),
            format!(" {first}-{second} "),
            format!("{first} {second}"),
        ] {
            assert_eq!(typed.parse(), Ok(code.clone()), "{typed}");
        }
    }

    #[test]
    fn what_cannot_be_a_code_is_none() {
        for text in ["", "K7WQ2MX", "K7WQ2MXPP", "K7WQ2MX0", "K7WQ2MXI", "K7WQ2MXé", "--------"] {
            let error = text.parse::<Code>().unwrap_err().to_string();
            assert!(error.contains("8 letters and digits"), "{error}");
        }
    }
}
