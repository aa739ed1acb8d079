//! How soon Twilio's webhook is answered while many turns run: what somebody wrote is
//! stored by then.

use std::{
    net::TcpListener,
    path::Path,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    daemon::gateway::{Daemon, Ground},
    figures::{median, quartiles},
    twilio_double::{Inbound, Purpose, Twilio},
};

/// How many turns run meanwhile, and how many people write then.
const RUNNING: usize = 100;
const WRITERS: usize = 200;
/// How soon half of the calls are to be answered, in milliseconds.
const LIMIT: f64 = 20.0;
/// What keeps an agent at it for as long as it is measured.
const LONG: &str = "sim:delay=60000";
/// How long everything may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A gateway that Twilio calls.
struct Site {
    daemon: Daemon,
    twilio: Twilio,
}

/// Measures it; returns whether the limit holds.
pub(super) fn measure(place: &Path) -> bool {
    println!(
        "\nTwilio's webhook while {RUNNING} turns run, everything stored (limit: a median of \
         {LIMIT:.0} ms)"
    );
    let site = Site::start(place);
    let idle = site.called(0, WRITERS, "sim:echo=alone");
    let mut client = site.daemon.client();
    site.called(WRITERS, RUNNING, LONG);
    let started = Instant::now();
    let n_running = loop {
        let standing: Value = client.ask(&json!({ "type": "status" })).unwrap();
        let n_running = standing["turns_running"].as_u64().unwrap();
        if n_running >= RUNNING as u64 || started.elapsed() > PATIENCE {
            break n_running;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    let busy = site.called(WRITERS + RUNNING, WRITERS, "sim:echo=beside");
    println!("  nothing else runs  n={WRITERS:<4} ms {}", quartiles(idle));
    println!("  {n_running} turns run     n={WRITERS:<4} ms {}", quartiles(busy.clone()));
    site.daemon.stop();
    n_running >= RUNNING as u64 && median(busy) <= LIMIT
}

impl Site {
    fn start(place: &Path) -> Self {
        let twilio = Twilio::start();
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let url = format!("http://{free}");
        twilio.set_webhook(&format!("{url}/twilio/messages"));
        let gateway = json!({
            "listen": free.to_string(), "max_concurrent_turns": 1000, "max_queue_depth": 1000,
        });
        let settings = json!({
            "account_sid": twilio.account_sid(),
            "auth_token": twilio.auth_token(),
            "whatsapp_from": twilio.whatsapp_number(),
            "public_url": url,
            "api_url": twilio.api_url(),
            "allow_from": ["*"],
        });
        let ground = Ground::new(place, &gateway).with_part("twilio", &settings);
        Self { daemon: Daemon::start(&ground), twilio }
    }

    /// Lets people write, one after the other; returns how long each call took, in
    /// milliseconds.
    fn called(&self, first: usize, count: usize, text: &str) -> Vec<f64> {
        let to = format!("whatsapp:{}", self.twilio.whatsapp_number());
        let took = (first..first + count).map(|number| {
            let from = format!("whatsapp:+1555{number:07}");
            let sid = self.twilio.hand_in(&Inbound::new(&from, &to, text));
            let posts = self
                .twilio
                .look(|world| world.posts_of(&sid, Purpose::Incoming).cloned().collect::<Vec<_>>());
            let post = posts.first().unwrap();
            assert_eq!(post.answered.as_ref().unwrap().status, 200);
            post.took.as_secs_f64() * 1000.0
        });
        took.collect()
    }
}
