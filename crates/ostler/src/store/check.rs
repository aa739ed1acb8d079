//! Looks for what must not be in a store, while it may be in use.

use serde::Serialize;

use super::{
    Conn, Store, StoreError,
    db::{Dialect, values},
};

/// Something that is wrong. As JSON it is part of the contract.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Problem {
    /// What was checked.
    pub(crate) check: &'static str,
    /// What was found.
    pub(crate) message: String,
}

/// A statement that counts what must not be there.
struct Rule {
    check: &'static str,
    message: &'static str,
    sql: &'static str,
}

const RULES: &[Rule] = &[
    Rule {
        check: "queue",
        message: "jobs wait in a lane in which none is ready or running",
        sql: "SELECT count(*) AS found FROM jobs AS waiting WHERE waiting.state = 'waiting'
              AND NOT EXISTS (SELECT 1 FROM jobs AS head WHERE head.lane = waiting.lane
                  AND head.state IN ('ready', 'running'))",
    },
    Rule {
        check: "queue",
        message: "jobs wait before the one that is ready or running in their lane",
        sql: "SELECT count(*) AS found FROM jobs AS waiting
              JOIN jobs AS head ON head.lane = waiting.lane AND head.state IN ('ready', 'running')
              WHERE waiting.state = 'waiting' AND waiting.seq < head.seq",
    },
    Rule {
        check: "queue",
        message: "jobs are beyond the last place of their lane",
        sql: "SELECT count(*) AS found FROM jobs JOIN lanes ON lanes.id = jobs.lane
              WHERE jobs.seq > lanes.last_seq",
    },
    Rule {
        check: "events",
        message: "numbers are missing in the event log",
        sql: "SELECT newest.value - removed.value - (SELECT count(*) FROM events) AS found
              FROM counters AS newest, counters AS removed
              WHERE newest.name = 'events' AND removed.name = 'events_removed'",
    },
];

impl Store {
    /// Looks at everything, and returns what is wrong.
    pub(crate) async fn check(&self) -> Result<Vec<Problem>, StoreError> {
        self.read_patiently((), |conn, ()| Box::pin(check(conn))).await
    }
}

async fn check(conn: &mut Conn) -> Result<Vec<Problem>, StoreError> {
    // One moment of it all: a gateway may be writing.
    let begin = match conn.dialect() {
        Dialect::Sqlite => "BEGIN",
        Dialect::Postgres => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
    };
    conn.execute(begin, values![]).await?;
    let problems = look(conn).await;
    conn.execute("ROLLBACK", values![]).await?;
    problems
}

async fn look(conn: &mut Conn) -> Result<Vec<Problem>, StoreError> {
    let mut problems = Vec::new();
    if conn.dialect() == Dialect::Sqlite {
        for row in conn.fetch_all("PRAGMA integrity_check", values![]).await? {
            let message = row.text("integrity_check")?;
            if message != "ok" {
                problems.push(Problem { check: "file", message });
            }
        }
        for row in conn.fetch_all("PRAGMA foreign_key_check", values![]).await? {
            let message = format!(
                "a row of {} refers to none of {}",
                row.text("table")?,
                row.text("parent")?
            );
            problems.push(Problem { check: "references", message });
        }
    }
    for Rule { check, message, sql } in RULES {
        let n_found = conn.fetch_one(*sql, values![]).await?.int("found")?;
        if n_found != 0 {
            problems.push(Problem { check, message: format!("{message} ({n_found})") });
        }
    }
    Ok(problems)
}
