//! A reader of a project's events while the gateway is killed and started again:
//! whoever goes on after the last event that he has misses nothing, and nothing
//! comes twice.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::{SocketAddr, TcpStream},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use super::served::{Served, admin, roots};
use crate::support::{LIMIT, Place, until, until_within};

/// How often the gateway is killed.
const KILLS: usize = 6;
/// The longest that all of it may take.
const WHOLE: Duration = Duration::from_secs(200);
/// The stream of the last command.
const END: &str = "the-end";

/// An event as it was told.
#[derive(Clone, Debug, PartialEq)]
struct Told {
    id: i64,
    name: String,
    data: Value,
}

impl Told {
    fn is_end_of(&self, stream: &str) -> bool {
        self.name == "complete" && self.data["stream_id"] == stream
    }
}

/// Somebody who reads all events of a project.
struct Reader<'a> {
    path: String,
    key: &'a str,
    /// Where the gateway is now.
    address: &'a Mutex<SocketAddr>,
    /// How many events have come.
    n_told: &'a AtomicUsize,
}

impl Reader<'_> {
    /// Reads until the last command is over, over however many connections.
    fn read(&self) -> Vec<Told> {
        let mut all = Vec::new();
        until_within(WHOLE, "the last command is over", || {
            let address = *self.address.lock().unwrap();
            // Nobody is there, or no longer: it is tried again.
            self.read_some(address, &mut all).ok();
            all.last().is_some_and(|told: &Told| told.is_end_of(END)).then_some(())
        });
        all
    }

    /// Reads from one connection until it breaks or the last command is over.
    fn read_some(&self, address: SocketAddr, all: &mut Vec<Told>) -> std::io::Result<()> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(LIMIT))?;
        let last = all.last().map_or(0, |told| told.id);
        // The body of an answer to such an old client is sent as it is.
        write!(
            stream,
            "GET {} HTTP/1.0\r\nHost: ostler\r\nAuthorization: Bearer {}\r\n\
             Last-Event-ID: {last}\r\n\r\n",
            self.path, self.key
        )?;
        let mut lines = BufReader::new(stream).lines();
        let status = lines.next().transpose()?.unwrap_or_default();
        if !status.contains(" 200 ") {
            return Ok(());
        }
        let mut frame = Vec::new();
        // Its head ends with an empty line, as each event does.
        for line in lines.skip_while(|line| line.as_ref().is_ok_and(|line| !line.is_empty())) {
            let line = line?;
            if !line.is_empty() {
                frame.push(line);
                continue;
            }
            let told = std::mem::take(&mut frame);
            let Some(told) = read_frame(&told) else { continue };
            let before = all.last().map_or(0, |told| told.id);
            assert!(told.id > before, "{told:?} came after {before}");
            all.push(told);
            self.n_told.fetch_add(1, Ordering::Relaxed);
            if all.last().is_some_and(|told| told.is_end_of(END)) {
                break;
            }
        }
        Ok(())
    }
}

/// Reads what is told between two empty lines, if it is something that happened.
fn read_frame(lines: &[String]) -> Option<Told> {
    let field = |name: &str| lines.iter().find_map(|line| line.strip_prefix(name));
    let name = field("event: ")?.to_owned();
    assert_ne!(name, "missed", "{lines:?}");
    let data = serde_json::from_str(field("data: ")?).unwrap();
    let is_event = !["connected", "heartbeat"].contains(&name.as_str());
    is_event.then(|| Told { id: field("id: ").unwrap().parse().unwrap(), name, data })
}

/// Gives a prompt, and returns the id of its command.
fn prompt(served: &Served, path: &str, key: &str, body: &Value) -> String {
    let (status, told) = served.call("POST", &format!("{path}/prompt"), key, body);
    assert_eq!(status, 202, "{told}");
    told["data"]["command_id"].as_str().unwrap().to_owned()
}

#[test]
fn a_reader_misses_and_doubles_nothing_however_often_the_gateway_is_killed() {
    let place = Place::new();
    let mut served = Served::start(&place);
    let key = admin(&place);
    let folder = roots(&place).join("read");
    std::fs::create_dir_all(&folder).unwrap();
    let body = json!({ "name": "read", "directory": folder });
    let (status, project) = served.call("POST", "/projects", &key, &body);
    assert_eq!(status, 201, "{project}");
    let project = format!("/projects/{}", project["data"]["id"].as_str().unwrap());
    let (address, n_told) = (Mutex::new(served.address), AtomicUsize::new(0));
    let path = format!("{project}/events");
    let reader = Reader { path, key: &key, address: &address, n_told: &n_told };
    let (told, commands, mut served) = thread::scope(|scope| {
        let reading = scope.spawn(|| reader.read());
        let mut commands = Vec::new();
        for kill in 0..KILLS {
            let before = n_told.load(Ordering::Relaxed);
            for text in ["Say hello", "sim:slow=20 Tell me more", "sim:delay=300 Say hello"] {
                commands.push(prompt(&served, &project, &key, &json!({ "prompt": text })));
            }
            // Each time somewhere else: before the first event, or after some.
            until("some events have come", || {
                (n_told.load(Ordering::Relaxed) >= before + 2 * kill).then_some(())
            });
            drop(served);
            served = Served::start_again(&place);
            *address.lock().unwrap() = served.address;
        }
        for command in &commands {
            until("each command is over", || {
                let path = format!("{project}/commands/{command}");
                let (_, told) = served.call("GET", &path, &key, &Value::Null);
                told["data"]["ended_at"].is_string().then_some(())
            });
        }
        let end = json!({ "prompt": "Say hello", "stream_id": END });
        commands.push(prompt(&served, &project, &key, &end));
        (reading.join().unwrap(), commands, served)
    });
    // As somebody reads it who was never interrupted.
    assert!(told == reader.read(), "{} events", told.len());
    for command in commands {
        let path = format!("{project}/commands/{command}/events?limit=500");
        let (_, stored) = served.call("GET", &path, &key, &Value::Null);
        let stored: Vec<_> = stored["data"].as_array().unwrap().iter().collect();
        let own: Vec<_> = told.iter().filter(|told| told.data["command_id"] == *command).collect();
        let numbers = |it: &&Value| it["event_id"].as_i64();
        assert!(own.iter().map(|told| Some(told.id)).eq(stored.iter().map(numbers)), "{command}");
        let ends = own.iter().filter(|told| told.name == "complete").count();
        assert_eq!((ends, own.last().unwrap().name.as_str()), (1, "complete"), "{command}");
    }
    served.must_live();
    served.stop();
}
