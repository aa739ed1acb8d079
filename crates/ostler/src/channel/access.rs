//! Who may talk to the bot, and where: decided from what is configured and what
//! the operator said of somebody. Pure.

use crate::config::{Discord, EVERYBODY, Twilio};

/// Who may talk to the bot, and where, as configured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules<'a> {
    pub(crate) guilds: &'a [String],
    pub(crate) channels: &'a [String],
    pub(crate) users: &'a [String],
    pub(crate) roles: &'a [String],
    pub(crate) owners: &'a [String],
    /// Where the bot answers without being mentioned.
    pub(crate) answer_all_in: &'a [String],
    /// Whether strangers are offered a code.
    pub(crate) pairing: bool,
}

impl Discord {
    /// Returns who may talk to the bot, and where.
    pub(crate) fn access(&self) -> Rules<'_> {
        let Self { guilds, channels, users, roles, owners, answer_all_in, pairing, .. } = self;
        Rules { guilds, channels, users, roles, owners, answer_all_in, pairing: *pairing }
    }
}

impl Twilio {
    /// Returns who may write, and where. A group counts as a channel.
    pub(crate) fn access(&self) -> Rules<'_> {
        let Self { allow_from, owners, groups, pairing, .. } = self;
        Rules {
            guilds: &[],
            channels: groups,
            users: allow_from,
            roles: &[],
            owners,
            answer_all_in: &[],
            pairing: *pairing,
        }
    }
}

/// Where a message comes from, and from whom.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'a> {
    /// The server; none for a direct message.
    pub(crate) guild: Option<&'a str>,
    pub(crate) channel: &'a str,
    /// The channel that a thread is in.
    pub(crate) parent: Option<&'a str>,
    pub(crate) sender: &'a str,
    /// The roles that the sender has in the server.
    pub(crate) roles: &'a [String],
    /// Whether the bot is mentioned, or one of its messages is replied to.
    pub(crate) is_mentioned: bool,
}

/// What the operator said of somebody who asked to be let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Nothing.
    Unknown,
    Approved,
    Rejected,
}

/// What becomes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    Admitted,
    /// Its sender may not talk to the bot, at least not there.
    Stranger,
    /// It was said among people, and not to the bot: nothing is done about it.
    NotMeant,
}

/// Says what becomes of a message.
pub(crate) fn admit(rules: &Rules<'_>, from: &Source<'_>, standing: Standing) -> Admission {
    if from.guild.is_some() && !from.is_mentioned && !lists_channel(rules.answer_all_in, from) {
        return Admission::NotMeant;
    }
    if may_talk(rules, from, standing) { Admission::Admitted } else { Admission::Stranger }
}

/// Whether somebody may do more than talk. Nobody can stand for everybody here.
pub(crate) fn is_owner(rules: &Rules<'_>, sender: &str) -> bool {
    has(rules.owners, sender)
}

/// Whether a stranger is offered a code: in private only, and not if the operator
/// has rejected him.
pub(crate) fn is_offered_code(rules: &Rules<'_>, from: &Source<'_>, standing: Standing) -> bool {
    rules.pairing && from.guild.is_none() && standing == Standing::Unknown
}

fn may_talk(rules: &Rules<'_>, from: &Source<'_>, standing: Standing) -> bool {
    let is_owner = is_owner(rules, from.sender);
    if standing == Standing::Rejected && !is_owner {
        return false;
    }
    let is_listed = is_owner
        || standing == Standing::Approved
        || has(rules.users, EVERYBODY)
        || has(rules.users, from.sender);
    let Some(guild) = from.guild else { return is_listed };
    let has_role = from.roles.iter().any(|role| has(rules.roles, role));
    let is_place_listed = !(rules.guilds.is_empty() && rules.channels.is_empty());
    let is_for_all = is_place_listed && rules.users.is_empty() && rules.roles.is_empty();
    is_place(rules, guild, from) && (is_listed || has_role || is_for_all)
}

/// Whether the bot answers somewhere in a server. Each list that there is
/// restricts it, so that a channel is not opened by the server that it is in.
fn is_place(rules: &Rules<'_>, guild: &str, from: &Source<'_>) -> bool {
    (rules.guilds.is_empty() || has(rules.guilds, guild))
        && (rules.channels.is_empty() || lists_channel(rules.channels, from))
}

/// Whether a list has a channel, or the one that a thread is in.
fn lists_channel(list: &[String], from: &Source<'_>) -> bool {
    has(list, from.channel) || from.parent.is_some_and(|parent| has(list, parent))
}

fn has(list: &[String], id: &str) -> bool {
    list.iter().any(|listed| listed == id)
}

#[cfg(test)]
mod tests;
