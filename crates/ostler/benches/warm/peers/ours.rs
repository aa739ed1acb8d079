//! No gateway at all, and the ways through Ostler.

use ostler_core::{Memo, event::Mode};
use serde_json::{Value, json};

use super::{AGENT, Ground};
use crate::{
    figures::{Clock, Gateway, PROMPT, Took},
    http::{Events, Http},
    process::{MARK, Talker, run_turn},
    raw,
    service::Site,
    stand::Stand,
};

/// What an event with text has in it.
const OUTPUT: &str = r#""type":"output""#;

pub(super) fn raw<'a>(ground: &'a Ground<'a>) -> Box<dyn Gateway + 'a> {
    let stand = stand(ground);
    let plan = stand.plan(Mode::Warm);
    raw::start(AGENT, stand.command(&plan), &stand.request)
}

pub(super) fn library<'a>(ground: &'a Ground<'a>) -> Box<dyn Gateway + 'a> {
    Box::new(Library { stand: stand(ground), memo: None })
}

struct Library<'a> {
    stand: Stand<'a>,
    memo: Option<Memo>,
}

impl Gateway for Library<'_> {
    fn turn(&mut self) -> Took {
        self.stand.turn(&mut self.memo)
    }
}

impl Drop for Library<'_> {
    fn drop(&mut self) {
        self.stand.shut_down();
    }
}

pub(super) fn run<'a>(ground: &'a Ground<'a>) -> Box<dyn Gateway + 'a> {
    Box::new(Run(stand(ground)))
}

struct Run<'a>(Stand<'a>);

impl Gateway for Run<'_> {
    fn turn(&mut self) -> Took {
        run_turn(&mut self.0.ostler("run", "stream-json"), OUTPUT)
    }
}

pub(super) fn chat<'a>(ground: &'a Ground<'a>) -> Box<dyn Gateway + 'a> {
    let mut command = stand(ground).ostler("chat", "stream-json");
    Box::new(Chat(Talker::start(command.env(MARK, &ground.place))))
}

struct Chat(Talker);

impl Gateway for Chat {
    fn turn(&mut self) -> Took {
        let mut clock = Clock::start();
        let prompt = json!({ "type": "prompt", "text": PROMPT });
        self.0.tell(&prompt.to_string());
        loop {
            let line = self.0.hear();
            if line.contains(OUTPUT) {
                clock.text();
            }
            if line.contains(r#""type":"complete""#) {
                assert!(line.contains(r#""mode":"warm""#), "{line}");
                return clock.end();
            }
        }
    }
}

pub(super) fn http<'a>(ground: &'a Ground<'a>) -> Box<dyn Gateway + 'a> {
    let site = Site::new(&ground.place, &json!({}), AGENT);
    let events = site.connect().listen(&format!("{}/events", site.project));
    Box::new(Served { calls: site.connect(), events, site, session: Value::Null })
}

/// A gateway's HTTP service: prompts by one connection, events by another.
struct Served {
    calls: Http,
    events: Events,
    site: Site,
    session: Value,
}

impl Gateway for Served {
    /// A turn is over when its request is answered and its last event has come.
    fn turn(&mut self) -> Took {
        let mut clock = Clock::start();
        let prompt = json!({ "prompt": PROMPT, "session_id": self.session });
        self.calls.post(&format!("{}/prompt", self.site.project), &prompt);
        self.calls.reply();
        loop {
            let line = self.events.next();
            if line.contains(OUTPUT) {
                clock.text();
            }
            if line.contains(r#""type":"agent_complete""#) {
                assert!(line.contains(r#""mode":"warm""#), "{line}");
            }
            if line.contains(r#""type":"complete""#) {
                let took = clock.end();
                let event: Value = serde_json::from_str(line.trim_start_matches("data:")).unwrap();
                assert_eq!(event["exit_code"], 0, "{event}");
                self.session = event["session_id"].clone();
                return took;
            }
        }
    }
}

fn stand<'a>(ground: &'a Ground<'a>) -> Stand<'a> {
    Stand::of(&ground.place, AGENT, ground.runtime, &ground.agent)
}
