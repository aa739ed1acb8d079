//! Keys of the HTTP service, as far as they are kept: not the words themselves.

use ipnet::IpNet;
use serde::de::DeserializeOwned;

use super::{
    Conn, StoreError,
    db::{Row, values},
};
use crate::{
    clock::Millis,
    id::{KeyId, ProjectId},
    key::Scope,
};

/// A key that is to be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewKey {
    pub(crate) id: KeyId,
    pub(crate) name: String,
    /// The start, by which it is found.
    pub(crate) prefix: String,
    pub(crate) hash: String,
    pub(crate) scopes: Vec<Scope>,
    /// The projects that it is for; `None` for all.
    pub(crate) projects: Option<Vec<ProjectId>>,
    /// The networks that it may be used from; `None` for all.
    pub(crate) networks: Option<Vec<IpNet>>,
    /// The key that made it, or who else did.
    pub(crate) created_by: String,
    pub(crate) created_at: Millis,
    pub(crate) expires_at: Option<Millis>,
}

/// A key as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredKey {
    pub(crate) key: NewKey,
    pub(crate) revoked_at: Option<Millis>,
    pub(crate) last_used_at: Option<Millis>,
}

/// Keeps a key.
pub(crate) async fn add(conn: &mut Conn, key: &NewKey) -> Result<(), StoreError> {
    let scopes = serde_json::to_string(&key.scopes).unwrap_or_default();
    let projects = key.projects.as_ref().and_then(|list| serde_json::to_string(list).ok());
    let networks = key.networks.as_ref().and_then(|list| serde_json::to_string(list).ok());
    conn.execute(
        "INSERT INTO keys (id, name, prefix, hash, scopes, projects, networks, created_by,
             created_at, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        values![
            key.id,
            &key.name,
            &key.prefix,
            &key.hash,
            &scopes,
            projects.as_deref(),
            networks.as_deref(),
            &key.created_by,
            key.created_at,
            key.expires_at
        ],
    )
    .await
    .map(drop)
}

/// Returns the key that begins like this.
pub(crate) async fn find_by_prefix(
    conn: &mut Conn,
    prefix: &str,
) -> Result<Option<StoredKey>, StoreError> {
    let sql = "SELECT * FROM keys WHERE prefix = $1";
    let row = conn.fetch_optional(sql, values![prefix]).await?;
    row.map(|row| StoredKey::from_row(&row)).transpose()
}

/// Returns whether a key can still be used.
pub(crate) async fn stands(conn: &mut Conn, id: KeyId, now: Millis) -> Result<bool, StoreError> {
    let sql = "SELECT 1 AS found FROM keys
               WHERE id = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $2)";
    Ok(conn.fetch_optional(sql, values![id, now]).await?.is_some())
}

impl StoredKey {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            key: NewKey {
                id: row.parsed("id")?,
                name: row.text("name")?,
                prefix: row.text("prefix")?,
                hash: row.text("hash")?,
                scopes: list("scopes", &row.text("scopes")?)?,
                projects: row
                    .opt_text("projects")?
                    .map(|text| list("projects", &text))
                    .transpose()?,
                networks: row
                    .opt_text("networks")?
                    .map(|text| list("networks", &text))
                    .transpose()?,
                created_by: row.text("created_by")?,
                created_at: row.millis("created_at")?,
                expires_at: row.opt_millis("expires_at")?,
            },
            revoked_at: row.opt_millis("revoked_at")?,
            last_used_at: row.opt_millis("last_used_at")?,
        })
    }
}

fn list<T: DeserializeOwned>(column: &'static str, text: &str) -> Result<Vec<T>, StoreError> {
    let unreadable =
        |error: serde_json::Error| StoreError::Unreadable { column, why: error.to_string().into() };
    serde_json::from_str(text).map_err(unreadable)
}
