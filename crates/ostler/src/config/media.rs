//! Files that come with messages and go out with answers.

use std::{path::PathBuf, time::Duration};

use ostler_core::template;
use serde::{Deserialize, Serialize};

use super::{duration, inbound::has_variable_in_script};

/// The largest image, recording or film, in megabytes: what WhatsApp carries.
const CARRIED: u64 = 16;

/// How much of what came is kept, in megabytes: eighty of the largest files, and little
/// beside what an agent's own programs and folders take up.
const KEPT: u64 = 2048;

/// What may come and go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Media {
    /// The largest file of any sort that is taken or sent, in megabytes.
    pub(crate) max_mb: u64,
    pub(crate) max_image_mb: u64,
    pub(crate) max_audio_mb: u64,
    pub(crate) max_video_mb: u64,
    /// Everything else; unset, as large as any.
    pub(crate) max_document_mb: Option<u64>,
    /// How much of what came is kept together.
    pub(crate) keep_mb: u64,
    /// The folders, beside that in which the agent works, whose files an answer may send.
    pub(crate) send_from: Vec<PathBuf>,
    pub(crate) transcribe: Transcribe,
}

impl Default for Media {
    fn default() -> Self {
        Self {
            max_mb: 25,
            max_image_mb: CARRIED,
            max_audio_mb: CARRIED,
            max_video_mb: CARRIED,
            max_document_mb: None,
            keep_mb: KEPT,
            send_from: Vec::new(),
            transcribe: Transcribe::default(),
        }
    }
}

/// What makes texts of recordings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Transcribe {
    /// A program and its arguments, with `{{MediaPath}}`; unset, nothing does.
    pub(crate) command: Option<Vec<String>>,
    #[serde(with = "duration")]
    pub(crate) timeout: Duration,
}

impl Default for Transcribe {
    fn default() -> Self {
        Self { command: None, timeout: Duration::from_secs(60) }
    }
}

impl Transcribe {
    /// Returns what is wrong with the command, if something is.
    pub(super) fn wrong(&self) -> Option<&'static str> {
        let command = self.command.as_deref()?;
        if command.first().is_some_and(|program| template::has_variable(program)) {
            return Some("the program must not depend on the file; only its arguments may");
        }
        has_variable_in_script(command).then_some(
            "a shell would run the name of the file; give it as an argument of its own, such as \
             ['sh', '-c', 'whisper \"$1\"', 'sh', '{{MediaPath}}']",
        )
    }
}
