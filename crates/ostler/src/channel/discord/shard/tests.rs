//! A bot that listens, and a gateway that connects, loses, resumes and refuses it.

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{
    super::{
        snowflake,
        testing::{Gateway, Line, Server},
    },
    listener::pause,
    *,
};

/// How long a test waits for what must come.
const SOON: Duration = Duration::from_secs(30);

/// A bot that listens.
struct Bot {
    server: Server,
    events: mpsc::Receiver<Event>,
    stop: CancellationToken,
    listening: JoinSet<Result<(), Fatal>>,
}

impl Bot {
    async fn start(gateway: &Gateway, room: usize, resume: Option<Position>) -> Self {
        let mut server = Server::start().await;
        let api = Arc::new(Api::new("token", Some(&server.url)).unwrap());
        let gateway_url = Some(gateway.url.clone());
        let connection =
            Connection { token: Secret::new("token".to_owned()), gateway_url, api, resume };
        let (sender, events) = mpsc::channel(room);
        let stop = CancellationToken::new();
        let mut listening = JoinSet::new();
        listening.spawn(listen(connection, sender, stop.clone()));
        server.introduce().await;
        Self { server, events, stop, listening }
    }

    /// Returns what happened next, without the time of it.
    async fn next(&mut self) -> Event {
        let mut event = self.next_timed().await;
        if let Some(position) = &mut event.position {
            assert!(position.newest.take().is_some());
        }
        event
    }

    async fn next_timed(&mut self) -> Event {
        time::timeout(SOON, self.events.recv()).await.expect("nothing happened").unwrap()
    }

    async fn end(&mut self) -> Result<(), Fatal> {
        let ended = time::timeout(SOON, self.listening.join_next()).await;
        ended.expect("it did not end").unwrap().unwrap()
    }
}

fn at(gateway: &Gateway, session: &str, sequence: u64) -> Position {
    Position { session: session.to_owned(), sequence, url: gateway.url.clone(), newest: None }
}

fn said(id: &str, channel: &str, text: &str) -> Value {
    json!({
        "id": id, "channel_id": channel, "guild_id": "10", "type": 0, "content": text,
        "author": {"id": "7", "username": "ada", "discriminator": "0", "avatar": null},
        "attachments": [], "components": [], "embeds": [], "mention_everyone": false,
        "mention_roles": [], "mentions": [], "pinned": false, "tts": false,
        "edited_timestamp": null, "timestamp": "2026-11-18T01:00:00.000000+00:00",
        "channel_type": if channel == "60" { 11 } else { 0 },
    })
}

fn text(event: &Event) -> &str {
    let Happening::Heard(heard) = &event.happening else { panic!("{event:?}") };
    &heard.text
}

fn connected(is_resumed: bool) -> Happening {
    let bot = Person { id: "900".into(), name: "ostler".into(), is_bot: true };
    Happening::Connected { bot, application: "800".into(), is_resumed, missed_since: None }
}

/// Takes a new bot in.
async fn welcome(gateway: &Gateway, bot: &mut Bot) -> Line {
    let mut line = gateway.accept().await;
    let identify = line.hear().await;
    assert_eq!((&identify["op"], &identify["d"]["token"]), (&2.into(), &"Bot token".into()));
    assert_eq!(identify["d"]["intents"], 1 | 1 << 9 | 1 << 12 | 1 << 15);
    line.ready(1, "s1").await;
    let event = bot.next().await;
    let position = Some(at(gateway, "s1", 1));
    assert_eq!(event, Event { position, happening: connected(false) });
    line
}

/// Takes a bot in with another session, after something that it heard last: what it may have
/// missed since is looked for.
async fn begin_anew(gateway: &Gateway, bot: &mut Bot, newest: Option<u64>) -> (Line, Event) {
    let mut line = gateway.accept().await;
    assert_eq!(line.hear().await["op"], 2);
    line.ready(1, "s2").await;
    let event = bot.next_timed().await;
    let Happening::Connected { missed_since, .. } = &event.happening else { panic!("{event:?}") };
    // Somewhere else something may have been said a little before that.
    assert_eq!(*missed_since, newest.map(|id| snowflake::before(id, Duration::from_secs(5))));
    (line, event)
}

#[tokio::test]
async fn what_is_told_is_handed_on_with_its_place() {
    let gateway = Gateway::start().await;
    let mut bot = Bot::start(&gateway, 8, None).await;
    let mut line = welcome(&gateway, &mut bot).await;
    let thread = json!({"id": "60", "type": 11, "name": "a thread", "parent_id": "50"});
    line.tell(2, "THREAD_CREATE", thread).await;
    line.tell(3, "SOMETHING_OF_TOMORROW", json!({})).await;
    line.tell(4, "MESSAGE_CREATE", json!({"id": "what?"})).await;
    line.tell(5, "MESSAGE_CREATE", said("100", "60", "hello")).await;
    let event = bot.next().await;
    assert_eq!(event.position, Some(at(&gateway, "s1", 5)));
    let Happening::Heard(heard) = event.happening else { panic!("{event:?}") };
    assert_eq!((heard.text.as_str(), heard.parent.as_deref()), ("hello", Some("50")));
    assert!(bot.server.try_next().is_none());
}

#[tokio::test]
async fn a_lost_connection_is_resumed() {
    let gateway = Gateway::start().await;
    let mut bot = Bot::start(&gateway, 8, None).await;
    let mut line = welcome(&gateway, &mut bot).await;
    line.tell(2, "MESSAGE_CREATE", said("100", "50", "one")).await;
    assert_eq!(text(&bot.next().await), "one");
    line.close(4000).await;
    let mut line = gateway.accept().await;
    let resume = line.hear().await;
    assert_eq!(resume["op"], 6);
    assert_eq!((&resume["d"]["session_id"], &resume["d"]["seq"]), (&"s1".into(), &2.into()));
    line.tell(3, "MESSAGE_CREATE", said("101", "50", "two")).await;
    line.tell(4, "RESUMED", json!({})).await;
    assert_eq!(text(&bot.next().await), "two");
    let resumed = bot.next().await;
    assert_eq!(resumed.happening, connected(true));
    assert_eq!(resumed.position, Some(at(&gateway, "s1", 4)));
}

#[tokio::test]
async fn a_restart_goes_on_where_it_was_left_and_waits_for_no_thread_that_it_does_not_know() {
    let gateway = Gateway::start().await;
    let position = at(&gateway, "s1", 41);
    let mut bot = Bot::start(&gateway, 8, Some(position)).await;
    let mut line = gateway.accept().await;
    let resume = line.hear().await;
    assert_eq!((&resume["op"], &resume["d"]["seq"]), (&6.into(), &41.into()));
    line.tell(42, "MESSAGE_CREATE", said("100", "60", "one")).await;
    line.tell(43, "MESSAGE_CREATE", said("101", "50", "two")).await;
    for (expected, is_expected_astray) in [("one", true), ("two", false)] {
        let event = bot.next().await;
        let Happening::Heard(heard) = event.happening else { panic!("{event:?}") };
        assert_eq!((heard.text.as_str(), heard.is_astray), (expected, is_expected_astray));
    }
    assert!(bot.server.try_next().is_none());
}

#[tokio::test]
async fn a_session_that_begins_anew_says_since_when_something_may_have_been_missed() {
    let gateway = Gateway::start().await;
    let newest = Some(175_928_847_299_117_063);
    let position = Position { newest, ..at(&gateway, "long-over", 41) };
    let mut bot = Bot::start(&gateway, 8, Some(position)).await;
    let mut line = gateway.accept().await;
    assert_eq!(line.hear().await["op"], 6);
    line.say(json!({"op": 9, "d": false})).await;
    line.closed().await;
    let (mut line, event) = begin_anew(&gateway, &mut bot, newest).await;
    // From now on nothing is missed, whatever was heard.
    let ready_at = event.position.unwrap().newest.unwrap();
    assert!(ready_at > 1 << 60, "{ready_at}");
    let later = (u64::MAX >> 1).to_string();
    line.tell(2, "MESSAGE_CREATE", said(&later, "50", "one")).await;
    assert_eq!(bot.next_timed().await.position.unwrap().newest, Some(u64::MAX >> 1));
    line.tell(3, "MESSAGE_CREATE", said("100", "50", "two")).await;
    assert_eq!(bot.next_timed().await.position.unwrap().newest, Some(u64::MAX >> 1));
}

#[tokio::test]
async fn a_session_that_is_over_begins_anew() {
    let gateway = Gateway::start().await;
    let position = at(&gateway, "long-over", 41);
    let mut bot = Bot::start(&gateway, 8, Some(position)).await;
    let mut line = gateway.accept().await;
    assert_eq!(line.hear().await["op"], 6);
    line.say(json!({"op": 9, "d": false})).await;
    assert_eq!(line.closed().await, 1000);
    welcome(&gateway, &mut bot).await;
}

#[tokio::test]
async fn a_session_that_discord_ends_for_good_is_not_tried_again() {
    for code in [4007, 4009] {
        let gateway = Gateway::start().await;
        let newest = Some(175_928_847_299_117_063);
        let position = Position { newest, ..at(&gateway, "s1", 41) };
        let mut bot = Bot::start(&gateway, 8, Some(position)).await;
        let mut line = gateway.accept().await;
        assert_eq!(line.hear().await["op"], 6);
        line.close(code).await;
        let (_, event) = begin_anew(&gateway, &mut bot, newest).await;
        assert_eq!(event.position.unwrap().session, "s2", "{code}");
    }
}

#[tokio::test]
async fn a_stop_closes_the_connection_so_that_it_can_be_resumed() {
    let gateway = Gateway::start().await;
    let mut bot = Bot::start(&gateway, 8, None).await;
    let line = welcome(&gateway, &mut bot).await;
    bot.stop.cancel();
    assert_eq!(line.closed().await, 4000);
    assert_eq!(bot.end().await, Ok(()));
}

#[tokio::test]
async fn a_stop_ends_although_nobody_answers_its_close() {
    let gateway = Gateway::start().await;
    let mut bot = Bot::start(&gateway, 8, None).await;
    let line = welcome(&gateway, &mut bot).await;
    bot.stop.cancel();
    line.hang_up().await;
    let again = gateway.accept_silently().await;
    assert_eq!(bot.end().await, Ok(()));
    assert_eq!(again.closed_with().await, None);
}

#[tokio::test]
async fn a_full_receiver_is_waited_for_and_a_stop_meanwhile_hands_nothing_on() {
    let gateway = Gateway::start().await;
    let mut bot = Bot::start(&gateway, 1, None).await;
    let mut line = welcome(&gateway, &mut bot).await;
    for n in 2..=4 {
        line.tell(n, "MESSAGE_CREATE", said(&n.to_string(), "50", &n.to_string())).await;
    }
    for n in 2..=4 {
        let event = bot.next().await;
        assert_eq!(text(&event), n.to_string());
        assert_eq!(event.position, Some(at(&gateway, "s1", n)));
    }
    for n in 5..=8 {
        line.tell(n, "MESSAGE_CREATE", said(&n.to_string(), "50", &n.to_string())).await;
    }
    while bot.events.is_empty() {
        tokio::task::yield_now().await;
    }
    bot.stop.cancel();
    assert_eq!(line.closed().await, 4000);
    assert_eq!(bot.end().await, Ok(()));
    assert_eq!(text(&bot.next().await), "5");
    assert!(bot.events.recv().await.is_none());
}

#[tokio::test]
async fn nobody_who_listens_is_an_end() {
    let gateway = Gateway::start().await;
    let mut bot = Bot::start(&gateway, 8, None).await;
    let mut line = welcome(&gateway, &mut bot).await;
    bot.events.close();
    line.tell(2, "MESSAGE_CREATE", said("100", "50", "one")).await;
    assert_eq!(line.closed().await, 4000);
    assert_eq!(bot.end().await, Ok(()));
}

#[tokio::test]
async fn what_no_new_connection_helps_against_ends_it() {
    let gateway = Gateway::start().await;
    let mut bot = Bot::start(&gateway, 8, None).await;
    let mut line = gateway.accept().await;
    line.hear().await;
    line.close(4014).await;
    let fatal = bot.end().await.unwrap_err();
    assert!(fatal.reason.contains("Message Content Intent"), "{fatal}");
}

#[tokio::test]
async fn a_token_that_is_refused_ends_it_before_it_connects() {
    let mut server = Server::start().await;
    let api = Arc::new(Api::new("token", Some(&server.url)).unwrap());
    let gateway_url = Some("ws://127.0.0.1:1".to_owned());
    let connection =
        Connection { token: Secret::new("token".to_owned()), gateway_url, api, resume: None };
    let (sender, _events) = mpsc::channel(1);
    let listening = listen(connection.clone(), sender.clone(), CancellationToken::new());
    let refusal = json!({"code": 0, "message": "401: Unauthorized"});
    let asked = server.expect("GET /users/@me", 401, &refusal);
    let (ended, ()) = tokio::join!(listening, asked);
    assert_eq!(ended, Err(Fatal::token()));
    let wrong = Connection { gateway_url: Some("http://x y".to_owned()), ..connection };
    assert!(!format!("{wrong:?}").contains("token\""));
    let ended = listen(wrong, sender, CancellationToken::new()).await;
    assert_eq!(ended, Err(Fatal::url()));
}

#[test]
fn a_connection_that_is_of_no_use_is_not_made_again_at_once() {
    let waits = [0, 1, 2, 3, 7, 100].map(|n| pause(n).as_secs());
    assert_eq!(waits, [0, 1, 2, 4, 60, 60]);
}

#[test]
fn a_gateway_is_a_websocket() {
    for (url, expected) in [
        ("wss://gateway.discord.gg", true),
        ("ws://127.0.0.1:8080/", true),
        ("ws://[::1]:1/path", true),
        ("https://gateway.discord.gg", false),
        ("wss://gateway.discord.gg/?v=10", false),
        ("wss://a b", false),
        ("", false),
    ] {
        assert_eq!(is_gateway(url), expected, "{url}");
    }
}
