//! Tells of a turn of Pi, as events or only with the answer at its end.

use serde_json::Value;

use super::super::agent::{Agent, Props};
use super::super::answer::{Answer, Tool, pieces};
use super::super::fault::Faults;
use super::super::id::Ids;
use super::super::session::{Session, Sessions};
use super::super::stage::{Stage, Stream};
use super::super::{Error, os};
use super::Output;
use super::lines::{self, Assistant, Block};
use super::rpc::Waiting;

pub(super) struct Voice<'a, 'b> {
    pub(super) output: Output,
    pub(super) props: &'a Props,
    pub(super) provider: String,
    pub(super) ids: Ids,
    pub(super) stage: &'a mut Stage<'b>,
    /// Where sessions are kept, if they are.
    pub(super) sessions: Option<Sessions>,
    /// What came in while a turn ran.
    pub(super) waiting: Waiting,
}

/// Whether a turn goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    On,
    /// Somebody stopped it.
    Cut,
}

impl Voice<'_, '_> {
    /// Plays a turn and returns its answer.
    pub(super) fn turn(&mut self, session: &mut Session, prompt: &str) -> Result<String, Error> {
        let is_new = session.prompts.is_empty();
        let mut answer = session.ask(Agent::Pi.name(), prompt);
        // A turn that is killed half-way leaves its prompt in the session.
        self.save(session)?;
        self.say(&lines::of("agent_start"))?;
        self.say(&lines::of("turn_start"))?;
        let mut messages = Vec::new();
        if is_new {
            self.whole(lines::system(session), &mut messages)?;
        }
        self.whole(lines::user(prompt), &mut messages)?;
        let mut flow = self.answer(session, &answer, &mut messages)?;
        while flow == Flow::On
            && let Some(text) = self.waiting.take_steering()
        {
            self.say(&self.waiting.queue())?;
            self.say(&lines::of("turn_start"))?;
            self.whole(lines::user(&text), &mut messages)?;
            answer = session.ask(Agent::Pi.name(), &text);
            self.save(session)?;
            flow = self.answer(session, &answer, &mut messages)?;
        }
        self.say(&lines::agent_end(&messages))?;
        self.say(&lines::of("agent_settled"))?;
        Ok(answer.text)
    }

    fn answer(
        &mut self,
        session: &Session,
        answer: &Answer,
        messages: &mut Vec<Value>,
    ) -> Result<Flow, Error> {
        answer.faults.begin(self.stage)?;
        let provider = self.provider.clone();
        let (model, provider) = (session.model.as_str(), provider.as_str());
        let said = Assistant { model, provider, block: Block::Text(&answer.text) };
        if self.beat(answer.faults.delay)? == Flow::Cut {
            return self.cut(&said, "", messages);
        }
        if let Some(tool) = &answer.tool {
            let id = self.ids.prefixed("call_")?;
            let called = Assistant { model, provider, block: Block::Tool { id: &id, tool } };
            if self.message(&called, &answer.faults, messages)? == Flow::Cut {
                return Ok(Flow::Cut);
            }
            if self.run(&called, &id, tool, messages)? == Flow::Cut {
                return self.cut(&said, "", messages);
            }
            self.say(&lines::of("turn_start"))?;
        }
        let flow = self.message(&said, &answer.faults, messages)?;
        if flow == Flow::On {
            self.say(&lines::turn_end(&said.whole(), &[]))?;
        }
        Ok(flow)
    }

    fn run(
        &mut self,
        called: &Assistant<'_>,
        id: &str,
        tool: &Tool,
        messages: &mut Vec<Value>,
    ) -> Result<Flow, Error> {
        let [start, update, end] = lines::tool_execution(id, tool);
        let mut flow = Flow::On;
        for line in [start, update] {
            flow = self.beat(self.props.pace)?;
            if flow == Flow::Cut {
                break;
            }
            self.say(&line)?;
        }
        let result = match flow {
            Flow::On => {
                self.say(&end)?;
                lines::tool_result(id, tool)
            }
            Flow::Cut => {
                self.say(&lines::tool_aborted(id))?;
                lines::tool_result_aborted(id)
            }
        };
        self.whole(result.clone(), messages)?;
        self.say(&lines::turn_end(&called.whole(), &[result]))?;
        Ok(flow)
    }

    fn message(
        &mut self,
        message: &Assistant<'_>,
        faults: &Faults,
        messages: &mut Vec<Value>,
    ) -> Result<Flow, Error> {
        self.say(&lines::message("message_start", &message.begun()))?;
        self.say(&message.start())?;
        let mut told = String::new();
        for (n, piece) in pieces(&message.content()).into_iter().enumerate() {
            if self.beat(faults.pace(n, self.props.pace))? == Flow::Cut {
                return self.cut(message, &told, messages);
            }
            self.say(&message.delta(piece))?;
            told.push_str(piece);
            faults.middle()?;
        }
        self.say(&message.end())?;
        let whole = message.whole();
        self.say(&lines::message("message_end", &whole))?;
        messages.push(whole);
        Ok(Flow::On)
    }

    /// Ends a message that somebody stopped.
    fn cut(
        &mut self,
        message: &Assistant<'_>,
        told: &str,
        messages: &mut Vec<Value>,
    ) -> Result<Flow, Error> {
        let whole = message.aborted(told);
        self.say(&lines::message("message_end", &whole))?;
        self.say(&lines::turn_end(&whole, &[]))?;
        messages.push(whole);
        Ok(Flow::Cut)
    }

    /// A message that is not streamed has its start and its end all the same.
    fn whole(&mut self, message: Value, messages: &mut Vec<Value>) -> Result<(), Error> {
        self.say(&lines::message("message_start", &message))?;
        self.say(&lines::message("message_end", &message))?;
        messages.push(message);
        Ok(())
    }

    /// Lets time pass, with open ears where there is somebody to listen to.
    fn beat(&mut self, pause: std::time::Duration) -> Result<Flow, Error> {
        match self.output {
            Output::Rpc => self.listen(pause),
            Output::Text | Output::Json => {
                os::wait(pause);
                Ok(Flow::On)
            }
        }
    }

    fn save(&self, session: &Session) -> Result<(), Error> {
        self.sessions.as_ref().map_or(Ok(()), |sessions| sessions.save(session))
    }

    pub(super) fn say(&mut self, line: &Value) -> Result<(), Error> {
        match self.output {
            // The real one drops what it does when nobody is there any more.
            Output::Rpc if self.waiting.has_ended() => Ok(()),
            Output::Json | Output::Rpc => self.stage.write_line(Stream::Stdout, &line.to_string()),
            Output::Text => Ok(()),
        }
    }
}
