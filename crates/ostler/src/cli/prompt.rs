//! Where a prompt comes from: the argument, or standard input.

use std::io::{self, IsTerminal, Read};

use thiserror::Error;

/// The longest prompt that is read from standard input.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// Why there is no prompt.
#[derive(Debug, Error)]
pub(crate) enum PromptError {
    #[error("prompt required: give it as an argument or on standard input")]
    Missing,
    #[error("the prompt on standard input is not valid UTF-8 (at byte {at}); convert it first")]
    NotUtf8 { at: usize },
    #[error("the prompt on standard input is longer than {} MiB", MAX_BYTES / 1024 / 1024)]
    TooLong,
    #[error("could not read the prompt from standard input: {0}")]
    Io(#[from] io::Error),
}

/// Takes the argument, or reads standard input for `-` and where it is not a terminal.
pub(crate) fn read(argument: Option<String>) -> Result<String, PromptError> {
    match argument {
        Some(text) if text != "-" => Ok(text),
        None if io::stdin().is_terminal() => Err(PromptError::Missing),
        Some(_) | None => from_reader(io::stdin().lock()),
    }
}

fn from_reader(reader: impl Read) -> Result<String, PromptError> {
    let mut bytes = Vec::new();
    reader.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(PromptError::TooLong);
    }
    String::from_utf8(bytes)
        .map_err(|error| PromptError::NotUtf8 { at: error.utf8_error().valid_up_to() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_input_is_taken_byte_for_byte_and_must_be_utf8() {
        assert_eq!(from_reader("a\n\u{1f40e}\n".as_bytes()).unwrap(), "a\n\u{1f40e}\n");
        let error = from_reader(&b"ok\xff"[..]).unwrap_err().to_string();
        assert!(error.contains("at byte 2"), "{error}");
    }

    #[test]
    fn an_endless_standard_input_is_refused() {
        assert!(matches!(from_reader(io::repeat(b'x')), Err(PromptError::TooLong)));
    }
}
