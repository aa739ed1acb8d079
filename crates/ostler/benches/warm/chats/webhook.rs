//! How soon Twilio's webhook is answered while many turns run: what somebody wrote is
//! stored by then.

use std::{
    net::TcpListener,
    path::Path,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    client::Client,
    daemon::gateway::{Daemon, Ground},
    figures::{median, quartiles},
    twilio_double::{Inbound, Purpose, Twilio},
};

/// How many turns run meanwhile.
const RUNNING: usize = 100;
/// How many people write, one after the other.
const WRITERS: usize = 200;
/// How many write at once, and how often others do.
const AT_ONCE: usize = 20;
const ROUNDS: usize = 10;
/// How soon half of the calls of people who write one after the other are to be
/// answered, in milliseconds, while the others' turns run.
const LIMIT: f64 = 20.0;
/// What keeps an agent at it until the gateway stops.
const LONG: &str = "sim:hang";
/// How long everything may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A gateway that Twilio calls.
struct Site {
    daemon: Daemon,
    client: Client,
    twilio: Twilio,
    /// How many people have written.
    n_people: usize,
}

/// Measures it; returns whether the limit holds.
pub(super) fn measure(place: &Path) -> bool {
    println!(
        "\nTwilio's webhook while {RUNNING} turns run, everything stored (limit: a median of \
         {LIMIT:.0} ms for people who write one by one)"
    );
    let mut site = Site::start(place);
    let (idle, n_before) = site.called(WRITERS, Meanwhile::Nothing);
    println!("  {n_before:>3} turns run, one by one    n={WRITERS:<4} ms {}", quartiles(idle));
    for _ in 0..RUNNING {
        let inbound = site.inbound(LONG);
        site.twilio.hand_in(&inbound);
    }
    let is_busy = site.wait_until(|n_running| n_running >= RUNNING as u64);
    let (busy, n_least) = site.called(WRITERS, Meanwhile::Others);
    println!(
        "  {n_least:>3} turns run, one by one    n={WRITERS:<4} ms {}",
        quartiles(busy.clone())
    );
    let (hasty, n_then) = site.called(WRITERS, Meanwhile::Answers);
    println!("  {n_then:>3} turns run, without pause n={WRITERS:<4} ms {}", quartiles(hasty));
    let (crowd, n_still) = site.called_at_once();
    let n_crowd = crowd.len();
    println!(
        "  {n_still:>3} turns run, {AT_ONCE} at once     n={n_crowd:<4} ms {}",
        quartiles(crowd)
    );
    site.daemon.stop();
    // There were as many at all times.
    let n_least = n_least.min(n_then).min(n_still);
    let is_true = is_busy && n_before == 0 && n_least >= RUNNING as u64;
    is_true && median(busy) <= LIMIT
}

/// What may run when somebody is about to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meanwhile {
    Nothing,
    /// The turns of others. Who wrote before has his answer.
    Others,
    /// The answers to those who wrote before, too: each is a turn that begins and ends.
    Answers,
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
        let daemon = Daemon::start(&ground);
        Self { client: daemon.client(), daemon, twilio, n_people: 0 }
    }

    /// Makes a message of somebody who has not written before.
    fn inbound(&mut self, text: &str) -> Inbound {
        self.n_people += 1;
        Inbound::new(&self.newest(), &format!("whatsapp:{}", self.twilio.whatsapp_number()), text)
    }

    /// Returns the address of who wrote last.
    fn newest(&self) -> String {
        format!("whatsapp:+1555{:07}", self.n_people)
    }

    fn n_running(&mut self) -> u64 {
        let standing: Value = self.client.ask(&json!({ "type": "status" })).unwrap();
        standing["turns_running"].as_u64().unwrap()
    }

    /// Waits until as many turns run as are wanted; returns whether they do.
    fn wait_until(&mut self, is_it: impl Fn(u64) -> bool) -> bool {
        let started = Instant::now();
        loop {
            let is_there = is_it(self.n_running());
            if is_there || started.elapsed() > PATIENCE {
                return is_there;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Lets people write, one after the other; returns how long each call took, in
    /// milliseconds, and the fewest turns that ran when one of them wrote; where nothing
    /// is to run, the most.
    fn called(&mut self, count: usize, meanwhile: Meanwhile) -> (Vec<f64>, u64) {
        let (mut took, mut running) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for _ in 0..count {
            if meanwhile == Meanwhile::Nothing {
                self.wait_until(|n_running| n_running == 0);
            }
            running.push(self.n_running());
            let inbound = self.inbound("sim:echo=hay");
            let sid = self.twilio.hand_in(&inbound);
            took.push(self.took(&sid).unwrap());
            if meanwhile != Meanwhile::Answers {
                let person = self.newest();
                self.twilio.wait_for("the answer", PATIENCE, |world| {
                    (!world.messages_to(&person).is_empty()).then_some(())
                });
            }
        }
        let ran = match meanwhile {
            Meanwhile::Nothing => running.into_iter().max(),
            Meanwhile::Others | Meanwhile::Answers => running.into_iter().min(),
        };
        (took, ran.unwrap_or_default())
    }

    /// Lets several people write at once, again and again; returns how long each call
    /// took, in milliseconds, and the fewest turns that ran before and after.
    fn called_at_once(&mut self) -> (Vec<f64>, u64) {
        let (mut took, mut fewest) = (Vec::with_capacity(AT_ONCE * ROUNDS), self.n_running());
        for _ in 0..ROUNDS {
            let people: Vec<Inbound> = (0..AT_ONCE).map(|_| self.inbound("sim:echo=hay")).collect();
            let sids: Vec<String> = people.iter().map(|one| self.twilio.send_off(one)).collect();
            self.twilio.wait_for("all calls are answered", PATIENCE, |world| {
                let is_told =
                    |sid: &String| world.posts_of(sid, Purpose::Incoming).next().is_some();
                sids.iter().all(is_told).then_some(())
            });
            took.extend(sids.iter().map(|sid| self.took(sid).unwrap()));
            fewest = fewest.min(self.n_running());
        }
        (took, fewest)
    }

    /// Returns how long a call took, in milliseconds, once it has ended well.
    fn took(&self, sid: &str) -> Option<f64> {
        self.twilio.look(|world| {
            let post = world.posts_of(sid, Purpose::Incoming).next()?;
            assert_eq!(post.answered.as_ref().unwrap().status, 200);
            Some(post.took.as_secs_f64() * 1000.0)
        })
    }
}
