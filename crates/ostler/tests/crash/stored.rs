//! What the store has in the end, read beside the program.

use std::{collections::BTreeMap, path::Path};

use serde_json::Value;
use sqlx::{Connection as _, PgConnection, SqliteConnection, sqlite::SqliteConnectOptions};

use super::{
    books::{Answer, Message, StoredJob},
    receiver::conversation_of,
};

/// Which store to read.
pub(crate) enum Where<'a> {
    Sqlite(&'a Path),
    Postgres(&'a str),
}

type JobRow = (String, String, i64, String, String);
type TurnRow = (String, String, String);
type CompleteRow = (String, i64);
type ReplyRow = (String, String, String);

const JOBS: &str = "SELECT jobs.id, conversations.address, jobs.seq, jobs.state, jobs.payload
                    FROM jobs JOIN conversations ON conversations.id = jobs.lane";
const TURNS: &str = "SELECT id, job, result FROM turns WHERE state = 'ended' ORDER BY id";
const COMPLETES: &str = "SELECT turn, number FROM events WHERE type = 'complete' ORDER BY number";
const REPLIES: &str = "SELECT id, dedupe, state FROM outbox";

struct Rows {
    jobs: Vec<JobRow>,
    turns: Vec<TurnRow>,
    completes: Vec<CompleteRow>,
    replies: Vec<ReplyRow>,
}

macro_rules! rows {
    ($connection:expr) => {{
        let mut connection = $connection.await.unwrap();
        Rows {
            jobs: sqlx::query_as(JOBS).fetch_all(&mut connection).await.unwrap(),
            turns: sqlx::query_as(TURNS).fetch_all(&mut connection).await.unwrap(),
            completes: sqlx::query_as(COMPLETES).fetch_all(&mut connection).await.unwrap(),
            replies: sqlx::query_as(REPLIES).fetch_all(&mut connection).await.unwrap(),
        }
    }};
}

/// Reads all jobs with their answers and replies.
pub(crate) fn read(store: &Where<'_>) -> Vec<StoredJob> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let rows = runtime.block_on(async {
        match store {
            Where::Sqlite(path) => {
                let options = SqliteConnectOptions::new().filename(path);
                rows!(SqliteConnection::connect_with(&options))
            }
            Where::Postgres(url) => rows!(PgConnection::connect(url)),
        }
    });
    joined(rows)
}

fn joined(rows: Rows) -> Vec<StoredJob> {
    let mut completes: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for (turn, number) in rows.completes {
        completes.entry(turn).or_default().push(number);
    }
    let mut answers: BTreeMap<String, Vec<Answer>> = BTreeMap::new();
    for (turn, job, result) in rows.turns {
        let result: Value = serde_json::from_str(&result).unwrap();
        // A turn that failed and was tried again is not an answer.
        if result["error"].is_null() {
            let text = |key: &str| result[key].as_str().unwrap_or_default().to_owned();
            let completes = completes.remove(&turn).unwrap_or_default();
            let answer =
                Answer { text: text("response_text"), session: text("session_id"), completes };
            answers.entry(job).or_default().push(answer);
        }
    }
    let mut replies: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    for (id, dedupe, state) in rows.replies {
        let job = dedupe.split(':').next().unwrap_or_default().to_owned();
        replies.entry(job).or_default().push((id, state));
    }
    let job = |(id, address, place, state, payload): JobRow| StoredJob {
        message: Message::after("sim:echo=", &payload),
        conversation: conversation_of(&address).unwrap(),
        place,
        state,
        answers: answers.remove(&id).unwrap_or_default(),
        replies: replies.remove(&id).unwrap_or_default(),
        id,
    };
    rows.jobs.into_iter().map(job).collect()
}
