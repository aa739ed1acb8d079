//! The experiment: senders and a receiver around gateways that are killed, and
//! the account at the end.

use std::{
    path::PathBuf,
    sync::Arc,
    thread::JoinHandle,
    time::{Duration, Instant},
};

use super::{
    chance::Chance,
    gateway::{Gateway, Stable},
    ledger::Ledger,
    place::Place,
    receiver::Receiver,
    sender::Sender,
    stored::{self, Where},
};

/// How many conversations go on at a time.
const CONVERSATIONS: usize = 8;
/// After how many acceptances a kill comes, at most.
const LONGEST_RUN: u64 = 8;
/// How much later, at most.
const LONGEST_WAIT: Duration = Duration::from_millis(300);
/// A time for which a write is not tried again.
const OUTAGE: Duration = Duration::from_millis(1500);
/// After how many kills everything is answered before the next: a job whose
/// gateway ends ten times without an answer is given up, which is not tried here.
const IN_A_ROW: usize = 5;
/// How long nothing may happen: longer than the lease of a reply that was being
/// sent, for on PostgreSQL those behind it wait for its end.
const LONGEST_SILENCE: Duration = Duration::from_secs(90);

pub(crate) struct Experiment {
    name: &'static str,
    place: Place,
    /// How often to kill.
    pub(crate) kills: usize,
    pub(crate) chance: Chance,
    ledger: Arc<Ledger>,
    senders: Vec<JoinHandle<()>>,
    n_moments: usize,
    started: Instant,
}

impl Experiment {
    pub(crate) fn new(name: &'static str) -> Self {
        let kills = match std::env::var("OSTLER_TEST_KILLS") {
            Ok(text) => text.parse().expect("OSTLER_TEST_KILLS is a number"),
            Err(_) => 20,
        };
        let seed = Chance::seed();
        eprintln!("{name}: OSTLER_TEST_SEED={seed}");
        Self {
            name,
            place: Place::new(),
            kills,
            chance: Chance::new(seed),
            ledger: Arc::default(),
            senders: Vec::new(),
            n_moments: 0,
            started: Instant::now(),
        }
    }

    /// Prepares a gateway.
    pub(crate) fn stable(&self, name: &str, database_url: Option<&str>) -> Stable {
        Stable::new(&self.place, name, database_url)
    }

    /// Begins to send to whichever of these sockets answers.
    pub(crate) fn send_to(&mut self, sockets: &[PathBuf]) {
        let receiver = Receiver::start(self.ledger.clone());
        for conversation in 0..CONVERSATIONS {
            let sender = Sender {
                conversation,
                url: receiver.url(conversation),
                sockets: sockets.to_vec(),
                ledger: self.ledger.clone(),
                chance: Chance::new(self.chance.below(u64::MAX)),
            };
            self.senders.push(std::thread::spawn(move || sender.run()));
        }
    }

    /// Waits for the moment of the next kill: some time after some acceptances.
    pub(crate) fn wait_for_moment(&mut self) {
        self.n_moments += 1;
        if self.n_moments.is_multiple_of(IN_A_ROW) {
            let n_accepted = self.ledger.n_accepted();
            let answered = self.ledger.wait_until_settled(n_accepted, LONGEST_SILENCE);
            assert!(answered, "{}: nothing is answered any more; {}", self.name, self.standing());
        }
        let n_more = usize::try_from(1 + self.chance.below(LONGEST_RUN)).unwrap();
        self.wait_for_acceptances(n_more);
        self.wait_a_little();
    }

    /// Waits until something more was accepted.
    pub(crate) fn wait_for_acceptances(&self, n_more: usize) {
        let n_accepted = self.ledger.n_accepted() + n_more;
        let accepted = self.ledger.wait_for_accepted(n_accepted, LONGEST_SILENCE);
        assert!(accepted, "{}: nothing is accepted any more; {}", self.name, self.standing());
    }

    /// Lets a random time pass: at which moment it hits is the experiment.
    pub(crate) fn wait_a_little(&mut self) {
        std::thread::sleep(self.chance.within(LONGEST_WAIT));
    }

    /// Lets more time pass than a gateway hides from its senders.
    pub(crate) fn wait_long(&self) {
        std::thread::sleep(OUTAGE);
    }

    /// Ends the sending, waits for the last reply, stops the gateways and
    /// compares the accounts.
    pub(crate) fn settle(&mut self, gateways: Vec<Gateway>, stable: &Stable, store: &Where<'_>) {
        self.ledger.end();
        for sender in self.senders.drain(..) {
            sender.join().unwrap();
        }
        let settled = self.ledger.wait_until_settled(usize::MAX, LONGEST_SILENCE);
        if !settled {
            eprintln!("{}: replies are missing; {}", self.name, self.standing());
        }
        for gateway in gateways {
            let status = gateway.stop();
            assert_eq!(status.code(), Some(0), "a gateway that is told to stop does so");
        }
        let left = self.place.processes();
        assert!(left.is_empty(), "processes were left behind: {left:#?}");
        let check = stable.ostler(&["store", "check"]).output().unwrap();
        assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stdout));
        let stored = stored::read(store);
        let balance = self.ledger.balance(&stored);
        println!(
            "{}: kills {}, accepted {}, answered {}, duplicated {}, lost {}, repeated {} (same key), seconds {:.0}",
            self.name,
            self.kills,
            balance.accepted,
            balance.answered,
            balance.duplicated(),
            balance.lost(),
            balance.repeated,
            self.started.elapsed().as_secs_f64(),
        );
        assert!(
            balance.faults.is_empty(),
            "{} faults: {:#?}",
            balance.faults.len(),
            balance.faults
        );
        assert!(settled);
    }

    fn standing(&self) -> String {
        let pages = self.ledger.pages();
        format!(
            "{} accepted ({} when sent again), {} refused, {} replies",
            pages.accepted.len(),
            pages.n_known,
            pages.n_refused,
            pages.delivered.len()
        )
    }
}

impl Drop for Experiment {
    /// A test that failed leaves no sender behind that tries for ever.
    fn drop(&mut self) {
        self.ledger.end();
    }
}
