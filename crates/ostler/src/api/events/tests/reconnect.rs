//! A thousand connections that break anywhere, while events are stored, commands
//! run, and server and gateway are started again: nothing is missed or doubled.

use std::net::SocketAddr;

use tokio::{sync::watch, task::JoinSet, time};

use super::*;
use crate::{
    gateway::commands::accept::Order,
    store::{audit::Entry, commands::CommandKind, testing::on_both},
    wishes::Wishes,
};

const READERS: usize = 8;
/// How often each is interrupted.
const BREAKS: usize = 125;
const COMMANDS: usize = 6;
/// When to try again where nobody answers.
const AGAIN: Duration = Duration::from_millis(50);
/// What the last event says.
const END: &str = "the end";
const STREAM: &str = "one stream";

/// Numbers that look as if they were random, and are the same each time.
struct Dice(u64);

impl Dice {
    fn throw(&mut self, sides: u64) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides).unwrap()
    }
}

struct Reader {
    client: reqwest::Client,
    key: String,
    path: String,
    /// Where the server is now.
    address: watch::Receiver<SocketAddr>,
    n_breaks: watch::Sender<usize>,
    dice: Dice,
    last: Option<i64>,
    received: Vec<i64>,
}

impl Reader {
    /// Reads until the last event; returns the numbers of all.
    async fn read(mut self) -> Vec<i64> {
        let mut breaks_left = BREAKS;
        loop {
            let address = *self.address.borrow_and_update();
            let url = format!("http://{address}{}", self.path);
            let mut request = self.client.get(url).bearer_auth(&self.key).timeout(WHOLE);
            if let Some(last) = self.last {
                request = request.header("Last-Event-ID", last);
            }
            let Some(response) = request.send().await.ok().filter(|it| it.status() == 200) else {
                // It stops, or has only just begun: another will be there, or it itself.
                if let Ok(changed) = time::timeout(AGAIN, self.address.changed()).await {
                    changed.unwrap();
                }
                continue;
            };
            let length = if breaks_left > 0 { 1 + self.dice.throw(3000) } else { usize::MAX };
            match self.read_some(response, length).await {
                Came::TheEnd => {
                    assert_eq!(breaks_left, 0, "the end came too soon");
                    return self.received;
                }
                Came::Enough => {
                    breaks_left -= 1;
                    self.n_breaks.send_modify(|n_breaks| *n_breaks += 1);
                }
                // The server ended it.
                Came::Less => {}
            }
        }
    }

    /// Reads this many bytes, and notes what is complete in them.
    async fn read_some(&mut self, mut response: reqwest::Response, mut length: usize) -> Came {
        let mut frames = Frames::default();
        while let Ok(Some(piece)) = response.chunk().await {
            let piece = &piece[..piece.len().min(length)];
            length -= piece.len();
            for Told { id, name, data } in frames.push(piece) {
                assert!(self.last.is_none_or(|last| last <= id), "{id} after {:?}", self.last);
                self.last = Some(id);
                if name != "connected" && name != "heartbeat" {
                    assert_ne!(name, "missed");
                    self.received.push(id);
                }
                if data["text"] == END {
                    return Came::TheEnd;
                }
            }
            if length == 0 {
                return Came::Enough;
            }
        }
        Came::Less
    }
}

enum Came {
    TheEnd,
    Enough,
    Less,
}

/// Stores events of all sorts until it is told to stop.
async fn write(store: Store, project: ProjectId, mut dice: Dice, stop: watch::Receiver<bool>) {
    let other = ProjectId::new();
    while !*stop.borrow() {
        let batch = (0..=dice.throw(4)).map(|_| {
            let text = "x".repeat(dice.throw(300));
            match dice.throw(6) {
                0 => NewEvent { belongs: None, ..output(project, None, &text) },
                1 => output(other, Some(STREAM), &text),
                2 => output(project, None, &text),
                3 => output(project, Some("another stream"), &text),
                _ => output(project, Some(STREAM), &text),
            }
        });
        append(&store, batch.collect()).await;
    }
}

fn order(rig: &Rig, project: ProjectId, text: &str) -> Order {
    let id = CommandId::new();
    let wishes = Wishes { cwd: Some(rig.folder("work")), ..Wishes::default() };
    let entry = Entry {
        at: Millis(1),
        actor: "a test".to_owned(),
        action: "command".to_owned(),
        subject: id.to_string(),
        detail: "{}".to_owned(),
    };
    Order {
        id,
        project,
        kind: CommandKind::Prompt,
        stream: Some(STREAM.to_owned()),
        text: text.to_owned(),
        wishes,
        words: None,
        actor: "a test".to_owned(),
        entry,
    }
}

/// Gives commands; returns what to wait for.
async fn command(rig: &Rig, project: ProjectId) -> Vec<crate::id::JobId> {
    let mut jobs = Vec::new();
    for number in 0..COMMANDS / 2 {
        let order = order(rig, project, &format!("number {number}"));
        jobs.push(rig.gateway.gateway.command(order).await.unwrap().job);
    }
    jobs
}

/// Returns the numbers of all events that a reader is to be told.
async fn stored(store: &Store, project: ProjectId, stream: Option<&str>) -> Vec<i64> {
    let args = (project, stream.map(str::to_owned));
    let all = store.read(args, |conn, (project, stream)| {
        Box::pin(async move {
            match stream {
                Some(stream) => events::read_stream(conn, *project, stream, 0, u32::MAX).await,
                None => events::read_project(conn, *project, 0, u32::MAX).await,
            }
        })
    });
    all.await.unwrap().iter().map(|stored| stored.number).collect()
}

on_both! {
    async fn nothing_is_missed_or_doubled_over_a_thousand_connections(store: Store) {
        let rig = Rig::new(store.clone()).await;
        let project = make_project(&rig).await;
        let (moved, address) = watch::channel(rig.address);
        let (enough, stop) = watch::channel(false);
        let (counter, mut n_breaks) = watch::channel(0);
        let (mut readers, mut writers) = (JoinSet::new(), JoinSet::new());
        for number in 0..READERS {
            let stream = (number % 2 == 1).then_some(STREAM);
            let wanted = stream.map_or(String::new(), |_| "?stream_id=one%20stream".to_owned());
            let reader = Reader {
                client: rig.request("GET", "/").build_split().0,
                key: rig.admin.clone(),
                path: format!("/projects/{project}/events{wanted}"),
                address: address.clone(),
                n_breaks: counter.clone(),
                dice: Dice(0x9e37_79b9_7f4a_7c15 + number as u64),
                // A stream is read from its beginning by itself.
                last: stream.is_none().then_some(0),
                received: Vec::new(),
            };
            readers.spawn(async move { (stream, reader.read().await) });
        }
        for number in 0..2 {
            let dice = Dice(0x2545_f491_4f6c_dd1d + number);
            writers.spawn(write(store.clone(), project, dice, stop.clone()));
        }
        let mut jobs = command(&rig, project).await;
        let half = n_breaks.wait_for(|n_breaks| *n_breaks >= READERS * BREAKS / 2);
        drop(time::timeout(WHOLE, half).await.unwrap().unwrap());
        let rig = rig.again().await;
        moved.send_replace(rig.address);
        jobs.extend(command(&rig, project).await);
        let all = n_breaks.wait_for(|n_breaks| *n_breaks >= READERS * BREAKS);
        drop(time::timeout(WHOLE, all).await.unwrap().unwrap());
        for job in jobs {
            rig.gateway.end_of(job).await;
        }
        enough.send_replace(true);
        while let Some(ended) = writers.join_next().await {
            ended.unwrap();
        }
        append(&store, vec![output(project, Some(STREAM), END)]).await;
        while let Some(ended) = readers.join_next().await {
            let (stream, received) = ended.unwrap();
            let expected = stored(&store, project, stream).await;
            assert!(expected.len() > COMMANDS);
            assert!(received == expected, "{stream:?}: {} of {}", received.len(), expected.len());
        }
        rig.stop().await;
    }
}
