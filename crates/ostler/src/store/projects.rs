//! Projects: a folder with a name, the agent that works there, and how.

use serde::{Deserialize, Serialize};

use super::{
    Conn, StoreError,
    db::{Row, values},
};
use crate::{clock::Millis, id::ProjectId, wishes::Wishes};

/// A project as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Project {
    pub(crate) id: ProjectId,
    pub(crate) name: String,
    /// Where its agents work: absolute, with no link in it.
    pub(crate) directory: String,
    /// Who answers; nobody in particular means the default of projects.
    pub(crate) agent: Option<String>,
    pub(crate) settings: ProjectSettings,
    pub(crate) created_at: Millis,
    pub(crate) updated_at: Millis,
}

/// How turns of a project are run, unless a prompt says otherwise. The field names
/// are stored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ProjectSettings {
    pub(crate) wishes: Wishes,
}

/// Stores a project.
pub(crate) async fn add(conn: &mut Conn, project: &Project) -> Result<(), StoreError> {
    let settings = serde_json::to_string(&project.settings).unwrap_or_else(|_| "{}".to_owned());
    conn.execute(
        "INSERT INTO projects (id, name, directory, agent, settings, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
        values![
            project.id,
            &project.name,
            &project.directory,
            project.agent.as_deref(),
            &settings,
            project.created_at,
            project.updated_at
        ],
    )
    .await
    .map(drop)
}

/// Returns a project by its id, unless it was deleted.
pub(crate) async fn find(conn: &mut Conn, id: ProjectId) -> Result<Option<Project>, StoreError> {
    let sql = "SELECT * FROM projects WHERE id = $1 AND deleted_at IS NULL";
    let row = conn.fetch_optional(sql, values![id]).await?;
    row.map(|row| Project::from_row(&row)).transpose()
}

impl Project {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        let settings = row.text("settings")?;
        let settings = serde_json::from_str(&settings).map_err(|error| StoreError::Unreadable {
            column: "settings",
            why: error.to_string().into(),
        })?;
        Ok(Self {
            id: row.parsed("id")?,
            name: row.text("name")?,
            directory: row.text("directory")?,
            agent: row.opt_text("agent")?,
            settings,
            created_at: row.millis("created_at")?,
            updated_at: row.millis("updated_at")?,
        })
    }
}
