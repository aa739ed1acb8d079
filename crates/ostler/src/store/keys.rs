//! Keys of the HTTP service, as far as they are kept: not the words themselves.

use ipnet::IpNet;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{
    Conn, StoreError,
    audit::{self, Entry},
    db::{Row, values},
    projects,
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

impl NewKey {
    /// Returns what the audit says of it.
    pub(crate) fn summary(&self) -> Value {
        let Self { name, prefix, scopes, projects, networks, expires_at, .. } = self;
        json!({
            "name": name,
            "prefix": prefix,
            "scopes": scopes,
            "projects": projects,
            "networks": networks,
            "expires_at": expires_at,
        })
    }
}

/// A key as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredKey {
    pub(crate) key: NewKey,
    pub(crate) revoked_at: Option<Millis>,
    pub(crate) last_used_at: Option<Millis>,
}

/// Whether a key can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum KeyState {
    Active,
    Expired,
    Revoked,
}

impl StoredKey {
    /// Whether it can be used now.
    pub(crate) fn state(&self, now: Millis) -> KeyState {
        if self.revoked_at.is_some() {
            KeyState::Revoked
        } else if self.key.expires_at.is_some_and(|end| end <= now) {
            KeyState::Expired
        } else {
            KeyState::Active
        }
    }

    /// Whether everything can be done with it, at least now.
    fn is_working_admin(&self, now: Millis) -> bool {
        let may_everything = self.key.scopes.contains(&Scope::Admin) && self.key.projects.is_none();
        may_everything && self.state(now) == KeyState::Active
    }

    /// Whether it can be used from wherever another can, and for as long.
    fn outlasts(&self, other: &Self) -> bool {
        let (own, other) = (&self.key, &other.key);
        let is_everywhere = own.networks.as_ref().is_none_or(|own| {
            let is_within = |network| own.iter().any(|own| own.contains(network));
            other.networks.as_ref().is_some_and(|networks| networks.iter().all(is_within))
        });
        let is_as_long =
            own.expires_at.is_none_or(|own| other.expires_at.is_some_and(|other| other <= own));
        is_everywhere && is_as_long
    }
}

/// What became of a key that was to be revoked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Revoked {
    /// It is, as of now or before.
    Done(Box<StoredKey>),
    /// It is the last that everything can be done with.
    Last,
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

/// Keeps a key with its line of the audit, unless one of its projects is not
/// there, which is returned.
pub(crate) async fn grant(
    conn: &mut Conn,
    key: &NewKey,
    entry: &Entry,
) -> Result<Option<ProjectId>, StoreError> {
    for project in key.projects.iter().flatten() {
        if projects::find(conn, *project).await?.is_none() {
            return Ok(Some(*project));
        }
    }
    add(conn, key).await?;
    audit::add(conn, entry).await?;
    Ok(None)
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

/// Returns a key by its id.
pub(crate) async fn find(conn: &mut Conn, id: KeyId) -> Result<Option<StoredKey>, StoreError> {
    let row = conn.fetch_optional("SELECT * FROM keys WHERE id = $1", values![id]).await?;
    row.map(|row| StoredKey::from_row(&row)).transpose()
}

/// Returns keys, newest first, beginning after one; those that were revoked, too.
pub(crate) async fn list(
    conn: &mut Conn,
    after: Option<KeyId>,
    limit: u32,
) -> Result<Vec<StoredKey>, StoreError> {
    // No id is above this: the digits are all lower.
    let before = after.map_or_else(|| "key_g".to_owned(), |id| id.to_string());
    let sql = "SELECT * FROM keys WHERE id < $1 ORDER BY id DESC LIMIT +$2";
    let rows = conn.fetch_all(sql, values![&before, i64::from(limit)]).await?;
    rows.iter().map(StoredKey::from_row).collect()
}

/// Returns whether there is any key, be it revoked or expired.
pub(crate) async fn is_any(conn: &mut Conn) -> Result<bool, StoreError> {
    Ok(conn.fetch_optional("SELECT id FROM keys LIMIT 1", &[]).await?.is_some())
}

/// Returns whether there is a key that can be used.
pub(crate) async fn is_any_active(conn: &mut Conn, now: Millis) -> Result<bool, StoreError> {
    let sql = "SELECT id FROM keys
               WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $1) LIMIT 1";
    Ok(conn.fetch_optional(sql, values![now]).await?.is_some())
}

/// Revokes a key, unless it is the last that everything can be done with. One
/// that is revoked stays as it is.
pub(crate) async fn revoke(
    conn: &mut Conn,
    key: StoredKey,
    now: Millis,
) -> Result<Revoked, StoreError> {
    if key.is_working_admin(now) && !is_another_admin(conn, &key, now).await? {
        return Ok(Revoked::Last);
    }
    let sql = "UPDATE keys SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL";
    conn.execute(sql, values![key.key.id, now]).await?;
    let revoked = find(conn, key.key.id).await?.unwrap_or(key);
    Ok(Revoked::Done(Box::new(revoked)))
}

/// Returns whether everything can be done with a key beside this one, from wherever
/// and for as long as with this. Whoever revokes one of them at the same time waits
/// for the end of this write.
async fn is_another_admin(
    conn: &mut Conn,
    key: &StoredKey,
    now: Millis,
) -> Result<bool, StoreError> {
    let sql = "UPDATE keys SET revoked_at = revoked_at
               WHERE revoked_at IS NULL AND scopes LIKE '%admin%' RETURNING *";
    let rows = conn.fetch_all(sql, &[]).await?;
    let admins: Result<Vec<_>, _> = rows.iter().map(StoredKey::from_row).collect();
    let is_one = |admin: &StoredKey| admin.is_working_admin(now) && admin.outlasts(key);
    Ok(admins?.iter().any(|admin| admin.key.id != key.key.id && is_one(admin)))
}

/// Notes that a key was used, unless that was noted after `since`.
pub(crate) async fn note_use(
    conn: &mut Conn,
    id: KeyId,
    now: Millis,
    since: Millis,
) -> Result<(), StoreError> {
    let sql = "UPDATE keys SET last_used_at = $2
               WHERE id = $1 AND (last_used_at IS NULL OR last_used_at <= $3)";
    conn.execute(sql, values![id, now, since]).await.map(drop)
}

impl StoredKey {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            key: NewKey {
                id: row.parsed("id")?,
                name: row.text("name")?,
                prefix: row.text("prefix")?,
                hash: row.text("hash")?,
                scopes: read_list("scopes", &row.text("scopes")?)?,
                projects: row
                    .opt_text("projects")?
                    .map(|text| read_list("projects", &text))
                    .transpose()?,
                networks: row
                    .opt_text("networks")?
                    .map(|text| read_list("networks", &text))
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

fn read_list<T: DeserializeOwned>(column: &'static str, text: &str) -> Result<Vec<T>, StoreError> {
    let unreadable =
        |error: serde_json::Error| StoreError::Unreadable { column, why: error.to_string().into() };
    serde_json::from_str(text).map_err(unreadable)
}
