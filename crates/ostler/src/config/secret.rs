//! Secrets: texts that no log, error or debug output shows, and where to get
//! them: given as they are, in a file, or printed by a command.

use std::{
    fmt, fs, hint,
    io::Read as _,
    path::{Path, PathBuf},
    time::Duration,
};

use ostler_core::{agent::Stdin, environment::Variables};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::{Value, json};
use thiserror::Error;

use crate::command::{Command, CommandError, End, Excess};

/// How long a command may take to print a secret. A person may have to unlock it.
const LIMIT: Duration = Duration::from_secs(30);
/// More than any secret has.
const MAX_BYTES: usize = 64 * 1024;
/// What stands in the place of a secret.
pub(crate) const HIDDEN: &str = "(hidden)";

/// A text that nobody sees who does not ask for it by name.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(Vec<u8>);

impl Secret {
    pub(crate) fn new(text: String) -> Self {
        Self(text.into_bytes())
    }

    /// Returns the text, for the one who needs it.
    pub(crate) fn reveal(&self) -> &str {
        // It was made from a text.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.fill(0);
        // Keeps the compiler from leaving out what nobody reads any more.
        hint::black_box(&self.0);
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

/// Where a secret is to be had.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum SecretSource {
    Given(Secret),
    File(PathBuf),
    /// Started without a shell.
    Command(Vec<String>),
}

/// Why a secret is not to be had. Never says what was read.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{why}")]
pub(crate) struct SecretError {
    why: String,
}

impl SecretSource {
    /// Gets the secret. Takes half a minute at most.
    pub(crate) async fn get(&self, environment: &Variables) -> Result<Secret, SecretError> {
        self.get_within(environment, LIMIT).await
    }

    async fn get_within(
        &self,
        environment: &Variables,
        limit: Duration,
    ) -> Result<Secret, SecretError> {
        let (bytes, origin) = match self {
            Self::Given(secret) => return Ok(secret.clone()),
            Self::File(path) => (read(path)?, path.display().to_string()),
            Self::Command(command) => {
                let name = command.first().map_or("", String::as_str);
                (run(command, environment, limit).await?, format!("`{name}`"))
            }
        };
        let mut text = String::from_utf8(bytes)
            .map_err(|_| fault(format!("what {origin} has is not valid UTF-8")))?;
        let end = text.trim_end_matches(['\r', '\n']).len();
        text.truncate(end);
        if text.is_empty() {
            return Err(fault(format!("there is nothing in what {origin} has")));
        }
        Ok(Secret::new(text))
    }

    /// Takes paths that are relative as seen from a folder, and `~/` as the home.
    pub(super) fn settle_in(&mut self, folder: &Path, home: Option<&Path>) {
        match self {
            Self::Given(_) => {}
            Self::File(path) => match (path.strip_prefix("~"), home) {
                (Ok(rest), Some(home)) => *path = home.join(rest),
                (_, _) => *path = folder.join(&*path),
            },
            Self::Command(command) => {
                if let Some(program) = command.first_mut() {
                    settle_program(program, folder);
                }
            }
        }
    }
}

/// Takes a program that is named by a relative path as seen from a folder.
pub(super) fn settle_program(program: &mut String, folder: &Path) {
    let path = Path::new(program);
    if path.components().count() > 1 && path.is_relative() {
        *program = folder.join(path).to_string_lossy().into_owned();
    }
}

fn fault(why: impl Into<String>) -> SecretError {
    SecretError { why: why.into() }
}

fn read(path: &Path) -> Result<Vec<u8>, SecretError> {
    let unreadable = |error| fault(format!("{} could not be read: {error}", path.display()));
    let meta = fs::metadata(path).map_err(unreadable)?;
    // Anything else could keep us waiting.
    if !meta.is_file() {
        return Err(fault(format!("{} is not a regular file", path.display())));
    }
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(unreadable)?;
    file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() > MAX_BYTES {
        return Err(fault(format!("{} is larger than 64 KiB, so it is no secret", path.display())));
    }
    Ok(bytes)
}

async fn run(
    words: &[String],
    environment: &Variables,
    limit: Duration,
) -> Result<Vec<u8>, SecretError> {
    let name = words.first().map_or("", String::as_str);
    let (stdin, keep, excess) = (Stdin::Null, MAX_BYTES, Excess::Ends);
    let command = Command { words, env: environment, stdin, keep, excess, limit };
    let printed = command.run().await.map_err(|error| match error {
        CommandError::Late(limit) => fault(format!("`{name}` printed no secret within {limit:?}")),
        CommandError::Empty | CommandError::NotFound(_) | CommandError::NotStarted(_) => {
            fault(error.to_string())
        }
    })?;
    match printed.end {
        End::Code(_) | End::Signal(_) | End::Cut if printed.is_more => {
            Err(fault(format!("`{name}` printed more than a secret has")))
        }
        End::Code(0) | End::Cut => Ok(printed.stdout),
        End::Code(code) => Err(fault(format!("`{name}` ended with exit code {code}"))),
        End::Signal(signal) => Err(fault(format!("`{name}` was ended by signal {signal}"))),
    }
}

impl fmt::Debug for SecretSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        json!(self).fmt(f)
    }
}

impl Serialize for SecretSource {
    /// Writes where it is, never what it is.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Given(_) => to.serialize_str(HIDDEN),
            Self::File(path) => json!({ "file": path.to_string_lossy() }).serialize(to),
            // An argument could be half of the secret.
            Self::Command(command) => json!({ "command": command.first() }).serialize(to),
        }
    }
}

impl<'de> Deserialize<'de> for SecretSource {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let field = |value: &Value, name: &str| value.get(name).cloned();
        let value = Value::deserialize(from)?;
        if let Value::String(text) = value {
            return Ok(Self::Given(Secret::new(text)));
        }
        if let Some(Value::String(path)) = field(&value, "file") {
            return Ok(Self::File(PathBuf::from(path)));
        }
        let words = field(&value, "command").and_then(|words| serde_json::from_value(words).ok());
        words.map(Self::Command).ok_or_else(|| D::Error::custom("it is no secret"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: &str = "very-secret";

    fn environment() -> Variables {
        [("PATH".into(), "/usr/bin:/bin".into())].into()
    }

    fn command(words: &[&str]) -> SecretSource {
        SecretSource::Command(words.iter().map(|word| (*word).to_owned()).collect())
    }

    #[tokio::test]
    async fn a_secret_comes_as_it_is_from_a_file_or_from_a_command() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        fs::write(&path, format!("{WORDS}\n")).unwrap();
        let environment = environment();
        for source in [
            SecretSource::Given(Secret::new(WORDS.to_owned())),
            SecretSource::File(path),
            command(&["printf", "%s\\r\\n", WORDS]),
        ] {
            assert_eq!(source.get(&environment).await.unwrap().reveal(), WORDS);
            assert!(!format!("{source:?}{}", json!(source)).contains(WORDS), "{source:?}");
        }
    }

    #[tokio::test]
    async fn no_shell_reads_the_command() {
        let source = command(&["printf", "%s", "$HOME; `id`"]);
        assert_eq!(source.get(&environment()).await.unwrap().reveal(), "$HOME; `id`");
    }

    #[tokio::test]
    async fn what_goes_wrong_is_told_without_what_was_read() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            fs::write(&path, bytes).unwrap();
            SecretSource::File(path)
        };
        let mut garbage = WORDS.as_bytes().to_vec();
        garbage.push(0xff);
        for (source, says) in [
            (write("empty", b"\n"), "nothing"),
            (write("garbage", &garbage), "UTF-8"),
            (write("large", &[b'x'; MAX_BYTES + 1]), "larger than 64 KiB"),
            (SecretSource::File(folder.path().join("none")), "could not be read"),
            (SecretSource::File(folder.path().to_owned()), "not a regular file"),
            (command(&["no-such-program"]), "not found in PATH"),
            (command(&["true"]), "nothing in what `true` has"),
            (command(&["sh", "-c", "echo very-secret; exit 3"]), "exit code 3"),
            (command(&["sh", "-c", "echo very-secret; kill -9 $$"]), "signal 9"),
            (command(&["sh", "-c", "yes very-secret"]), "more than a secret has"),
        ] {
            let error = source.get(&environment()).await.unwrap_err().to_string();
            assert!(error.contains(says) && !error.contains(WORDS), "{error}");
        }
    }

    #[tokio::test]
    async fn a_command_that_hangs_is_ended() {
        let source = command(&["sleep", "1000"]);
        let limit = Duration::from_millis(50);
        let error = source.get_within(&environment(), limit).await.unwrap_err().to_string();
        assert!(error.contains("`sleep` printed no secret within"), "{error}");
    }
}
