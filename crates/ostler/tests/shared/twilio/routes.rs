//! Which request does what.

use super::{
    answer::{Answer, Refusal},
    api::{Asked, Begun, Caller},
    world::World,
};

/// Does a request that is allowed.
pub(super) fn route(
    world: &mut World,
    caller: Caller,
    asked: &Asked,
    begun: &mut Vec<Begun>,
) -> Answer {
    let parts: Vec<&str> = asked.path.trim_start_matches('/').split('/').collect();
    let method = asked.method.as_str();
    let unknown = || Refusal::not_found(&asked.path);
    match &parts[..] {
        ["2010-04-01", "Accounts", account, rest @ ..] => {
            if account.trim_end_matches(".json") != world.account {
                return Err(unknown());
            }
            if rest.is_empty() && caller == Caller::Key {
                return Err(Refusal::unauthorized());
            }
            account_route(world, asked, rest, begun)
        }
        ["v2", "Channels", "Senders", rest @ ..] => match (method, rest) {
            ("GET", []) => world.list_senders(&asked.query),
            ("GET", [sender]) => world.get_sender(sender),
            _ => Err(Refusal::method()),
        },
        ["v2", "Indicators", "Typing.json"] if method == "POST" => world.type_to(&asked.form),
        ["v1", "Conversations", rest @ ..] => conversation_route(world, asked, rest, begun),
        ["v1", "Configuration", "Webhooks"] if method == "GET" => world.get_group_hook(),
        ["v1", "Services", service] if method == "GET" => world.get_service(service),
        ["v1", "Services", service, rest @ ..] => {
            if *service != world.chat_service {
                return Err(unknown());
            }
            match (method, rest) {
                (_, ["Conversations", rest @ ..]) => conversation_route(world, asked, rest, begun),
                ("POST", ["Media"]) => world.upload(asked),
                ("GET", ["Media", sid]) => world.get_upload(sid),
                ("GET", ["Media", sid, "Content"]) => world.redirect_to_media(sid),
                _ => Err(unknown()),
            }
        }
        _ => Err(unknown()),
    }
}

fn account_route(
    world: &mut World,
    asked: &Asked,
    rest: &[&str],
    begun: &mut Vec<Begun>,
) -> Answer {
    match (asked.method.as_str(), rest) {
        ("GET", []) => Ok(world.get_account()),
        ("POST", ["Messages.json"]) => world.create_message(&asked.form, begun),
        ("GET", ["Messages.json"]) => world.list_messages(&asked.query),
        ("GET", ["Messages", sid, "Media.json"]) => world.list_media(sid),
        ("GET", ["Messages", sid, "Media", media]) => world.get_media(sid, media),
        ("GET", ["Messages", sid]) => world.get_message(sid),
        ("GET", ["IncomingPhoneNumbers.json"]) => world.list_numbers(&asked.query),
        (_, [] | ["Messages.json" | "IncomingPhoneNumbers.json"] | ["Messages", ..]) => {
            Err(Refusal::method())
        }
        _ => Err(Refusal::not_found(&asked.path)),
    }
}

fn conversation_route(
    world: &mut World,
    asked: &Asked,
    rest: &[&str],
    begun: &mut Vec<Begun>,
) -> Answer {
    match (asked.method.as_str(), rest) {
        ("POST", []) => world.create_conversation(&asked.form),
        ("GET", [sid]) => world.get_conversation(sid),
        ("POST", [sid, "Participants"]) => world.create_participant(sid, &asked.form),
        ("GET", [sid, "Participants"]) => world.list_participants(sid, &asked.query),
        ("GET", [sid, "Participants", participant]) => world.get_participant(sid, participant),
        ("GET", [sid, "Messages"]) => world.list_said(sid, &asked.query),
        ("POST", [sid, "Messages"]) => world.say_by_api(sid, asked, begun),
        (_, [] | [_] | [_, "Participants" | "Messages", ..]) => Err(Refusal::method()),
        _ => Err(Refusal::not_found(&asked.path)),
    }
}

/// Returns a field of a form or query, if it has a value.
pub(super) fn field<'a>(form: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let found = form.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    found.filter(|value| !value.is_empty())
}
