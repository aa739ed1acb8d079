//! A disk that is full while the gateway runs.

use std::{
    fs,
    io::{self, Write as _},
    path::Path,
};

use serde_json::json;

use super::daemon::{
    Daemon, configure, ended, follow_until, seen_by, send, try_send, with_own_mounts,
};
use crate::support::{Place, until};

/// Writes until there is no room.
fn fill(path: &Path) {
    let mut file = fs::File::create(path).unwrap();
    for size in [65_536, 4096, 1] {
        let bytes = vec![0; size];
        let error = loop {
            if let Err(error) = file.write_all(&bytes) {
                break error;
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{error}");
    }
}

#[test]
fn a_full_disk_loses_nothing_that_was_acknowledged_and_passes() {
    let place = Place::new();
    configure(&place, &json!({}));
    let script = "mount -t tmpfs -o size=8m none \"$DATA\"\nexec \"$@\"";
    let Some(command) = with_own_mounts(&place, script) else { return };
    let data = place.path("data");
    let daemon = Daemon::start_by(&place, command, |pid| seen_by(pid, &data.join("daemon.sock")));
    let mut client = daemon.client();
    let mut accepted = vec![send(&mut client, "main", "hello")];
    assert_eq!(ended(&mut client, &accepted[0])["state"], "done");

    // This one runs while there is no room, and has its answer then.
    let running = send(&mut client, "main", "sim:delay=1000");
    follow_until(&mut daemon.client(), &running, |line| line["event"]["type"] == "started");
    accepted.push(running);
    let filler = seen_by(daemon.pid(), &data.join("filler"));
    fill(&filler);
    // What is left of the pages that are there already takes a few more.
    let refused = until("a message is refused", || {
        let answer = try_send(&mut client, "other", "hello");
        match answer["job"].as_str() {
            Some(job) => {
                accepted.push(job.to_owned());
                None
            }
            None => Some(answer),
        }
    });
    assert_eq!(refused["type"], "refused", "{refused}");
    assert!(refused["message"].as_str().unwrap().contains("disk is full"), "{refused}");
    let again = until("it says so still", || {
        Some(try_send(&mut client, "other", "hello")).filter(|answer| answer["type"] == "refused")
    });
    assert_eq!(again["code"], refused["code"]);
    until("the log tells of it", || daemon.log().contains("full").then_some(()));

    fs::remove_file(filler).unwrap();
    let after = until("a message is accepted", || {
        try_send(&mut client, "other", "hello")["job"].as_str().map(str::to_owned)
    });
    accepted.push(after);
    for job in &accepted {
        let end = ended(&mut client, job);
        assert_eq!(end["state"], "done", "{end}");
        assert_eq!(end["complete"]["is_error"], false, "{end}");
    }
    assert_eq!(daemon.stop(), Some(0));
}
