//! What is said to the gateway, one word each, on both databases.

use ostler_core::request::Thinking;

use super::*;
use crate::{
    channel::directive,
    config::{Scope, Sessions},
    gateway::{
        inbound::{Accepted, Inbound, LOCAL},
        testing::{Knobs, Rig, inbound},
    },
    queue::JobState,
    store::testing::on_both,
    wishes::Wishes,
};

/// Says something to the gateway in a conversation.
async fn say(rig: &Rig, conversation: &str, text: &str) -> String {
    direct(rig, conversation, &directive::read(text).unwrap()).await
}

async fn direct(rig: &Rig, conversation: &str, directive: &Directive) -> String {
    let at = Address::new(LOCAL, conversation).unwrap();
    rig.gateway.direct(&at, "me", None, directive).await.unwrap()
}

/// Returns the models and levels that the agent was asked for.
fn asked(rig: &Rig) -> Vec<String> {
    let asked = std::fs::read_to_string(rig.path("asked")).unwrap_or_default();
    asked.lines().map(str::to_owned).collect()
}

async fn ask_with(rig: &Rig, text: &str, wishes: Wishes) {
    let sent = rig.try_send(Inbound { wishes, ..inbound("a", text) }).await.unwrap();
    rig.end_of(sent.job).await;
}

on_both! {
    async fn stop_ends_what_runs_and_what_waits(store: Store) {
        let rig = Rig::new(store, Knobs::default()).await;
        assert_eq!(say(&rig, "a", "stop").await, "Nothing runs here.");
        rig.ask("a", "one").await;
        assert_eq!(say(&rig, "a", "/stop").await, "Nothing runs here.");
        let jobs = [rig.send("a", "hang").await.job, rig.send("a", "two").await.job];
        rig.until_hanging().await;
        assert_eq!(say(&rig, "b", "stop").await, "Nothing runs here.");
        assert_eq!(say(&rig, "a", "Stop!").await, "Stopped; 1 message that waited is dropped.");
        for job in jobs {
            assert_eq!(rig.end_of(job).await.1.state, JobState::Cancelled);
        }
        rig.stop().await;
    }

    async fn status_tells_who_answers_what_runs_and_what_waits(store: Store) {
        let rig = Rig::new(store, Knobs::default()).await;
        assert_eq!(
            say(&rig, "a", "/status").await,
            "pi answers, with its usual model.\nThe next message begins a session.\n\
             Nothing runs, and nothing waits.\nThinking is as configured."
        );
        rig.ask("a", "one").await;
        say(&rig, "a", "/model large").await;
        say(&rig, "a", "/think low").await;
        let running = rig.send("a", "gate").await.job;
        rig.until_hanging().await;
        rig.send("a", "two").await;
        let last = rig.send("a", "three").await.job;
        let status = say(&rig, "a", "/status").await;
        let lines: Vec<_> = status.lines().collect();
        assert_eq!(lines[0..2], ["pi answers, with the model large.", "The session is s1."]);
        assert!(lines[2].starts_with("A turn has been running for "), "{status}");
        assert!(lines[2].ends_with("s, and 2 messages wait."), "{status}");
        assert_eq!(lines[3], "Thinking is low.");
        rig.open_gate().await;
        for job in [running, last] {
            rig.end_of(job).await;
        }
        rig.stop().await;
    }

    async fn another_agent_answers_in_a_new_session_and_that_is_written_down(store: Store) {
        let rig = Rig::new(store.clone(), Knobs::default()).await;
        assert_eq!(say(&rig, "a", "/agent").await, "pi answers here. There are: pi.");
        let Accepted { conversation, job, .. } = rig.send("a", "one").await;
        rig.end_of(job).await;
        assert_eq!(say(&rig, "a", "/agent pi").await, "pi answers here already.");
        rig.ask("a", "two").await;
        say(&rig, "a", "/model large").await;
        let changed = say(&rig, "a", "/agent gemini").await;
        assert_eq!(changed, "gemini answers from now on, in a new session.");
        assert!(say(&rig, "a", "/agent").await.starts_with("gemini answers here."));
        rig.ask("a", "three").await;
        say(&rig, "a", "/agent pi").await;
        rig.ask("a", "four").await;
        let calls = rig.calls();
        assert_eq!(calls[0..2], ["new|one", "s1|two"]);
        assert!(calls[2].starts_with("new|") && calls[2].ends_with("three"), "{calls:?}");
        assert!(calls[3].starts_with("new|") && calls[3].ends_with("four"), "{calls:?}");
        // A model belongs to its agent.
        assert_eq!(asked(&rig), [""; 0]);
        let subject = conversation.to_string();
        let audit = store.read(subject, |conn, it| Box::pin(audit::about(conn, it))).await;
        let audit: Result<Vec<_>, StoreError> = audit;
        let audit = audit.unwrap();
        assert_eq!(audit.len(), 2);
        assert_eq!((audit[0].actor.as_str(), audit[0].action.as_str()), ("local:me", "sessions.agent"));
        rig.stop().await;
    }

    async fn an_agent_that_is_not_there_or_cannot_run_changes_nothing(store: Store) {
        let rig = Rig::new(store, Knobs::default()).await;
        rig.ask("a", "one").await;
        let long = Directive::Agent(Some("m".repeat(6000)));
        assert_eq!(direct(&rig, "a", &long).await, "That is no name of an agent.");
        let unknown = say(&rig, "a", "/agent pigeon").await;
        assert!(unknown.contains("pigeon"), "{unknown}");
        std::fs::rename(rig.path("agent"), rig.path("away")).unwrap();
        assert_eq!(say(&rig, "a", "/agent codex").await, "codex cannot be run on this machine.");
        std::fs::rename(rig.path("away"), rig.path("agent")).unwrap();
        rig.ask("a", "two").await;
        assert_eq!(rig.calls(), ["new|one", "s1|two"]);
        rig.stop().await;
    }

    async fn a_model_is_used_from_the_next_message_on_unless_one_wishes_another(store: Store) {
        let rig = Rig::new(store, Knobs::default()).await;
        assert!(say(&rig, "a", "/model").await.contains("usual"));
        rig.ask("a", "one").await;
        assert_eq!(say(&rig, "a", "/model large").await, "The model is large from the next message on.");
        assert_eq!(say(&rig, "a", "/model").await, "The model is large.");
        rig.ask("a", "two").await;
        rig.ask("b", "elsewhere").await;
        ask_with(&rig, "three", Wishes { model: Some("small".to_owned()), ..Wishes::default() }).await;
        rig.ask("a", "four").await;
        // Another agent has models of its own.
        ask_with(&rig, "five", Wishes { agent: Some("gemini".to_owned()), ..Wishes::default() }).await;
        assert_eq!(asked(&rig), ["model large", "model small", "model large"]);
        assert!(say(&rig, "a", "/model").await.contains("usual"));
        assert_eq!(say(&rig, "a", "/model --help").await, "That is no name of a model.");
        let long = Directive::Model(Some("m".repeat(201)));
        assert_eq!(direct(&rig, "a", &long).await, "That is no name of a model.");
        say(&rig, "b", "/model large").await;
        say(&rig, "b", "/model default").await;
        rig.ask("b", "six").await;
        assert_eq!(asked(&rig).len(), 3);
        assert_eq!(rig.calls()[0..2], ["new|one", "s1|two"]);
        rig.stop().await;
    }

    async fn a_level_of_thinking_is_used_from_the_next_message_on(store: Store) {
        let rig = Rig::new(store, Knobs::default()).await;
        assert_eq!(say(&rig, "a", "/think").await, "Thinking is as configured.");
        assert_eq!(say(&rig, "a", "/think high").await, "Thinking is high from the next message on.");
        let unknown = say(&rig, "a", "/think hard").await;
        assert!(unknown.starts_with("There is no level \"hard\". Say off, minimal"), "{unknown}");
        assert_eq!(say(&rig, "a", "/think").await, "Thinking is high.");
        rig.ask("a", "one").await;
        ask_with(&rig, "two", Wishes { thinking: Some(Thinking::Low), ..Wishes::default() }).await;
        say(&rig, "a", "/think default").await;
        rig.ask("a", "three").await;
        assert_eq!(asked(&rig), ["thinking high", "thinking low"]);
        rig.stop().await;
    }

    async fn verbose_is_kept_with_the_conversation(store: Store) {
        let rig = Rig::new(store.clone(), Knobs::default()).await;
        assert!(say(&rig, "a", "/verbose").await.starts_with("Verbose is as configured."));
        assert_eq!(say(&rig, "a", "/verbose on").await, "Verbose is on.");
        assert_eq!(say(&rig, "a", "/verbose").await, "Verbose is on.");
        let at = Address::new(LOCAL, "a").unwrap();
        let found = store.read(at, |conn, at| Box::pin(conversations::find_at(conn, at))).await;
        let found: Result<_, StoreError> = found;
        assert_eq!(found.unwrap().unwrap().settings().verbose, Some(true));
        assert_eq!(say(&rig, "a", "/verbose off").await, "Verbose is off.");
        assert_eq!(say(&rig, "b", "/verbose off").await, "Verbose is off.");
        rig.stop().await;
    }

    async fn help_names_the_words_and_restart_says_who_may(store: Store) {
        let rig = Rig::new(store, Knobs::default()).await;
        let help = say(&rig, "a", "/help").await;
        for word in ["/new", "/stop", "/status", "/agent", "/model", "/think", "/verbose", "/restart"] {
            assert!(help.contains(word), "{help}");
        }
        assert_eq!(say(&rig, "a", "/restart").await, "Only an owner may restart the gateway.");
        rig.stop().await;
    }

    async fn it_is_the_conversation_that_a_message_would_belong_to(store: Store) {
        let sessions = Sessions { scope: Scope::PerSender, ..Sessions::default() };
        let rig = Rig::new(store, Knobs { sessions, ..Knobs::default() }).await;
        let at = Address::new("webhook", "http://127.0.0.1:1/").unwrap();
        let sent = Inbound { address: at.clone(), ..inbound("a", "hang") };
        let job = rig.try_send(sent).await.unwrap().job;
        rig.until_hanging().await;
        let stop = |sender| rig.gateway.direct(&at, sender, None, &Directive::Stop);
        assert_eq!(stop("you").await.unwrap(), "Nothing runs here.");
        assert_eq!(stop("me").await.unwrap(), "Stopped.");
        assert_eq!(rig.end_of(job).await.1.state, JobState::Cancelled);
        rig.stop().await;
    }
}
