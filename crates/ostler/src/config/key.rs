//! The table of all keys: what each takes, when a change of it takes effect,
//! and from where it may come. Reading, the schema, `show` and live reload go by
//! it; the defaults are those of the types in `section`.

use serde_json::Value;

use super::{
    hooks::{EVENTS, LONGEST_TIMEOUT},
    kind::Kind,
};

/// One key.
#[derive(Debug)]
pub(crate) struct Key {
    /// Its name with dots; `*` stands for any one name.
    pub(crate) path: &'static str,
    pub(crate) kind: Kind,
    pub(crate) effect: Effect,
    guard: Guard,
    /// What it is, in a few words.
    pub(crate) about: &'static str,
}

/// When a change takes effect in a gateway that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Effect {
    /// With the next turn.
    Live,
    Restart,
}

/// Whether a stranger's directory may set a key, just because one works there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Guard {
    /// It may: the key starts no program and allows nothing.
    Open,
    /// It may not.
    Closed,
    /// It may not set this value.
    ClosedTo(&'static str),
    /// It may name a built-in agent, but none of its own.
    BuiltIn,
}

impl Key {
    /// Whether a value may come from a directory that merely is the working one.
    pub(super) fn is_harmless(&self, value: &Value) -> bool {
        match self.guard {
            Guard::Open => true,
            Guard::Closed => false,
            Guard::ClosedTo(word) => value != word,
            Guard::BuiltIn => value
                .as_str()
                .is_some_and(|name| ostler_core::agent::resolve_provider(name).is_ok()),
        }
    }

    /// Whether this is the key of that name.
    fn is(&self, path: &[&str]) -> bool {
        let own = self.path.split('.');
        own.clone().count() == path.len()
            && own.zip(path).all(|(own, name)| own == "*" || own == *name)
    }
}

/// What a name with dots leads to.
#[derive(Debug)]
pub(super) enum Named {
    Key(&'static Key),
    /// Not a key, but the start of some; with the names that can follow.
    Section(Vec<&'static str>),
    Nothing,
}

/// Looks a name up.
pub(super) fn named(path: &[&str]) -> Named {
    if let Some(key) = KEYS.iter().find(|key| key.is(path)) {
        return Named::Key(key);
    }
    let mut following = Vec::new();
    for key in KEYS {
        let mut own = key.path.split('.');
        let begins =
            path.iter().all(|name| own.next().is_some_and(|own| own == "*" || own == *name));
        if let (true, Some(next)) = (begins, own.next())
            && !following.contains(&next)
        {
            following.push(next);
        }
    }
    if following.is_empty() { Named::Nothing } else { Named::Section(following) }
}

/// Returns the key of a name, if it is one.
pub(crate) fn find(path: &str) -> Option<&'static Key> {
    let names: Vec<&str> = path.split('.').collect();
    KEYS.iter().find(|key| key.is(&names))
}

/// What a section must have if it is there at all.
pub(super) const REQUIRED: &[(&str, &str)] = &[
    ("agents.*", "dialect"),
    ("agents.*", "command"),
    ("hooks.*", "on"),
    ("inbound.reply", "agent"),
    ("inbound.reply.agent", "kind"),
];

/// Keys of older products, and what is written instead.
pub(super) const OLD: &[(&str, &str)] = &[
    ("claudeOutputFormat", "write inbound.reply.agent: { kind: 'claude', format: 'json' }"),
    ("claudeCliPath", "write agent: { path: '…' }, or set BACKEND_CLI_PATH"),
];

const fn key(
    path: &'static str,
    kind: Kind,
    effect: Effect,
    guard: Guard,
    about: &'static str,
) -> Key {
    Key { path, kind, effect, guard, about }
}

/// The keys that take effect with the next turn, and that any directory may set.
const fn live(path: &'static str, kind: Kind, about: &'static str) -> Key {
    key(path, kind, Effect::Live, Guard::Open, about)
}

/// The same, but not for a directory that merely is the working one.
const fn guarded(path: &'static str, kind: Kind, about: &'static str) -> Key {
    key(path, kind, Effect::Live, Guard::Closed, about)
}

const fn restart(path: &'static str, kind: Kind, about: &'static str) -> Key {
    key(path, kind, Effect::Restart, Guard::Closed, about)
}

const fn number(min: u64, max: u64) -> Kind {
    Kind::Number { min, max }
}

const PERMISSIONS: Kind = Kind::Choice(&["bypass", "ask", "read-only"]);
const THINKING: Kind = Kind::Choice(&["off", "minimal", "low", "medium", "high"]);
const SCOPE: Kind = Kind::Choice(&["per-sender", "per-channel", "per-group", "global"]);
const BUSY: Kind = Kind::Choice(&["queue", "combine", "steer", "interrupt"]);
const MODE: Kind = Kind::Choice(&["command", "text"]);
const FORMAT: Kind = Kind::Choice(&["stream-json", "json", "text"]);
const LOG_LEVEL: Kind = Kind::Choice(&["error", "warn", "info", "debug", "trace"]);
const LOG_FORMAT: Kind = Kind::Choice(&["text", "json"]);
const ON_FAILURE: Kind = Kind::Choice(&["ignore", "fail"]);
const METRICS: Kind = Kind::Choice(&["admin", "anybody"]);
const LONG_ANSWERS: Kind = Kind::Choice(&["split", "file"]);
const DETAIL: Kind = Kind::Choice(&["quiet", "normal", "verbose"]);
const RECEIVE: Kind = Kind::Choice(&["webhook", "polling"]);
const DIALECT: Kind = Kind::Choice(&["acp"]);
const MINUTES: Kind = number(1, 525_600);
const SECONDS: Kind = number(1, 86_400);

/// Every key there is.
#[rustfmt::skip]
pub(crate) const KEYS: &[Key] = &[
    restart("gateway.listen", Kind::Address, "where the gateway listens"),
    restart("gateway.data_dir", Kind::Path, "where Ostler keeps its state"),
    restart("gateway.database_url", Kind::Secret, "the store: sqlite:… or postgres://…"),
    restart("gateway.log_level", LOG_LEVEL, "how much the gateway logs"),
    restart("gateway.log_format", LOG_FORMAT, "how a line of the log is written"),
    restart("gateway.lease", Kind::Duration, "after how much silence others take a gateway's jobs over"),
    live("gateway.max_concurrent_turns", number(1, 10_000), "how many turns run at once"),
    live("gateway.max_queue_depth", number(1, 1_000_000), "how many jobs may wait"),
    live("gateway.shutdown_grace", Kind::Duration, "how long turns may take to end at shutdown"),
    live("gateway.event_retention", Kind::DurationOrOff, "how long events are kept"),
    key("agent.default", Kind::Agent, Effect::Live, Guard::BuiltIn, "the agent, unless another is named"),
    key("agent.project_default", Kind::Agent, Effect::Live, Guard::BuiltIn, "the agent of new projects"),
    guarded("agent.path", Kind::Path, "the default agent's program"),
    live("agent.model", Kind::Text, "the default agent's model"),
    live("agent.max_turns", number(1, u32::MAX as u64), "how many model calls a turn may make"),
    guarded("agent.allowed_tools", Kind::Texts, "the tools that an agent may use"),
    key("agent.permissions", PERMISSIONS, Effect::Live, Guard::ClosedTo("bypass"), "what an agent may do without asking"),
    live("agent.thinking", THINKING, "how hard the model thinks"),
    live("agent.timeout", Kind::Duration, "how long a turn may take"),
    live("agent.idle_timeout", Kind::Duration, "how long an agent may print nothing"),
    live("agent.ask_timeout", Kind::Duration, "how long a permission request stays open"),
    guarded("agent.env", Kind::Variables, "variables that every agent gets, by exact name"),
    live("agents.*.dialect", DIALECT, "how the agent is spoken with"),
    live("agents.*.command", Kind::Command, "its program and arguments"),
    live("agents.*.env", Kind::Values, "variables that it gets, with their values"),
    live("agents.*.pass_env", Kind::Variables, "variables that are passed on to it, by exact name"),
    live("agents.*.version", Kind::Command, "what prints its version"),
    guarded("opencode.enabled", Kind::Switch, "whether the agent opencode is a server that runs already"),
    guarded("opencode.url", Kind::Text, "where that server is"),
    guarded("opencode.username", Kind::Text, "as whom to log in there"),
    guarded("opencode.password", Kind::Secret, "its password"),
    live("sessions.scope", SCOPE, "who shares a conversation"),
    live("sessions.idle", Kind::DurationOrOff, "how long until a quiet conversation starts afresh"),
    live("sessions.reset_words", Kind::Texts, "messages that start a conversation afresh"),
    live("busy", BUSY, "what becomes of a message that comes while a turn runs"),
    live("retry.max", number(0, 100), "how often a turn is tried again"),
    live("retry.first_delay", Kind::Duration, "the wait before the first retry; it doubles each time"),
    live("heartbeat.enabled", Kind::Switch, "whether there are heartbeats: every 30 minutes, unless `every` says otherwise"),
    live("heartbeat.every", Kind::DurationOrOff, "how often there is a heartbeat"),
    live("heartbeat.prompt", Kind::Text, "what the agent is told then"),
    live("heartbeat.conversation", Kind::Conversation, "where, such as local:main"),
    live("heartbeat.idle", Kind::DurationOrOff, "how long after a person's last word there still are heartbeats"),
    guarded("hooks.*.on", Kind::Choices(EVENTS), "when the hook is run"),
    guarded("hooks.*.instruction", Kind::Words, "what it tells the agent"),
    guarded("hooks.*.command", Kind::Command, "the program that it runs, and its arguments"),
    guarded("hooks.*.url", Kind::Url, "where it posts what happened"),
    guarded("hooks.*.timeout", Kind::DurationUpTo(LONGEST_TIMEOUT), "how long it may take"),
    guarded("hooks.*.on_failure", ON_FAILURE, "whether its failure stops what it is run before"),
    guarded("hooks.*.conversation", Kind::Conversation, "where its instruction goes"),
    guarded("hooks.*.channels", Kind::Texts, "the channels that it is for"),
    live("inbound.messagePrefix", Kind::Text, "what stands before each message from a chat"),
    live("inbound.responsePrefix", Kind::Text, "what stands before each answer in a chat"),
    live("inbound.timestampPrefix", Kind::TimeZone, "the time zone in which each message from a chat is told when it came"),
    live("inbound.reply.mode", MODE, "whether an agent answers, or a fixed text"),
    live("inbound.reply.text", Kind::Text, "that text"),
    live("inbound.reply.agent.kind", Kind::Agent, "which agent answers"),
    live("inbound.reply.agent.format", FORMAT, "which output its CLI is asked for"),
    live("inbound.reply.agent.identityPrefix", Kind::Text, "what stands before the prompt"),
    guarded("inbound.reply.command", Kind::Command, "the agent's command line as a template"),
    guarded("inbound.reply.cwd", Kind::Path, "where the agent works"),
    live("inbound.reply.timeoutSeconds", SECONDS, "how long a turn may take"),
    live("inbound.reply.bodyPrefix", Kind::Text, "what stands before each message"),
    guarded("inbound.reply.mediaUrl", Kind::Text, "a picture or file for each reply"),
    live("inbound.reply.mediaMaxMb", number(1, 1024), "how large the files of a reply may be"),
    live("inbound.reply.typingIntervalSeconds", SECONDS, "how often typing is shown"),
    live("inbound.reply.heartbeatMinutes", number(0, 525_600), "how often there is a heartbeat; 0 is never"),
    live("inbound.reply.session.scope", SCOPE, "who shares a conversation"),
    live("inbound.reply.session.resetTriggers", Kind::Texts, "messages that start a conversation afresh"),
    live("inbound.reply.session.idleMinutes", MINUTES, "how long until a quiet conversation starts afresh"),
    live("inbound.reply.session.heartbeatIdleMinutes", MINUTES, "how long after a person's last word there still are heartbeats"),
    live("inbound.reply.session.sendSystemOnce", Kind::Switch, "whether identity and prefix come with the first message only"),
    live("inbound.reply.session.sessionIntro", Kind::Text, "what stands before the first message"),
    guarded("inbound.reply.session.sessionArgNew", Kind::Texts, "arguments for a new session"),
    guarded("inbound.reply.session.sessionArgResume", Kind::Texts, "arguments for a session that goes on"),
    live("inbound.reply.session.sessionArgBeforeBody", Kind::Switch, "whether they stand before the message"),
    guarded("inbound.transcribeAudio.command", Kind::Command, "what makes a text of a recording"),
    live("inbound.transcribeAudio.timeoutSeconds", number(1, LONGEST_TIMEOUT), "how long that may take"),
    guarded("prompt.dir", Kind::Path, "where the files lie that agents are instructed by"),
    guarded("outbound.dir", Kind::Path, "a folder whose files are sent as messages"),
    live("archive.enabled", Kind::Switch, "whether what is said is written to files"),
    guarded("archive.dir", Kind::Path, "where those files are"),
    live("archive.history_retention", Kind::DurationOrOff, "how long the message history is kept"),
    guarded("api.roots", Kind::Paths, "the folders that projects may lie in"),
    guarded("api.shell", Kind::Texts, "the programs that callers may run"),
    guarded("api.git", Kind::Texts, "the commands of git that callers may run"),
    restart("api.requests_per_key", number(1, 1_000_000), "how many requests a key may make in a minute"),
    restart("api.requests_per_address", number(1, 1_000_000), "how many an address may make in a minute"),
    restart("api.max_body", number(1024, 64 * 1024 * 1024), "how long a body may be, in bytes"),
    live("api.heartbeat", Kind::DurationUpTo(300), "how often a silent stream shows that it lives"),
    restart("api.cors_origins", Kind::Origins, "the origins whose pages may call"),
    guarded("api.trusted_proxies", Kind::Networks, "the proxies that are believed when they say whom they speak for"),
    guarded("api.private_webhooks", Kind::Switch, "whether webhooks may lead to this machine and the networks around it"),
    guarded("api.metrics", METRICS, "who may read the metrics"),
    live("media.max_mb", number(1, 1024), "how large files may be that come or go, in megabytes"),
    live("media.max_image_mb", number(1, 1024), "how large images may be among them"),
    live("media.max_audio_mb", number(1, 1024), "how large recordings may be"),
    live("media.max_video_mb", number(1, 1024), "how large films may be"),
    live("media.max_document_mb", number(1, 1024), "how large everything else may be"),
    live("media.keep_mb", number(1, 1024 * 1024), "how much of what came with messages is kept together"),
    guarded("media.send_from", Kind::Paths, "folders whose files an answer may send"),
    guarded("media.transcribe.command", Kind::Command, "what makes a text of a recording"),
    guarded("media.transcribe.timeout", Kind::DurationUpTo(LONGEST_TIMEOUT), "how long that may take"),
    restart("discord.token", Kind::Secret, "the bot's token"),
    guarded("discord.guilds", Kind::Ids, "the servers in which the bot answers"),
    guarded("discord.channels", Kind::Ids, "the channels in which it answers"),
    guarded("discord.users", Kind::Ids, "who may talk to it; '*' is everybody"),
    guarded("discord.roles", Kind::Ids, "the roles whose members may talk to it"),
    guarded("discord.owners", Kind::Ids, "who may also answer what others are asked"),
    guarded("discord.answer_all_in", Kind::Ids, "the channels in which it answers without being mentioned"),
    guarded("discord.pairing", Kind::Switch, "whether strangers get a code with which they can be let in"),
    live("discord.messages_per_minute", number(1, 10_000), "how many messages somebody may send in a minute"),
    live("discord.threads", Kind::Switch, "whether an answer in a channel begins a thread"),
    live("discord.long_answers", LONG_ANSWERS, "what becomes of an answer that is longer than a message"),
    live("discord.detail", DETAIL, "how much is shown of a turn while it runs"),
    live("discord.output_channel", Kind::Id, "where agents speak that nobody asked, unless they are told where"),
    restart("discord.requests_per_second", number(1, 10_000), "how many requests Discord takes from the bot in a second"),
    restart("discord.api_url", Kind::Url, "where Discord's API is, if not at Discord"),
    restart("discord.gateway_url", Kind::Text, "where its gateway is, if not at Discord"),
    restart("twilio.account_sid", Kind::Sid("AC"), "the account at Twilio"),
    restart("twilio.auth_token", Kind::Secret, "its token, by which Twilio's calls are known"),
    restart("twilio.api_key", Kind::Sid("SK"), "a key to call Twilio with instead of the token"),
    restart("twilio.api_secret", Kind::Secret, "the secret of that key"),
    restart("twilio.whatsapp_from", Kind::WhatsApp, "the number that answers by WhatsApp"),
    restart("twilio.sms_from", Kind::Phone, "the number that answers by SMS"),
    restart("twilio.messaging_service", Kind::Sid("MG"), "the service that chooses a number for SMS"),
    restart("twilio.public_url", Kind::PublicUrl, "where Twilio reaches this gateway"),
    restart("twilio.receive", RECEIVE, "whether Twilio calls or is asked"),
    restart("twilio.poll_every", Kind::DurationUpTo(300), "how often it is asked"),
    guarded("twilio.allow_from", Kind::Phones, "who may write; '*' is everybody"),
    guarded("twilio.owners", Kind::Phones, "who may also answer what others are asked"),
    guarded("twilio.pairing", Kind::Switch, "whether strangers get a code with which they can be let in"),
    live("twilio.messages_per_minute", number(1, 10_000), "how many messages somebody may send in a minute"),
    guarded("twilio.groups", Kind::Sids("CH"), "the conversations of several people in which it takes part"),
    live("twilio.group_words", Kind::Texts, "the words by which it is called there"),
    live("twilio.group_patterns", Kind::Patterns, "patterns by which it is called there as well"),
    live("twilio.group_context", number(0, 50), "how many messages of others it is told with one"),
    live("twilio.window_template", Kind::Sid("HX"), "what somebody gets who has not written for a day"),
    live("twilio.approval_template", Kind::Sid("HX"), "what asks for a permission by buttons"),
    restart("twilio.api_url", Kind::Url, "where Twilio's API is, if not at Twilio"),
];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn no_key_is_there_twice_or_the_start_of_another() {
        for (number, key) in KEYS.iter().enumerate() {
            for other in KEYS.iter().skip(number + 1) {
                assert_ne!(key.path, other.path);
                assert!(!other.path.starts_with(&format!("{}.", key.path)), "{}", other.path);
            }
        }
    }

    #[test]
    fn a_name_is_a_key_a_section_or_nothing() {
        assert!(matches!(named(&["busy"]), Named::Key(_)));
        assert!(matches!(named(&["agents", "goose", "env"]), Named::Key(_)));
        let Named::Section(names) = named(&["inbound", "reply"]) else { panic!() };
        assert!(names.starts_with(&["mode", "text", "agent", "command"]), "{names:?}");
        assert!(matches!(named(&["agents"]), Named::Section(names) if names == ["*"]));
        assert!(matches!(named(&["busy", "x"]), Named::Nothing));
        assert!(matches!(named(&["agent", "paht"]), Named::Nothing));
    }

    #[test]
    fn the_documentation_has_a_row_for_every_key_of_the_reply() {
        let page = include_str!("../../../../docs/inbound-reply.md");
        for key in KEYS.iter().filter_map(|key| key.path.strip_prefix("inbound.reply.")) {
            assert!(page.contains(&format!("| `{key}` |")), "{key} is not on the page");
        }
    }

    #[test]
    fn the_documentation_names_the_keys_that_need_a_restart_and_no_others() {
        let page = include_str!("../../../../docs/configuration.md");
        let (_, rest) = page.split_once("\n## Changes while a gateway runs\n").unwrap();
        let (paragraph, _) = rest.split_once("\n## ").unwrap();
        for Key { path, effect, .. } in KEYS {
            let is_named = paragraph.contains(&format!("`{path}`"));
            assert_eq!(is_named, *effect == Effect::Restart, "{path}");
        }
    }

    #[test]
    fn a_strangers_directory_can_choose_a_model_but_no_program_and_no_permission() {
        let allows = |path: &str, value: Value| find(path).unwrap().is_harmless(&value);
        assert!(allows("agent.model", json!("m")));
        assert!(allows("agent.default", json!("codex")));
        assert!(!allows("agent.default", json!("own")));
        assert!(allows("agent.permissions", json!("read-only")));
        assert!(!allows("agent.permissions", json!("bypass")));
        assert!(!allows("agent.path", json!("./claude")));
        assert!(!allows("opencode.url", json!("http://example.org")));
    }
}
