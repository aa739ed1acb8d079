//! Projects: a folder with a name, the agent that works there, and how.

use serde::{Deserialize, Serialize};

use super::{
    Conn, StoreError,
    db::{Dialect, Row, Value, values},
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

/// Stores a project. Returns whether its name was free.
pub(crate) async fn add(conn: &mut Conn, project: &Project) -> Result<bool, StoreError> {
    let added = conn
        .execute(
            "INSERT INTO projects (id, name, directory, agent, settings, created_at, updated_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7)
             ON CONFLICT (name) WHERE deleted_at IS NULL DO NOTHING",
            values![
                project.id,
                &project.name,
                &project.directory,
                project.agent.as_deref(),
                &project.settings.text(),
                project.created_at,
                project.updated_at
            ],
        )
        .await?;
    Ok(added > 0)
}

/// Returns a project by its id, unless it was deleted.
pub(crate) async fn find(conn: &mut Conn, id: ProjectId) -> Result<Option<Project>, StoreError> {
    let sql = "SELECT * FROM projects WHERE id = $1 AND deleted_at IS NULL";
    let row = conn.fetch_optional(sql, values![id]).await?;
    row.map(|row| Project::from_row(&row)).transpose()
}

/// Returns a project by its name.
pub(crate) async fn find_named(conn: &mut Conn, name: &str) -> Result<Option<Project>, StoreError> {
    let sql = "SELECT * FROM projects WHERE name = $1 AND deleted_at IS NULL";
    let row = conn.fetch_optional(sql, values![name]).await?;
    row.map(|row| Project::from_row(&row)).transpose()
}

/// Returns a project as [`find`] does, and keeps it from all others until the
/// write is over: between the look and a change nobody else makes one.
pub(crate) async fn lock(conn: &mut Conn, id: ProjectId) -> Result<Option<Project>, StoreError> {
    conn.execute("UPDATE projects SET updated_at = updated_at WHERE id = $1", values![id]).await?;
    find(conn, id).await
}

/// Returns a project as [`find`] does, and keeps others from changing it until the
/// write is over. Several may hold it at once.
pub(crate) async fn hold(conn: &mut Conn, id: ProjectId) -> Result<Option<Project>, StoreError> {
    let sql = match conn.dialect() {
        // There is one writer.
        Dialect::Sqlite => "SELECT * FROM projects WHERE id = $1 AND deleted_at IS NULL",
        Dialect::Postgres => {
            "SELECT * FROM projects WHERE id = $1 AND deleted_at IS NULL FOR SHARE"
        }
    };
    let row = conn.fetch_optional(sql, values![id]).await?;
    row.map(|row| Project::from_row(&row)).transpose()
}

/// Lists projects, newest first, beginning after one of them: all, or those among
/// some that a key is for.
pub(crate) async fn list(
    conn: &mut Conn,
    only: Option<&[ProjectId]>,
    after: Option<ProjectId>,
    limit: u32,
) -> Result<Vec<Project>, StoreError> {
    // No id is above this: the digits are all lower.
    let before = after.map_or_else(|| "prj_g".to_owned(), |id| id.to_string());
    let mut values = vec![Value::from(&before), Value::from(i64::from(limit))];
    let mut among = String::new();
    if let Some(only) = only {
        values.extend(only.iter().map(|id| Value::from(*id)));
        let places: Vec<_> = (3..values.len() + 1).map(|number| format!("${number}")).collect();
        // A list must not be empty, and nothing has this id.
        let places = if places.is_empty() { "''".to_owned() } else { places.join(", ") };
        among = format!("AND id IN ({places})");
    }
    let sql = format!(
        "SELECT * FROM projects WHERE deleted_at IS NULL AND id < $1 {among}
         ORDER BY id DESC LIMIT +$2"
    );
    conn.fetch_all(sql, &values).await?.iter().map(Project::from_row).collect()
}

/// Writes down what was changed of a project. Fails if its name is not free;
/// [`is_taken`] tells that from other errors.
pub(crate) async fn update(conn: &mut Conn, project: &Project) -> Result<(), StoreError> {
    let sql = "UPDATE projects SET name = $2, agent = $3, settings = $4, updated_at = $5
               WHERE id = $1";
    let (agent, settings) = (project.agent.as_deref(), project.settings.text());
    let values = values![project.id, &project.name, agent, &settings, project.updated_at];
    conn.execute(sql, values).await.map(drop)
}

/// Whether a write failed because a name was not free.
pub(crate) fn is_taken(error: &StoreError) -> bool {
    // A unique index that was violated, as PostgreSQL and SQLite say it.
    error.code().is_some_and(|code| code == "23505" || code == "2067")
}

/// Takes a project away. What was done in it is kept for a while.
pub(crate) async fn delete(conn: &mut Conn, id: ProjectId, now: Millis) -> Result<(), StoreError> {
    let sql = "UPDATE projects SET deleted_at = $2 WHERE id = $1 AND deleted_at IS NULL";
    conn.execute(sql, values![id, now]).await.map(drop)
}

impl ProjectSettings {
    fn text(&self) -> String {
        // Numbers, texts and lists of them can always be written.
        serde_json::to_string(self).unwrap_or_else(|_| "{}".to_owned())
    }
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
