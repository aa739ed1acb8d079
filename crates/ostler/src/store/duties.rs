//! What one gateway at a time does, whichever it is. Whoever has a duty keeps it
//! by a lease, and another takes it over when nothing was heard for as long.

use std::time::Duration;

use super::{
    Conn, StoreError,
    db::{Dialect, values},
};
use crate::clock::Millis;

/// The duty to write the archive.
pub(crate) const ARCHIVE: &str = "archive";

/// The duty to speak on Discord.
pub(crate) const DISCORD: &str = "discord";

/// The duty to speak for Twilio.
pub(crate) const TWILIO: &str = "twilio";

/// The duty to make the first key.
pub(crate) const FIRST_KEY: &str = "first_key";

/// Waits until no other write is at a duty, and keeps it until this one is over.
pub(crate) async fn wait(conn: &mut Conn, duty: &str) -> Result<(), StoreError> {
    let sql = "UPDATE duties SET lease_until = lease_until WHERE name = $1";
    conn.execute(sql, values![duty]).await.map(drop)
}

/// Takes a duty or keeps it; returns whether it is the owner's now. On SQLite no
/// other gateway can have it, whatever the lease of a killed one says.
pub(crate) async fn take(
    conn: &mut Conn,
    duty: &str,
    owner: &str,
    now: Millis,
    lease: Duration,
) -> Result<bool, StoreError> {
    let over_by = match conn.dialect() {
        Dialect::Sqlite => Millis(i64::MAX),
        Dialect::Postgres => now,
    };
    let sql = "UPDATE duties SET owner = $2, lease_until = $3
               WHERE name = $1 AND (owner = $2 OR lease_until <= $4)";
    Ok(conn.execute(sql, values![duty, owner, now.after(lease), over_by]).await? > 0)
}

/// Gives a duty back, so that nobody waits for the end of the lease.
pub(crate) async fn give_back(conn: &mut Conn, duty: &str, owner: &str) -> Result<(), StoreError> {
    let sql = "UPDATE duties SET owner = NULL, lease_until = 0 WHERE name = $1 AND owner = $2";
    conn.execute(sql, values![duty, owner]).await.map(drop)
}
