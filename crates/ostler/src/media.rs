//! Files that come with messages, and files that go out with answers.
//!
//! What came with a message is fetched when its turn begins, into a folder of the
//! job, and the agent is told where it lies. In its answer an agent names files
//! with `MEDIA:` tokens; which of them may be sent is decided here, by where they
//! lie.

pub(crate) mod folder;
pub(crate) mod incoming;
mod kind;
mod name;
mod outgoing;
mod token;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use reqwest::Url;

use self::{incoming::Vouched, outgoing::Refused};
use crate::{
    channel::{
        DISCORD,
        chat::{Attachment, Content},
    },
    config::Config,
};

const MEGABYTE: u64 = 1024 * 1024;
/// How many files an answer may name, and how large they may be together.
const MOST: usize = 10;
const TOGETHER: u64 = 100 * MEGABYTE;
/// Where Discord keeps what people attach.
const OF_DISCORD: [&str; 2] = ["cdn.discordapp.com", "media.discordapp.net"];

/// What may come and go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rules {
    /// Where files lie that came; without it none is fetched.
    pub(crate) dir: Option<PathBuf>,
    /// The largest file.
    pub(crate) max_bytes: u64,
    /// The folders, beside that in which the agent worked, whose files may be sent.
    pub(crate) send_from: Vec<PathBuf>,
    /// The channels whose files are fetched, and where those may lie.
    pub(crate) vouched: BTreeMap<&'static str, Vec<Vouched>>,
}

impl Rules {
    /// Takes what is configured.
    pub(crate) fn new(config: &Config, data_dir: &Path) -> Self {
        let own = Vouched { hosts: OF_DISCORD.map(str::to_owned).into(), may_be_private: false };
        let api = config.discord.api_url.as_deref().and_then(|url| Url::parse(url).ok());
        // Whoever has a Discord of his own may have it on this machine.
        let api = api.as_ref().and_then(incoming::host);
        let api = api.map(|host| Vouched { hosts: vec![host], may_be_private: true });
        Self {
            dir: Some(data_dir.join("media")),
            max_bytes: config.media.max_mb.saturating_mul(MEGABYTE),
            send_from: config.media.send_from.clone(),
            vouched: [(DISCORD, [own].into_iter().chain(api).collect())].into(),
        }
    }

    /// Returns where files of a channel may lie; nowhere if they are not fetched.
    pub(crate) fn vouched(&self, channel: &str) -> &[Vouched] {
        self.vouched.get(channel).map(Vec::as_slice).unwrap_or_default()
    }
}

/// An answer as it is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Without tokens; links that they named are at its end.
    pub(crate) text: String,
    pub(crate) attachments: Vec<Attachment>,
    /// Why a file does not come with it, a sentence each.
    pub(crate) notes: Vec<String>,
}

/// Takes the files that an answer names. Relative paths are seen from the working
/// directory of its turn, if that is known. Blocks while files are read.
pub(crate) fn answer(text: &str, work_dir: Option<&Path>, rules: &Rules) -> Answer {
    let token::Taken { text, tokens } = token::take(text);
    let mut answer = Answer { text, ..Answer::default() };
    let mut seen = BTreeSet::new();
    let tokens = tokens.iter().filter(|token| seen.insert(*token));
    let (links, paths): (Vec<_>, Vec<_>) = tokens.partition(|token| token::is_url(token));
    for link in links {
        let gap = if answer.text.is_empty() || answer.text.ends_with('\n') { "" } else { "\n" };
        answer.text.push_str(&format!("{gap}{link}"));
    }
    let mut left = TOGETHER;
    for path in paths.iter().take(MOST) {
        match outgoing::resolve(path, work_dir, &rules.send_from, rules.max_bytes.min(left)) {
            Ok(attachment) => {
                left = left.saturating_sub(length(&attachment.content));
                answer.attachments.push(attachment);
            }
            Err(why) => answer.notes.push(note(path, &why, rules.max_bytes)),
        }
    }
    if paths.len() > MOST {
        let further = paths.len() - MOST;
        answer
            .notes
            .push(format!("{further} more were not sent: an answer may name {MOST} files."));
    }
    answer
}

/// Says why a file does not come, by its name alone.
fn note(token: &str, why: &Refused, max_bytes: u64) -> String {
    let name = name::harmless(token);
    match why {
        Refused::TooLarge(limit) if *limit < max_bytes => {
            let most = megabytes(TOGETHER);
            format!("{name} was not sent: the files of an answer may have {most} MB together.")
        }
        Refused::NotHere
        | Refused::NotAFile
        | Refused::Empty
        | Refused::TooLarge(_)
        | Refused::Closed => format!("{name} was not sent: {why}."),
    }
}

fn length(content: &Content) -> u64 {
    match content {
        Content::Bytes(bytes) => u64::try_from(bytes.len()).unwrap_or(u64::MAX),
        Content::Text(text) => u64::try_from(text.len()).unwrap_or(u64::MAX),
    }
}

/// Returns a size for people.
fn megabytes(bytes: u64) -> u64 {
    bytes.div_ceil(MEGABYTE)
}

#[cfg(test)]
mod tests;
