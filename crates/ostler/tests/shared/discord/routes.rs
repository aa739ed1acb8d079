//! Which request does what.

use super::{
    answer::{Answer, Refusal, Reply},
    form::Form,
    limits::Bucket,
    world::World,
};
use serde_json::json;

/// A request, after its path was cut up.
pub(super) struct Request<'a> {
    pub(super) method: &'a str,
    /// The parts of the path after the version.
    pub(super) path: &'a [&'a str],
    pub(super) query: &'a [(String, String)],
    pub(super) form: &'a Form,
}

/// Says whether a request needs no token of the bot, but has one in its path or none.
pub(super) fn is_open(path: &[&str]) -> bool {
    matches!(path, ["gateway"] | ["interactions", ..] | ["webhooks", _, _, ..])
}

/// Returns the bucket of a request, and whose bucket it is.
pub(super) fn bucket<'a>(method: &str, path: &[&'a str]) -> Option<(Bucket, &'a str)> {
    match (method, path) {
        ("POST", ["channels", channel, "messages"]) => Some((Bucket::Create, channel)),
        ("PATCH", ["channels", channel, "messages", _]) => Some((Bucket::Edit, channel)),
        ("DELETE", ["channels", channel, "messages", _]) => Some((Bucket::Delete, channel)),
        ("POST", ["channels", channel, "typing"]) => Some((Bucket::Typing, channel)),
        (_, ["webhooks", _, token, ..]) => Some((Bucket::Webhook, token)),
        _ => None,
    }
}

fn id(part: &str) -> Result<u64, Refusal> {
    let wrong = || {
        let message = format!("Value \"{part}\" is not snowflake.");
        Refusal::form("id", "NUMBER_TYPE_COERCE", &message)
    };
    part.parse().map_err(|_| wrong())
}

impl World {
    /// Does a request that is allowed.
    pub(super) fn route(&mut self, request: &Request<'_>) -> Answer {
        let Request { method, path, query, form } = *request;
        match path {
            ["channels", channel, rest @ ..] => {
                self.route_channel(method, id(channel)?, rest, query, form)
            }
            ["applications", application, rest @ ..] if *application != "@me" => {
                self.route_commands(method, id(application)?, rest, form)
            }
            ["webhooks", application, token, rest @ ..] => {
                self.route_webhook(method, id(application)?, token, rest, form)
            }
            ["interactions", interaction, token, "callback"] if method == "POST" => {
                let is_told = |(key, value): &(String, String)| {
                    key == "with_response" && matches!(value.as_str(), "true" | "True" | "1")
                };
                self.answer(id(interaction)?, token, form, query.iter().any(is_told))
            }
            _ => self.route_rest(method, path, form),
        }
    }

    fn route_rest(&mut self, method: &str, path: &[&str], form: &Form) -> Answer {
        match (method, path) {
            ("GET", ["users", "@me"]) => Reply::ok(self.me()),
            ("GET", ["users", user]) => {
                let user = id(user)?;
                let known = self.users.contains_key(&user);
                if known { Reply::ok(self.user_json(user)) } else { Err(Refusal::unknown_user()) }
            }
            ("POST", ["users", "@me", "channels"]) => self.open_direct(&form.json),
            ("GET", ["applications", "@me"] | ["oauth2", "applications", "@me"]) => {
                Reply::ok(self.application_json())
            }
            ("GET", ["gateway"]) => Reply::ok(json!({ "url": self.gateway })),
            ("GET", ["gateway", "bot"]) => Reply::ok(json!({
                "url": self.gateway,
                "shards": 1,
                "session_start_limit": {
                    "total": 1000,
                    "remaining": 1000_usize.saturating_sub(self.identifies),
                    "reset_after": 14_400_000,
                    "max_concurrency": 1,
                },
            })),
            ("GET", ["guilds", guild]) => self.get_guild(id(guild)?),
            ("GET", ["guilds", guild, "channels"]) => self.get_guild_channels(id(guild)?),
            ("GET", ["guilds", guild, "members", user]) => self.get_member(id(guild)?, id(user)?),
            _ => Err(Refusal::not_found()),
        }
    }

    fn route_channel(
        &mut self,
        method: &str,
        channel: u64,
        rest: &[&str],
        query: &[(String, String)],
        form: &Form,
    ) -> Answer {
        match (method, rest) {
            ("GET", []) => self.get_channel(channel),
            ("PATCH", []) => self.edit_channel(channel, &form.json),
            ("GET", ["messages"]) => self.get_messages(channel, query),
            ("POST", ["messages"]) => self.create_message(channel, form),
            ("GET", ["messages", message]) => self.get_message(channel, id(message)?),
            ("PATCH", ["messages", message]) => self.edit_message(channel, id(message)?, form),
            ("DELETE", ["messages", message]) => self.delete_message(channel, id(message)?),
            ("PUT", ["messages", message, "reactions", emoji, "@me"]) => {
                self.react(channel, id(message)?, emoji, true)
            }
            ("DELETE", ["messages", message, "reactions", emoji, "@me"]) => {
                self.react(channel, id(message)?, emoji, false)
            }
            ("POST", ["messages", message, "threads"]) => {
                self.thread_from(channel, id(message)?, &form.json)
            }
            ("POST", ["threads"]) => self.thread_alone(channel, &form.json),
            ("POST", ["typing"]) => self.type_in(channel),
            (_, [] | ["messages"] | ["messages", _] | ["typing"]) => Err(Refusal::method()),
            _ => Err(Refusal::not_found()),
        }
    }

    fn route_commands(
        &mut self,
        method: &str,
        application: u64,
        rest: &[&str],
        form: &Form,
    ) -> Answer {
        let (guild, rest) = match rest {
            ["guilds", guild, rest @ ..] => (Some(id(guild)?), rest),
            rest => (None, rest),
        };
        match (method, rest) {
            ("GET", ["commands"]) => self.get_commands(application, guild),
            ("PUT", ["commands"]) => self.put_commands(application, guild, &form.json),
            ("POST", ["commands"]) => self.post_command(application, guild, &form.json),
            ("DELETE", ["commands", command]) => {
                self.delete_command(application, guild, id(command)?)
            }
            _ => Err(Refusal::not_found()),
        }
    }

    fn route_webhook(
        &mut self,
        method: &str,
        application: u64,
        token: &str,
        rest: &[&str],
        form: &Form,
    ) -> Answer {
        match (method, rest) {
            ("POST", []) => self.follow_up(application, token, form),
            ("GET", ["messages", message]) => self.get_followed(application, token, message),
            ("PATCH", ["messages", message]) => {
                self.edit_followed(application, token, message, form)
            }
            ("DELETE", ["messages", message]) => self.delete_followed(application, token, message),
            _ => Err(Refusal::not_found()),
        }
    }
}
