//! How what the prompt files say reaches an agent: with the system prompt, or
//! before the prompt of one turn.
//!
//! What is said at some turns only is never part of the system prompt: some
//! agents hear that when a session begins and not again, and a system prompt
//! that changes costs the others a new process and the model's cache.

use ostler_core::{
    Memo,
    agent::{AgentSpec, Heard},
    event::TurnReport,
    memo,
    request::TurnRequest,
};

use super::{begin::Beginning, inbound::Origin, policy::Policy};
use crate::prompt::{Instructions, Occasion};

/// Stands before instructions that an agent did not hear when its session began.
const CHANGED: &str = "These instructions hold from now on, instead of any earlier ones.";
/// Stands between what is put before a prompt and the prompt.
const MESSAGE: &str = "# Message";

/// What a turn tells its session of.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// The instructions that were said again, by their hash.
    again: Option<String>,
}

impl Told {
    /// Notes with the session what it was told, if the agent answered.
    pub(crate) fn noted(self, mut report: TurnReport) -> TurnReport {
        if let (Some(hash), None, Some(memo)) = (self.again, &report.error, &mut report.memo) {
            memo.system_hash = Some(hash);
        }
        report
    }
}

/// Gives a request what the prompt files say now. A system prompt of the
/// message's own takes their place, and `ostler run` has none.
pub(crate) async fn give(
    policy: &Policy,
    beginning: &Beginning,
    request: &mut TurnRequest,
) -> Told {
    let Beginning { payload, agent, memo, .. } = beginning;
    let is_wanted = !payload.origin.is_bare() && payload.wishes.system.is_none();
    let Some(folder) = policy.prompt_files.as_ref().filter(|_| is_wanted) else {
        return Told::default();
    };
    let occasion =
        Occasion { is_first: memo.is_none(), is_heartbeat: payload.origin == Origin::Heartbeat };
    let instructions = folder.read(occasion).await;
    add(instructions, agent, memo.as_ref(), request)
}

/// Adds instructions to a request.
fn add(
    instructions: Instructions,
    agent: &AgentSpec,
    memo: Option<&Memo>,
    request: &mut TurnRequest,
) -> Told {
    let Instructions { system, before } = instructions;
    let mut again = None;
    let late = memo.filter(|_| agent.system_prompt == Heard::FirstTurn);
    match (system, late) {
        (Some(text), Some(memo)) => {
            let hash = memo::hash(&text);
            again = (memo.system_hash.as_ref() != Some(&hash)).then_some((text, hash));
        }
        (system, _) => request.options.system_prompt = system,
    }
    let changed = again.as_ref().map(|(text, _)| format!("{CHANGED}\n\n{text}"));
    let parts: Vec<String> = changed.into_iter().chain(before).collect();
    if parts.is_empty() {
        return Told::default();
    }
    let prompt = format!("{}\n\n{MESSAGE}\n\n{}", parts.join("\n\n"), request.prompt);
    let longest = agent.caps.max_prompt_length;
    if longest != 0 && prompt.len() > longest {
        // The message comes first: with them it would be refused.
        tracing::warn!(agent = %agent.name, "a message leaves no room for instructions");
        return Told::default();
    }
    request.prompt = prompt;
    Told { again: again.map(|(_, hash)| hash) }
}

#[cfg(test)]
mod tests {
    use ostler_core::agent::{AGENTS, find};

    use super::*;

    fn instructions(system: Option<&str>, before: Option<&str>) -> Instructions {
        let owned = |text: &str| text.to_owned();
        Instructions { system: system.map(owned), before: before.map(owned) }
    }

    fn add_to(
        agent: &str,
        memo: Option<&Memo>,
        system: Option<&str>,
        before: Option<&str>,
    ) -> (TurnRequest, Told) {
        let mut request = TurnRequest::new("hi", ".");
        let told = add(instructions(system, before), find(agent).unwrap(), memo, &mut request);
        (request, told)
    }

    #[test]
    fn a_session_begins_with_the_system_prompt_whoever_answers() {
        for agent in AGENTS {
            let (request, told) = add_to(&agent.name, None, Some("Be Ada."), None);
            assert_eq!(request.options.system_prompt.as_deref(), Some("Be Ada."));
            assert_eq!((request.prompt.as_str(), told), ("hi", Told::default()));
        }
    }

    #[test]
    fn an_agent_that_hears_each_system_prompt_gets_it_each_time() {
        for agent in ["claude", "opencode", "pi"] {
            let memo = Memo { system_hash: Some("other".into()), ..Memo::of_id(agent, "s") };
            let (request, _) = add_to(agent, Some(&memo), Some("Be Ada."), None);
            assert_eq!(request.options.system_prompt.as_deref(), Some("Be Ada."), "{agent}");
            assert_eq!(request.prompt, "hi");
        }
    }

    #[test]
    fn one_that_hears_only_the_first_is_told_once_of_a_change() {
        for agent in ["codex", "gemini"] {
            let hash = memo::hash("Be Ada.");
            let before = Memo { system_hash: Some(hash.clone()), ..Memo::of_id(agent, "s") };
            let (request, told) = add_to(agent, Some(&before), Some("Be Ada."), None);
            assert_eq!((request.prompt.as_str(), told), ("hi", Told::default()), "{agent}");
            assert_eq!(request.options.system_prompt, None);
            let (request, told) = add_to(agent, Some(&before), Some("Be Bob."), None);
            assert_eq!(request.options.system_prompt, None, "the agent would say it is ignored");
            assert_eq!(request.prompt, format!("{CHANGED}\n\nBe Bob.\n\n# Message\n\nhi"));
            let mut report = TurnReport::not_started(find(agent).unwrap().name.clone(), failure());
            report.memo = Some(before.clone());
            let told_again = Told { again: told.again.clone() };
            assert_eq!(told.noted(report.clone()).memo.as_ref(), Some(&before), "it failed");
            report.error = None;
            let memo = told_again.noted(report).memo.unwrap();
            let (request, _) = add_to(agent, Some(&memo), Some("Be Bob."), None);
            assert_eq!(request.prompt, "hi");
        }
    }

    fn failure() -> ostler_core::failure::Failure {
        ostler_core::failure::Failure::new(ostler_core::failure::FailureKind::Timeout, "slow")
    }

    #[test]
    fn what_is_for_one_turn_goes_before_its_prompt() {
        for agent in AGENTS {
            let (request, told) =
                add_to(&agent.name, None, Some("Be Ada."), Some("# Boot\n\nLook."));
            assert_eq!(request.prompt, "# Boot\n\nLook.\n\n# Message\n\nhi");
            assert_eq!(request.options.system_prompt.as_deref(), Some("Be Ada."));
            assert_eq!(told, Told::default());
        }
    }

    #[test]
    fn a_message_that_leaves_no_room_is_sent_as_it_is() {
        let codex = find("codex").unwrap();
        let text = "x".repeat(codex.caps.max_prompt_length);
        let mut request = TurnRequest::new(text.clone(), ".");
        let memo = Memo::of_id("codex", "s");
        let told = add(instructions(Some("a"), Some("b")), codex, Some(&memo), &mut request);
        assert_eq!(told, Told::default());
        assert!(request.prompt == text);
    }
}
