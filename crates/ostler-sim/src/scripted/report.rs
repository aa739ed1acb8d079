//! What a script tells its test through files: how it was called, what it read
//! and which processes it left. Each file appears whole, so that a test may
//! wait for its existence.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use serde::Serialize;

use super::Error;

#[derive(Debug, Serialize)]
struct Call<'a> {
    argv: Vec<String>,
    cwd: String,
    env: BTreeMap<String, String>,
    pid: u32,
    stdin: Option<Received<'a>>,
}

/// Input as text, or in hexadecimal when it is not UTF-8.
#[derive(Debug, Serialize)]
pub(super) struct Received<'a> {
    bytes: usize,
    text: Option<&'a str>,
    hex: Option<String>,
}

impl<'a> Received<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        let text = std::str::from_utf8(bytes).ok();
        let hex = || bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Self { bytes: bytes.len(), text, hex: if text.is_none() { Some(hex()) } else { None } }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "reporting the whole environment is the purpose: tests assert what was passed"
)]
pub(super) fn write_call(
    path: &Path,
    argv: &[OsString],
    stdin: Option<Received<'_>>,
) -> Result<(), Error> {
    let cwd = std::env::current_dir().map_err(Error::io("no working directory"))?;
    let call = Call {
        argv: argv.iter().map(|word| text(word)).collect(),
        cwd: text(cwd.as_os_str()),
        env: std::env::vars_os().map(|(name, value)| (text(&name), text(&value))).collect(),
        pid: std::process::id(),
        stdin,
    };
    write_json(path, &call)
}

pub(super) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Error> {
    let bytes = serde_json::to_vec(value)
        .map_err(|error| Error::Usage(format!("could not write {}: {error}", path.display())))?;
    write(path, &bytes)
}

/// Writes beside the file and renames, so that nobody reads half of it.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = Path::new(&name);
    std::fs::write(part, bytes)
        .and_then(|()| std::fs::rename(part, path))
        .map_err(Error::file("write", path))
}

fn text(value: &OsStr) -> String {
    value.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::Received;

    #[test]
    fn input_that_is_not_text_is_reported_in_hexadecimal() {
        let json = |bytes: &[u8]| serde_json::to_string(&Received::new(bytes)).unwrap();
        assert_eq!(json("é".as_bytes()), r#"{"bytes":2,"text":"é","hex":null}"#);
        assert_eq!(json(b"\xff\n"), r#"{"bytes":2,"text":null,"hex":"ff0a"}"#);
    }
}
