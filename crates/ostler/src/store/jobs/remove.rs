//! Removing what is long over.

use super::{Conn, Millis, StoreError, values};

/// Jobs that are over, by how long they are worth keeping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    DoneOrCancelled,
    Dead,
}

/// Removes jobs that ended before a time, at most this many.
pub(crate) async fn remove_before(
    conn: &mut Conn,
    over: Over,
    before: Millis,
    limit: u32,
) -> Result<u64, StoreError> {
    // The states that an index is of are named as in it, so that it is used.
    macro_rules! remove {
        ($state:literal) => {
            concat!(
                "DELETE FROM jobs WHERE id IN (
                     SELECT id FROM jobs
                     WHERE state IN ('done', 'dead', 'cancelled') AND ",
                $state,
                " AND ended_at < $1 ORDER BY ended_at LIMIT +$2)"
            )
        };
    }
    let sql = match over {
        Over::DoneOrCancelled => remove!("state <> 'dead'"),
        Over::Dead => remove!("state = 'dead'"),
    };
    conn.execute(sql, values![before, i64::from(limit)]).await
}

/// Messages, by how long their names are worth keeping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Came {
    /// By a signed call without a date, which can be made again by whoever has it.
    Signed,
    Otherwise,
}

/// Forgets messages that came before a time, at most this many.
pub(crate) async fn forget_messages(
    conn: &mut Conn,
    came: Came,
    before: Millis,
    limit: u32,
) -> Result<u64, StoreError> {
    // The channels are named as in the indexes, so that these are used, and not the one by
    // channel, which has no order in time.
    macro_rules! forget {
        ($channels:literal) => {
            concat!(
                "DELETE FROM inbox WHERE (channel, message) IN (
                     SELECT channel, message FROM inbox
                     WHERE ",
                $channels,
                " AND received_at < $1 ORDER BY received_at LIMIT +$2)"
            )
        };
    }
    let sql = match came {
        Came::Signed => forget!("(channel IN ('whatsapp', 'sms', 'group')) IS TRUE"),
        Came::Otherwise => forget!("channel NOT IN ('whatsapp', 'sms', 'group')"),
    };
    conn.execute(sql, values![before, i64::from(limit)]).await
}
