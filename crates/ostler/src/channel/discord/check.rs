//! Whether the bot works: its token, what it may read, the gateway, what it may do in
//! the servers and channels that are listed, and the clock. For `ostler doctor`; nothing is changed.

use super::{
    api::{Api, Application, Starts, Trouble},
    rights::{Rights, missing},
};
use crate::channel::finding::{Finding, bad, clock, good};

/// Where the bot is to work, by ids.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Places<'a> {
    pub(crate) guilds: &'a [String],
    pub(crate) channels: &'a [String],
    pub(crate) begins_threads: bool,
}

/// Looks at everything that can be looked at.
pub(crate) async fn check(token: &str, api_url: Option<&str>, places: Places<'_>) -> Vec<Finding> {
    match Api::new(token, api_url) {
        Ok(api) => look(&api, places).await,
        Err(error) => vec![bad(error.to_string(), None)],
    }
}

async fn look(api: &Api, places: Places<'_>) -> Vec<Finding> {
    let Places { guilds, channels, begins_threads } = places;
    let me = match api.me().await {
        Ok(me) => me,
        // Nothing else would be told more than that.
        Err(trouble) => return vec![refused(trouble)],
    };
    let name = &me.name;
    let mut findings = vec![good(format!("Discord takes the token; the bot is called {name:?}"))];
    findings.push(reading(api.application().await));
    findings.push(gateway(api.starts().await));
    for guild in guilds {
        findings.push(match api.member(guild, &me.id).await {
            Ok(member) => {
                let there = format!("in the server {guild}");
                allowed(&there, member.rights(&[]), begins_threads)
            }
            Err(trouble) => bad(
                format!("the server {guild} cannot be looked at: {trouble}"),
                Some("check the id, and invite the bot to the server"),
            ),
        });
    }
    for channel in channels {
        let looked = match api.channel(channel).await {
            Ok(place) => api.rights_in(channel, &me.id).await.map(|rights| (place.name, rights)),
            Err(trouble) => Err(trouble),
        };
        findings.push(match looked {
            Ok((name, rights)) => {
                let there = format!("in the channel {channel} {:?}", name.unwrap_or_default());
                allowed(&there, rights.unwrap_or(Rights::MAX), begins_threads)
            }
            Err(trouble) => bad(
                format!("the channel {channel} cannot be looked at: {trouble}"),
                Some("check the id, and give the bot View Channels and Send Messages there"),
            ),
        });
    }
    findings.extend(api.clock_skew().map(|skew| clock(skew, "Discord")));
    findings
}

/// Says whether the bot may do at a place what it has to.
fn allowed(there: &str, rights: Rights, begins_threads: bool) -> Finding {
    let missing = missing(rights, begins_threads);
    if missing.is_empty() {
        return good(format!("the bot may do what it has to {there}"));
    }
    bad(
        format!("the bot lacks {} {there}", missing.join(", ")),
        Some("give it these permissions: to its role in the server, or in the channel's settings"),
    )
}

fn refused(trouble: Trouble) -> Finding {
    let fix = if trouble.is_token_refused() {
        "make a new token in the developer portal (Bot → Reset Token), and set discord.token \
         or DISCORD_BOT_TOKEN"
    } else {
        "check the network, and discord.api_url if it is set"
    };
    bad(format!("the bot could not be looked at: {trouble}"), Some(fix))
}

fn reading(application: Result<Application, Trouble>) -> Finding {
    match application {
        Ok(Application { may_read: true, .. }) => good("the bot may read messages"),
        Ok(Application { may_read: false, .. }) => bad(
            "the bot may not read messages, and cannot connect",
            Some(
                "in the developer portal, under Bot → Privileged Gateway Intents, switch on \
                 Message Content Intent",
            ),
        ),
        Err(trouble) => bad(format!("what the bot may read is not known: {trouble}"), None),
    }
}

fn gateway(starts: Result<Starts, Trouble>) -> Finding {
    match starts {
        Ok(Starts { remaining: 0, reset_after, .. }) => bad(
            format!("the bot connected too often, and may again in {} s", reset_after.as_secs()),
            Some("find out what makes it connect again and again; the log has a line each time"),
        ),
        Ok(Starts { remaining, total, .. }) => {
            good(format!("the gateway can be reached; {remaining} of {total} starts are left"))
        }
        Err(trouble) => bad(format!("the gateway cannot be asked for: {trouble}"), None),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::{super::testing::Server, *};

    #[tokio::test]
    async fn a_bot_that_works_is_found_to() {
        let mut server = Server::start().await;
        let channels = ["50".to_owned(), "51".to_owned()];
        let url = server.url.clone();
        let guilds = ["10".to_owned()];
        let places = Places { guilds: &guilds, channels: &channels, begins_threads: true };
        let (findings, ()) = tokio::join!(check("token", Some(&url), places), async {
            server.introduce().await;
            let limit = json!({"remaining": 998, "total": 1000, "reset_after": 1,
                "max_concurrency": 1});
            let gateway = json!({"url": "wss://x", "shards": 1, "session_start_limit": limit});
            server.expect("GET /gateway/bot", 200, &gateway).await;
            let role = json!({"id": "10", "permissions": "309237746688"});
            let guild = json!({"id": "10", "owner_id": "7", "roles": [role]});
            server.expect("GET /guilds/10", 200, &guild).await;
            server.expect("GET /guilds/10/members/900", 200, &json!({"roles": []})).await;
            let overwrite = json!({"id": "10", "type": 0, "allow": "0", "deny": "34816"});
            let channel = json!({"id": "50", "type": 0, "name": "general", "guild_id": "10",
                "permission_overwrites": [overwrite]});
            server.expect("GET /channels/50", 200, &channel).await;
            server.expect("GET /channels/50", 200, &channel).await;
            server.expect("GET /guilds/10", 200, &guild).await;
            server.expect("GET /guilds/10/members/900", 200, &json!({"roles": []})).await;
            let refusal = json!({"code": 50001, "message": "Missing Access"});
            server.expect("GET /channels/51", 403, &refusal).await;
        });
        let is_ok: Vec<bool> = findings.iter().map(|finding| finding.is_ok).collect();
        assert_eq!(is_ok, [true, true, true, true, false, false, true], "{findings:#?}");
        assert!(findings[2].text.contains("998 of 1000"));
        let lacks = "the bot lacks Send Messages, Attach Files in the channel 50 \"general\"";
        assert_eq!(findings[4].text, lacks);
        assert!(findings[5].text.ends_with("may not see the channel"));
    }

    #[tokio::test]
    async fn a_token_that_is_refused_is_all_that_is_told() {
        let mut server = Server::start().await;
        let url = server.url.clone();
        let refusal = json!({"code": 0, "message": "401: Unauthorized"});
        let asked = server.expect("GET /users/@me", 401, &refusal);
        let (findings, ()) =
            tokio::join!(check("very-secret", Some(&url), Places::default()), asked);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].fix.unwrap().contains("DISCORD_BOT_TOKEN"));
        assert!(!format!("{findings:?}").contains("secret"));
        let findings = check("", None, Places::default()).await;
        assert!(findings.len() == 1 && !findings[0].is_ok);
    }

    #[test]
    fn what_is_wrong_is_told_with_what_to_do() {
        let application = Application { id: "1".to_owned(), may_read: false };
        assert!(reading(Ok(application)).fix.unwrap().contains("Message Content Intent"));
        let none = Starts { remaining: 0, total: 1000, reset_after: Duration::from_secs(90) };
        assert!(!gateway(Ok(none)).is_ok);
    }
}
