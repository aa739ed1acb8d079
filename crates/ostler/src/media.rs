//! Files that come with messages, and files that go out with answers.
//!
//! What came with a message is fetched when its turn begins, into a folder of the
//! job, and the agent is told where it lies. In its answer an agent names files
//! with `MEDIA:` tokens; which of them may be sent is decided here, by where they
//! lie.

pub(crate) mod caps;
mod ending;
pub(crate) mod folder;
pub(crate) mod hosting;
pub(crate) mod incoming;
mod kind;
mod name;
mod outgoing;
pub(crate) mod token;
pub(crate) mod transcribe;
pub(crate) mod vouched;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use ostler_core::environment::Variables;

use self::{
    caps::Caps,
    outgoing::{Reach, Refused},
    transcribe::Transcriber,
    vouched::{Hosts, Vouched},
};
use crate::{
    channel::{DISCORD, chat::Attachment},
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
    /// The largest files.
    pub(crate) caps: Caps,
    /// How many bytes of what came are kept together; nothing for as many as there are.
    pub(crate) most_kept: Option<u64>,
    /// The folders, beside that in which the agent worked, whose files may be sent.
    pub(crate) send_from: Vec<PathBuf>,
    /// What is the gateway's own, and is not sent: its store, its secrets, its file.
    pub(crate) private: Vec<PathBuf>,
    /// The channels whose files are fetched, and where those may lie.
    pub(crate) vouched: BTreeMap<&'static str, Vec<Vouched>>,
    /// What the block `inbound.reply` says of the files of a reply.
    pub(crate) reply: ReplyFiles,
    /// What makes texts of recordings that came.
    pub(crate) transcriber: Option<Transcriber>,
}

/// What goes out with a reply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReplyFiles {
    /// A link or a path that every reply has.
    pub(crate) each: Option<String>,
    /// The largest file, if that is less than elsewhere, in bytes.
    pub(crate) most: Option<u64>,
}

/// What an answer answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// A message from a chat.
    InReply,
    /// Nothing: an agent spoke by itself.
    Unasked,
}

impl Rules {
    /// Takes what is configured.
    pub(crate) fn new(config: &Config, environment: &Variables, data_dir: &Path) -> Self {
        // Whoever has a Discord of his own may have it on this machine.
        let own = config.discord.api_url.as_deref().and_then(Hosts::own);
        let discord = [Hosts::public(OF_DISCORD)].into_iter().chain(own).map(Vouched::open);
        let reply = config.inbound.reply.as_ref();
        let most = reply.and_then(|reply| reply.media_max_mb).map(u64::from);
        let each = reply.and_then(|reply| reply.media_url.clone());
        Self {
            dir: Some(data_dir.join("media")),
            caps: Caps::new(&config.media),
            most_kept: Some(config.media.keep_mb.saturating_mul(MEGABYTE)),
            send_from: config.media.send_from.clone(),
            private: config
                .secret_files()
                .map(Path::to_owned)
                .chain([data_dir.to_owned()])
                .collect(),
            vouched: [(DISCORD, discord.collect())].into(),
            reply: ReplyFiles {
                each: each.filter(|place| !place.is_empty()),
                most: most.map(|most| most.saturating_mul(MEGABYTE)),
            },
            transcriber: Transcriber::new(&config.media.transcribe, environment),
        }
    }

    /// Lets files of a channel be fetched, from here alone.
    pub(crate) fn vouch(&mut self, channel: &'static str, vouched: Vouched) {
        self.vouched.insert(channel, vec![vouched]);
    }

    /// Takes over what was vouched for when the gateway started: a login is not read
    /// again.
    pub(crate) fn take_over(&mut self, earlier: &Self) {
        for (channel, vouched) in &earlier.vouched {
            self.vouched.entry(channel).or_insert_with(|| vouched.clone());
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

/// Takes the files that an answer names, and adds what every reply has. Relative
/// paths are seen from the working directory of its turn, if that is known. Blocks
/// while files are read.
pub(crate) fn answer(text: &str, work_dir: Option<&Path>, rules: &Rules, said: Said) -> Answer {
    let token::Taken { text, tokens } = token::take(text);
    let mut answer = Answer { text, ..Answer::default() };
    let mut seen = BTreeSet::new();
    let tokens = tokens.iter().filter(|token| seen.insert(*token));
    let (mut links, paths): (Vec<_>, Vec<_>) = tokens.partition(|token| token::is_url(token));
    let (each, caps) = match said {
        Said::InReply => {
            let ReplyFiles { each, most } = &rules.reply;
            (each.as_ref(), most.map_or(rules.caps, |most| rules.caps.up_to(most)))
        }
        Said::Unasked => (None, rules.caps),
    };
    let (link, file) = match each {
        Some(place) if token::is_url(place) => (Some(place), None),
        place => (None, place),
    };
    links.extend(link.filter(|link| !links.contains(link)));
    for link in links {
        let gap = if answer.text.is_empty() || answer.text.ends_with('\n') { "" } else { "\n" };
        answer.text.push_str(&format!("{gap}{link}"));
    }
    let mut left = TOGETHER;
    for path in paths.iter().take(MOST) {
        let reach = Reach { work_dir, listed: &rules.send_from, private: &rules.private };
        match outgoing::resolve(path, reach, caps.up_to(left)) {
            Ok(attachment) => {
                left = left.saturating_sub(attachment.content.len());
                answer.attachments.push(attachment);
            }
            Err(why) => answer.notes.push(note(path, &why, left)),
        }
    }
    if paths.len() > MOST {
        let further = paths.len() - MOST;
        answer
            .notes
            .push(format!("{further} more were not sent: an answer may name {MOST} files."));
    }
    // Whoever is answered can do nothing about it.
    match file.map(|path| (path, outgoing::wanted(Path::new(path), caps.up_to(left)))) {
        Some((_, Ok(attachment))) => answer.attachments.push(attachment),
        Some((path, Err(why))) => {
            tracing::warn!(path, "inbound.reply.mediaUrl does not go with a reply: {why}");
        }
        None => {}
    }
    answer
}

/// Says why a file does not come, by its name alone. So much was left for it.
fn note(token: &str, why: &Refused, left: u64) -> String {
    let name = name::harmless(token);
    match why {
        Refused::TooLarge(limit) if *limit == left && left < TOGETHER => {
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

/// Returns the media type of a file, by what is in it; its name tells those apart that
/// begin alike.
pub(crate) fn kind_of(bytes: &[u8], name: &str) -> &'static str {
    kind::of_named(bytes.get(..kind::HEAD).unwrap_or(bytes), name)
}

/// Returns a size for people.
fn megabytes(bytes: u64) -> u64 {
    bytes.div_ceil(MEGABYTE)
}

#[cfg(test)]
mod tests;
