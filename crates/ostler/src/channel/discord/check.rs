//! Whether the bot works: its token, what it may read, the gateway, the channels,
//! and the clock. For `ostler doctor`; nothing is changed.

use jiff::SignedDuration;

use super::api::{Api, Application, Starts, Trouble};

/// How far the clock may be off.
const OFF: SignedDuration = SignedDuration::from_secs(30);

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) is_ok: bool,
    pub(crate) text: String,
    /// What to do about it.
    pub(crate) fix: Option<&'static str>,
}

fn good(text: impl Into<String>) -> Finding {
    Finding { is_ok: true, text: text.into(), fix: None }
}

fn bad(text: impl Into<String>, fix: Option<&'static str>) -> Finding {
    Finding { is_ok: false, text: text.into(), fix }
}

/// Looks at everything that can be looked at.
pub(crate) async fn check(token: &str, api_url: Option<&str>, channels: &[String]) -> Vec<Finding> {
    match Api::new(token, api_url) {
        Ok(api) => look(&api, channels).await,
        Err(error) => vec![bad(error.to_string(), None)],
    }
}

async fn look(api: &Api, channels: &[String]) -> Vec<Finding> {
    let name = match api.me().await {
        Ok(me) => me.name,
        // Nothing else would be told more than that.
        Err(trouble) => return vec![refused(trouble)],
    };
    let mut findings = vec![good(format!("Discord takes the token; the bot is called {name:?}"))];
    findings.push(reading(api.application().await));
    findings.push(gateway(api.starts().await));
    for channel in channels {
        findings.push(match api.channel(channel).await {
            Ok(place) => {
                let name = place.name.unwrap_or_default();
                good(format!("the bot sees the channel {channel} {name:?}"))
            }
            Err(trouble) => bad(
                format!("the channel {channel} cannot be looked at: {trouble}"),
                Some("check the id, and give the bot View Channel and Send Messages there"),
            ),
        });
    }
    findings.extend(api.clock_skew().map(clock));
    findings
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

fn clock(skew: SignedDuration) -> Finding {
    let seconds = skew.abs().as_secs();
    if skew.abs() <= OFF {
        return good(format!("the clock is within {} s of Discord's", OFF.as_secs()));
    }
    let side = if skew.is_positive() { "ahead of" } else { "behind" };
    bad(
        format!("the clock is {seconds} s {side} Discord's"),
        Some("set the clock, for example with systemd-timesyncd"),
    )
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
        let (findings, ()) = tokio::join!(check("token", Some(&url), &channels), async {
            server.introduce().await;
            let limit = json!({"remaining": 998, "total": 1000, "reset_after": 1,
                "max_concurrency": 1});
            let gateway = json!({"url": "wss://x", "shards": 1, "session_start_limit": limit});
            server.expect("GET /gateway/bot", 200, &gateway).await;
            let channel = json!({"id": "50", "type": 0, "name": "general"});
            server.expect("GET /channels/50", 200, &channel).await;
            let refusal = json!({"code": 50001, "message": "Missing Access"});
            server.expect("GET /channels/51", 403, &refusal).await;
        });
        let is_ok: Vec<bool> = findings.iter().map(|finding| finding.is_ok).collect();
        assert_eq!(is_ok, [true, true, true, true, false, true], "{findings:#?}");
        assert!(findings[2].text.contains("998 of 1000"));
        assert!(findings[4].text.ends_with("may not see the channel"));
    }

    #[tokio::test]
    async fn a_token_that_is_refused_is_all_that_is_told() {
        let mut server = Server::start().await;
        let url = server.url.clone();
        let refusal = json!({"code": 0, "message": "401: Unauthorized"});
        let asked = server.expect("GET /users/@me", 401, &refusal);
        let (findings, ()) = tokio::join!(check("very-secret", Some(&url), &[]), asked);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].fix.unwrap().contains("DISCORD_BOT_TOKEN"));
        assert!(!format!("{findings:?}").contains("secret"));
        let findings = check("", None, &[]).await;
        assert!(findings.len() == 1 && !findings[0].is_ok);
    }

    #[test]
    fn what_is_wrong_is_told_with_what_to_do() {
        let application = Application { id: "1".to_owned(), may_read: false };
        assert!(reading(Ok(application)).fix.unwrap().contains("Message Content Intent"));
        let none = Starts { remaining: 0, total: 1000, reset_after: Duration::from_secs(90) };
        assert!(!gateway(Ok(none)).is_ok);
        assert!(clock(SignedDuration::from_secs(-30)).is_ok);
        let behind = clock(SignedDuration::from_secs(-31));
        assert_eq!(behind.text, "the clock is 31 s behind Discord's");
        assert!(clock(SignedDuration::from_secs(500)).text.contains("ahead"));
    }
}
