//! Projects as they are shown. The names are part of the contract.

use ostler_core::agent::{AgentRef, Caps};
use serde::Serialize;
use utoipa::ToSchema;

use super::super::health::provider;
use crate::{
    clock::Millis, id::ProjectId, project::settings::SettingsView, store::projects::Project,
};

/// A project.
#[derive(Serialize, ToSchema)]
#[schema(as = Project)]
pub(crate) struct ProjectView {
    #[schema(value_type = String, pattern = "^prj_[0-9a-f]{32}$")]
    pub(crate) id: ProjectId,
    pub(crate) name: String,
    /// Where its agents work: absolute, with no link in it.
    pub(crate) directory: String,
    /// Who answers: the project's own agent, or the default.
    #[schema(example = "claudecode")]
    pub(crate) agent_provider: String,
    #[schema(value_type = Capabilities)]
    pub(crate) agent_capabilities: Caps,
    pub(crate) settings: SettingsView,
    #[schema(value_type = String, format = DateTime)]
    pub(crate) created_at: Millis,
    #[schema(value_type = String, format = DateTime)]
    pub(crate) updated_at: Millis,
}

impl ProjectView {
    pub(crate) fn new(project: Project, agent: &AgentRef) -> Self {
        let Project { id, name, directory, settings, created_at, updated_at, .. } = project;
        Self {
            id,
            name,
            directory,
            agent_provider: provider(&agent.name).to_owned(),
            agent_capabilities: agent.caps.clone(),
            settings: SettingsView::from(&settings.wishes),
            created_at,
            updated_at,
        }
    }
}

/// A project that is no more.
#[derive(Serialize, ToSchema)]
#[schema(as = DeletedProject)]
pub(crate) struct DeletedView {
    #[schema(value_type = String, pattern = "^prj_[0-9a-f]{32}$")]
    pub(crate) id: ProjectId,
    /// How many commands were not over, and were cancelled.
    pub(crate) cancelled_commands: usize,
}

/// What an agent can do. Documents [`Caps`], which knows nothing of HTTP.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only the document is made of it")]
pub(crate) struct Capabilities {
    /// A session can be resumed.
    supports_session_continuation: bool,
    /// A model can be chosen.
    supports_model_selection: bool,
    /// Tools can be restricted.
    supports_tool_control: bool,
    /// Text comes in pieces while the model writes.
    supports_streaming: bool,
    /// Somebody can be asked for permission.
    supports_approvals: bool,
    /// A process can be kept for several turns.
    supports_warm: bool,
    /// The number of model calls can be limited.
    supports_max_turns: bool,
    /// A system prompt can be given.
    supports_system_prompt: bool,
    /// Models known to work; any other name is passed on as it is.
    supported_models: Vec<String>,
    /// The model used when none is named, as far as it is fixed.
    default_model: Option<String>,
    /// The longest prompt in bytes; 0 is unlimited.
    max_prompt_length: usize,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use ostler_core::agent::AGENTS;
    use utoipa::PartialSchema as _;

    use super::*;

    #[test]
    fn the_documented_capabilities_are_those_that_are_told() {
        let schema = serde_json::to_value(Capabilities::schema()).unwrap();
        let documented: BTreeSet<_> = schema["properties"].as_object().unwrap().keys().collect();
        let told = serde_json::to_value(&AGENTS[0].caps).unwrap();
        assert_eq!(documented, told.as_object().unwrap().keys().collect());
    }
}
