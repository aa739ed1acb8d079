//! Whether a request can be run at all. What passes, the argv builders take.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use thiserror::Error;

use super::TurnRequest;

/// Why a request was refused before anything started.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum RequestError {
    /// There is nothing to ask.
    #[error("prompt required")]
    EmptyPrompt,
    /// The agent does not take prompts of that length.
    #[error("the prompt has {length} characters; {agent} takes at most {limit}")]
    PromptTooLong {
        /// How long it is.
        length: usize,
        /// How long it may be.
        limit: usize,
        /// Who was asked.
        agent: String,
    },
    /// The turn could never finish.
    #[error("invalid timeout")]
    InvalidTimeout,
    /// The id cannot be one of the agent's.
    #[error("invalid session id {id:?}: {why}")]
    BadSession {
        /// The id.
        id: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The directory is not one, or cannot be read.
    #[error("working directory {path:?} {why}")]
    BadDirectory {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A value that would be taken for an option, or cannot be passed at all.
    #[error("invalid {what} {value:?}: {why}")]
    BadValue {
        /// Which option.
        what: &'static str,
        /// Its value.
        value: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The session belongs to another agent.
    #[error("session {id:?} belongs to {owner}, not to {agent}")]
    ForeignSession {
        /// The session.
        id: String,
        /// Whose it is.
        owner: String,
        /// Who was asked.
        agent: String,
    },
}

/// A year: what is longer is a mistake, and no clock could add it up.
const MAX_TIMEOUT: Duration = Duration::from_secs(365 * 24 * 3600);

/// Checks what holds for every agent; reads the working directory's metadata.
///
/// # Errors
/// When the request could not be run by any agent.
pub fn validate(request: &TurnRequest) -> Result<(), RequestError> {
    if request.prompt.trim().is_empty() {
        return Err(RequestError::EmptyPrompt);
    }
    let limits = [request.timeout, request.idle_timeout, request.ask_timeout];
    if limits.iter().any(|limit| limit.is_zero() || *limit > MAX_TIMEOUT) {
        return Err(RequestError::InvalidTimeout);
    }
    if let Some(memo) = request.open.memo() {
        check_session(&memo.id)?;
    }
    let options = &request.options;
    check_value("model", options.model.as_deref())?;
    for tool in options.allowed_tools.iter().flatten() {
        check_value("tool", Some(tool))?;
    }
    for (name, value) in &options.env {
        if name.is_empty() || name.contains(['=', '\0']) {
            let why = "a name cannot be empty or hold `=` or NUL";
            return Err(bad_value("environment variable", name, why));
        }
        if value.as_deref().is_some_and(|value| value.contains('\0')) {
            return Err(bad_value("environment variable", name, "a value cannot hold NUL"));
        }
    }
    check_directory(&options.cwd)
}

/// Checks a session id as far as all agents agree.
///
/// # Errors
/// When it is blank, starts with a dash or holds white space or control characters.
pub fn check_session(id: &str) -> Result<(), RequestError> {
    let why = if id.trim().is_empty() {
        "it is blank"
    } else if id.starts_with('-') {
        "it starts with a dash"
    } else if id.chars().any(|c| c.is_control() || c.is_whitespace()) {
        "it holds white space or control characters"
    } else if id.len() > 512 {
        "it is longer than 512 bytes"
    } else {
        return Ok(());
    };
    Err(RequestError::BadSession { id: id.to_owned(), why })
}

fn check_value(what: &'static str, value: Option<&str>) -> Result<(), RequestError> {
    let Some(value) = value else { return Ok(()) };
    if value.trim().is_empty() {
        return Err(bad_value(what, value, "it is blank"));
    }
    if value.starts_with('-') {
        return Err(bad_value(what, value, "it starts with a dash"));
    }
    if value.chars().any(char::is_control) {
        return Err(bad_value(what, value, "it holds control characters"));
    }
    Ok(())
}

fn bad_value(what: &'static str, value: &str, why: &'static str) -> RequestError {
    RequestError::BadValue { what, value: value.to_owned(), why }
}

fn check_directory(path: &Path) -> Result<(), RequestError> {
    let why = match std::fs::read_dir(path) {
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => "does not exist".to_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => {
            "is not a directory".to_owned()
        }
        Err(error) => format!("cannot be read: {error}"),
    };
    Err(RequestError::BadDirectory { path: path.to_owned(), why })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(prompt: &str) -> TurnRequest {
        TurnRequest::new(prompt, ".")
    }

    #[test]
    fn an_empty_or_blank_prompt_is_refused() {
        for prompt in ["", " ", "\n\t"] {
            assert_eq!(validate(&request(prompt)), Err(RequestError::EmptyPrompt));
        }
        assert_eq!(RequestError::EmptyPrompt.to_string(), "prompt required");
    }

    #[test]
    fn a_zero_or_endless_timeout_is_refused() {
        let mut zero = request("hi");
        for wrong in [Duration::ZERO, Duration::MAX] {
            zero.timeout = wrong;
            assert_eq!(validate(&zero).unwrap_err().to_string(), "invalid timeout");
        }
    }

    #[test]
    fn session_ids_that_look_like_options_or_hold_spaces_are_refused() {
        for id in ["", "  ", "-x", "--resume", "a b", "a\nb", "a\u{0}b"] {
            assert!(check_session(id).is_err(), "{id:?}");
        }
        for id in ["a", "ses_1", "01a1e088-9109-7530-b2ac-e9fa07582dea", "é"] {
            assert!(check_session(id).is_ok(), "{id:?}");
        }
    }

    #[test]
    fn a_missing_directory_and_a_file_are_refused_by_name() {
        let mut lost = request("hi");
        lost.options.cwd = "/definitely/not/here".into();
        assert_eq!(
            validate(&lost).unwrap_err().to_string(),
            "working directory \"/definitely/not/here\" does not exist"
        );
        lost.options.cwd = "Cargo.toml".into();
        assert_eq!(
            validate(&lost).unwrap_err().to_string(),
            "working directory \"Cargo.toml\" is not a directory"
        );
    }

    #[test]
    fn a_model_or_tool_that_looks_like_an_option_is_refused() {
        let mut dash = request("hi");
        dash.options.model = Some("--help".into());
        assert!(validate(&dash).is_err());
        let mut dash = request("hi");
        dash.options.allowed_tools = Some(vec!["-x".into()]);
        assert!(validate(&dash).is_err());
    }
}
