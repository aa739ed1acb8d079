//! Streams over real connections, on both databases.

mod reconnect;
mod slow;
mod stream;

use std::{collections::VecDeque, time::Duration};

use serde_json::Value;

use crate::{
    api::testing::{LIMIT, Rig},
    clock::Millis,
    id::{CommandId, ProjectId},
    store::{
        Store,
        events::{self, Belonging, CommandRef, NewEvent},
        projects::{self, Project, ProjectSettings},
    },
};

/// The longest that a stream may be read as a whole, and the longest that a test of
/// many may wait: a machine that has much else to do needs most of it.
const WHOLE: Duration = Duration::from_secs(200);

/// Something that was told on a stream.
#[derive(Clone, Debug, PartialEq)]
struct Told {
    id: i64,
    name: String,
    data: Value,
}

/// Takes frames out of what arrives, in whatever pieces it does.
#[derive(Debug, Default)]
struct Frames(Vec<u8>);

impl Frames {
    /// Takes a piece, and returns what is complete with it.
    fn push(&mut self, piece: &[u8]) -> Vec<Told> {
        self.0.extend_from_slice(piece);
        let mut all = Vec::new();
        while let Some(end) = self.0.windows(2).position(|pair| pair == b"\n\n") {
            let frame: Vec<u8> = self.0.drain(..end + 2).collect();
            all.push(told(std::str::from_utf8(&frame).unwrap()));
        }
        all
    }
}

fn told(frame: &str) -> Told {
    let field = |name: &str| frame.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    Told {
        id: field("id: ").parse().unwrap(),
        name: field("event: ").to_owned(),
        data: serde_json::from_str(field("data: ")).unwrap(),
    }
}

/// A stream that is read.
struct Stream {
    response: reqwest::Response,
    frames: Frames,
    told: VecDeque<Told>,
}

impl Stream {
    async fn open(rig: &Rig, path: &str) -> Self {
        Self::open_after(rig, path, None).await
    }

    async fn open_after(rig: &Rig, path: &str, last: Option<i64>) -> Self {
        let mut request = rig.request("GET", path).bearer_auth(&rig.admin).timeout(WHOLE);
        if let Some(last) = last {
            request = request.header("Last-Event-ID", last);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        Self { response, frames: Frames::default(), told: VecDeque::new() }
    }

    /// Returns what comes next; nothing at a clean end.
    async fn next(&mut self) -> Option<Told> {
        loop {
            if let Some(told) = self.told.pop_front() {
                return Some(told);
            }
            let piece = tokio::time::timeout(LIMIT, self.response.chunk()).await.unwrap();
            let piece = piece.expect("the stream broke")?;
            self.told.extend(self.frames.push(&piece));
        }
    }

    /// Returns the next that is not a heartbeat.
    async fn next_event(&mut self) -> Option<Told> {
        loop {
            match self.next().await {
                Some(Told { name, .. }) if name == "heartbeat" => {}
                other => return other,
            }
        }
    }
}

async fn make_project(rig: &Rig) -> ProjectId {
    let id = ProjectId::new();
    let project = Project {
        id,
        name: id.to_string(),
        directory: rig.folder("work").display().to_string(),
        agent: None,
        settings: ProjectSettings::default(),
        created_at: Millis(1),
        updated_at: Millis(1),
    };
    rig.gateway.store.must(project, |conn, project| Box::pin(projects::add(conn, project))).await;
    id
}

/// Makes an event of a project, and of a stream of it if one is named.
fn output(project: ProjectId, stream: Option<&str>, text: &str) -> NewEvent {
    let command =
        stream.map(|stream| CommandRef { id: CommandId::new(), stream: stream.to_owned() });
    NewEvent {
        conversation: None,
        belongs: Some(Belonging { project, command }),
        turn: None,
        seq: 0,
        at: Millis(1),
        kind: "output".to_owned(),
        body: serde_json::json!({ "type": "output", "text": text }).to_string(),
    }
}

/// Stores events; returns the last number.
async fn append(store: &Store, events: Vec<NewEvent>) -> i64 {
    let numbers =
        store.must(events, |conn, events| Box::pin(events::append(conn, events))).await.unwrap();
    *numbers.end()
}
