//! The queue beside a model of it: whatever is done to both, in any order and
//! by any clock, both agree on every job after every step.

use std::collections::BTreeMap;

use proptest::{collection::vec, prelude::*, test_runner::TestRunner};

use super::*;
use crate::store::testing;

const LANES: usize = 3;
const WORKERS: usize = 3;
const LIMITS: Limits = Limits { waiting: 7, waiting_in_lane: 4 };
const MAX_FAILURES: u32 = 2;

/// Something that is done. Jobs and tickets are named by their place among all
/// there were, so that old ones are used as often as new ones.
#[derive(Clone, Debug)]
enum Step {
    Enqueue {
        lane: usize,
        priority: i64,
        message: Option<u8>,
    },
    Claim {
        worker: usize,
    },
    Renew {
        ticket: usize,
    },
    Finish {
        ticket: usize,
        end: End,
        /// Jobs that were answered with it, or so somebody says.
        joined: Vec<usize>,
    },
    RenewAll {
        worker: usize,
    },
    Cancel {
        job: usize,
    },
    CancelLane {
        lane: usize,
    },
    Retry {
        job: usize,
    },
    Reclaim,
    /// The clock goes on, or jumps.
    Clock {
        by: i64,
    },
    /// A worker is killed: it never says anything again.
    Kill {
        worker: usize,
    },
}

#[derive(Clone, Copy, Debug)]
enum End {
    Done,
    Dead,
    Cancelled,
    RetryIn(i64),
    Release,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let end = prop_oneof![
        4 => Just(End::Done),
        1 => Just(End::Dead),
        1 => Just(End::Cancelled),
        2 => (0..100_000_i64).prop_map(End::RetryIn),
        1 => Just(End::Release),
    ];
    let step = prop_oneof![
        8 => (0..LANES, 0..2_i64, proptest::option::of(0..6_u8))
            .prop_map(|(lane, priority, message)| Step::Enqueue { lane, priority, message }),
        8 => (0..WORKERS).prop_map(|worker| Step::Claim { worker }),
        3 => (0..20_usize).prop_map(|ticket| Step::Renew { ticket }),
        8 => (0..20_usize, end, vec(0..30_usize, 0..4))
            .prop_map(|(ticket, end, joined)| Step::Finish { ticket, end, joined }),
        2 => (0..WORKERS).prop_map(|worker| Step::RenewAll { worker }),
        2 => (0..30_usize).prop_map(|job| Step::Cancel { job }),
        1 => (0..LANES).prop_map(|lane| Step::CancelLane { lane }),
        1 => (0..30_usize).prop_map(|job| Step::Retry { job }),
        3 => Just(Step::Reclaim),
        4 => (-100_000..100_000_i64).prop_map(|by| Step::Clock { by }),
        1 => (0..WORKERS).prop_map(|worker| Step::Kill { worker }),
    ];
    vec(step, 1..60)
}

/// A job as it should be.
#[derive(Clone, Debug)]
struct ModelJob {
    id: JobId,
    lane: usize,
    seq: usize,
    number: i64,
    priority: i64,
    state: JobState,
    attempt: i64,
    failures: u32,
    not_before: Millis,
    owner: Option<usize>,
    lease_until: Millis,
    cancel_requested: bool,
}

impl ModelJob {
    fn is_open(&self) -> bool {
        matches!(self.state, JobState::Waiting | JobState::Ready | JobState::Running)
    }

    fn has_not_begun(&self) -> bool {
        matches!(self.state, JobState::Waiting | JobState::Ready)
    }
}

/// The whole queue as it should be.
struct Model {
    jobs: Vec<ModelJob>,
    messages: BTreeMap<u8, JobId>,
    last_seq: usize,
    now: Millis,
}

impl Model {
    fn not_begun(&self) -> usize {
        self.jobs.iter().filter(|job| job.has_not_begun()).count()
    }

    fn not_begun_in(&self, lane: usize) -> usize {
        self.jobs.iter().filter(|job| job.lane == lane && job.has_not_begun()).count()
    }

    /// Returns the state of a job that comes to the end of a lane.
    fn joining(&self, lane: usize) -> JobState {
        let is_busy = self.jobs.iter().any(|job| job.lane == lane && job.is_open());
        if is_busy { JobState::Waiting } else { JobState::Ready }
    }

    /// Makes the first that waits in a lane its head, if it has none.
    fn promote(&mut self, lane: usize) {
        let mut lane: Vec<_> =
            self.jobs.iter_mut().filter(|job| job.lane == lane && job.is_open()).collect();
        lane.sort_by_key(|job| job.seq);
        if let Some(head) = lane.first_mut()
            && head.state == JobState::Waiting
        {
            head.state = JobState::Ready;
        }
    }

    fn due(&self) -> Option<&ModelJob> {
        let due = self
            .jobs
            .iter()
            .filter(|job| job.state == JobState::Ready && job.not_before <= self.now);
        due.min_by_key(|job| (-job.priority, job.number, job.id))
    }

    fn of(&mut self, id: JobId) -> &mut ModelJob {
        self.jobs.iter_mut().find(|job| job.id == id).unwrap()
    }

    fn end(&mut self, id: JobId, state: JobState) {
        let job = self.of(id);
        job.state = state;
        let lane = job.lane;
        self.promote(lane);
    }

    /// Returns whether a ticket is still worth something.
    fn holds(&self, ticket: &Ticket, worker: usize) -> Option<&ModelJob> {
        let job = self.jobs.iter().find(|job| job.id == ticket.job)?;
        let is_his = job.attempt == ticket.attempt && job.owner == Some(worker);
        is_his.then_some(job)
    }
}

/// The queue, the model, and the tickets that were given out.
struct Both {
    queue: Queue,
    model: Model,
    tickets: Vec<(Ticket, usize)>,
}

impl Both {
    async fn step(&mut self, step: &Step) {
        let now = self.model.now;
        match *step {
            Step::RenewAll { worker } => self.renew_all(worker).await,
            Step::Enqueue { lane, priority, message } => {
                self.enqueue(lane, priority, message).await;
            }
            Step::Claim { worker } => self.claim(worker).await,
            Step::Renew { ticket } => self.renew(ticket).await,
            Step::Finish { ticket, end, ref joined } => self.finish(ticket, end, joined).await,
            Step::Cancel { job } => self.cancel(job).await,
            Step::CancelLane { lane } => self.cancel_lane(lane).await,
            Step::Retry { job } => self.retry(job).await,
            Step::Reclaim => {
                self.queue.reclaim(now).await.unwrap();
                let is_expired =
                    |job: &&ModelJob| job.state == JobState::Running && job.lease_until <= now;
                let expired: Vec<_> =
                    self.model.jobs.iter().filter(is_expired).map(|job| job.id).collect();
                for id in expired {
                    let job = self.model.of(id);
                    job.owner = None;
                    if job.cancel_requested {
                        self.model.end(id, JobState::Cancelled);
                    } else if job.failures + 1 >= MAX_FAILURES {
                        self.model.end(id, JobState::Dead);
                    } else {
                        job.failures += 1;
                        job.state = JobState::Ready;
                        job.not_before = Millis(0);
                    }
                }
            }
            Step::Clock { by } => self.model.now = Millis(now.0 + by),
            Step::Kill { worker } => self.tickets.retain(|(_, owner)| *owner != worker),
        }
    }

    async fn enqueue(&mut self, number: usize, priority: i64, message: Option<u8>) {
        let base = match message {
            Some(message) => with_key(&message.to_string()),
            None => job(),
        };
        let new = NewJob { priority, max_failures: MAX_FAILURES, ..base };
        let now = self.model.now;
        let done = self.queue.enqueue(lane(&number.to_string()), new, now).await;
        if let Some(earlier) = message.and_then(|message| self.model.messages.get(&message)) {
            assert_eq!(done.unwrap(), Enqueued::Again(*earlier));
            return;
        }
        let is_full = self.model.not_begun() >= LIMITS.waiting as usize
            || self.model.not_begun_in(number) >= LIMITS.waiting_in_lane as usize;
        if is_full {
            assert!(matches!(done, Err(EnqueueError::QueueFull { .. })), "{done:?}");
            return;
        }
        let Ok(Enqueued::New(id)) = done else { panic!("{done:?}") };
        if let Some(message) = message {
            self.model.messages.insert(message, id);
        }
        let open = self.model.jobs.iter().filter(|job| job.has_not_begun());
        let newest = open.map(|job| job.number + 1).max().unwrap_or(0);
        self.model.last_seq += 1;
        self.model.jobs.push(ModelJob {
            id,
            lane: number,
            seq: self.model.last_seq,
            number: newest.max(now.0),
            priority,
            state: self.model.joining(number),
            attempt: 0,
            failures: 0,
            not_before: Millis(0),
            owner: None,
            lease_until: Millis(0),
            cancel_requested: false,
        });
    }

    async fn claim(&mut self, worker: usize) {
        let now = self.model.now;
        let claimed = self.queue.claim(&WorkerId::new(worker), now, LEASE).await.unwrap();
        let expected = self.model.due().map(|job| job.id);
        assert_eq!(claimed.as_ref().map(|(job, _)| job.id), expected);
        let Some((job, ticket)) = claimed else { return };
        let expected = self.model.of(job.id);
        expected.state = JobState::Running;
        expected.attempt += 1;
        expected.owner = Some(worker);
        expected.lease_until = now.after(LEASE);
        self.tickets.push((ticket, worker));
    }

    /// Returns a ticket, if any was given out to somebody who lives.
    fn ticket(&self, number: usize) -> Option<(Ticket, usize)> {
        let n_tickets = self.tickets.len();
        // Counted from the newest, so that short runs hit one as well.
        (n_tickets > 0).then(|| self.tickets[n_tickets - 1 - number % n_tickets].clone())
    }

    async fn renew(&mut self, number: usize) {
        let Some((ticket, worker)) = self.ticket(number) else { return };
        let now = self.model.now;
        let lease = self.queue.renew(&ticket, now, LEASE).await.unwrap();
        let held = self.model.holds(&ticket, worker).filter(|job| job.state == JobState::Running);
        let expected = match held {
            None => Lease::Lost,
            Some(job) if job.cancel_requested => Lease::CancelRequested,
            Some(_) => Lease::Held,
        };
        assert_eq!(lease, expected);
        if lease != Lease::Lost {
            self.model.of(ticket.job).lease_until = now.after(LEASE);
        }
    }

    async fn renew_all(&mut self, worker: usize) {
        let now = self.model.now;
        let owner = WorkerId::new(worker);
        let wishes = self.queue.wishes(&owner).await.unwrap();
        let mut renewed = self.queue.renew_all(&owner, now, LEASE).await.unwrap();
        let is_his =
            |job: &&mut ModelJob| job.state == JobState::Running && job.owner == Some(worker);
        let mut expected = Vec::new();
        for job in self.model.jobs.iter_mut().filter(is_his) {
            job.lease_until = now.after(LEASE);
            expected.push(Renewed {
                job: job.id,
                lane: lane(&job.lane.to_string()),
                attempt: job.attempt,
                is_cancel_requested: job.cancel_requested,
            });
        }
        expected.sort_by_key(|renewed| renewed.job);
        renewed.sort_by_key(|renewed| renewed.job);
        assert_eq!(renewed, expected);
        let mut wished: Vec<_> = wishes.iter().map(|job| job.id).collect();
        wished.sort();
        expected.retain(|renewed| renewed.is_cancel_requested);
        assert_eq!(wished, expected.iter().map(|renewed| renewed.job).collect::<Vec<_>>());
    }

    async fn finish(&mut self, number: usize, end: End, joined: &[usize]) {
        let Some((ticket, worker)) = self.ticket(number) else { return };
        let now = self.model.now;
        let reason = String::new();
        let said = match end {
            End::Done => JobEnd::Done,
            End::Dead => JobEnd::Dead { reason },
            End::Cancelled => JobEnd::Cancelled { reason },
            End::RetryIn(ms) => JobEnd::Retry { not_before: Millis(now.0 + ms), reason },
            End::Release => JobEnd::Release,
        };
        let jobs = joined.iter().filter_map(|number| self.model.jobs.get(*number));
        let jobs: Vec<_> = jobs.map(|job| job.id).collect();
        let with =
            Joined { jobs: jobs.clone(), state: JobState::Done, reason: "joined".to_owned() };
        let finished: Result<_, StoreError> = self
            .queue
            .finish_with(&ticket, said, with, now, (), |_, state, ()| {
                Box::pin(async move { Ok(state) })
            })
            .await;
        let finished = finished.unwrap();
        let Some(job) = self.model.holds(&ticket, worker).cloned() else {
            assert_eq!(finished, Finished::Lost);
            return;
        };
        if !job.is_open() {
            assert_eq!(finished, Finished::Before);
            return;
        }
        let state = match end {
            End::Done => JobState::Done,
            End::Dead => JobState::Dead,
            End::Cancelled => JobState::Cancelled,
            End::RetryIn(_) | End::Release if job.cancel_requested => JobState::Cancelled,
            End::RetryIn(_) if job.failures + 1 >= MAX_FAILURES => JobState::Dead,
            End::RetryIn(_) | End::Release => JobState::Ready,
        };
        assert_eq!(finished, Finished::Now(state, state));
        if state != JobState::Ready {
            let lane = job.lane;
            for joined in self.model.jobs.iter_mut().filter(|job| jobs.contains(&job.id)) {
                if joined.lane == lane && joined.has_not_begun() {
                    joined.state = JobState::Done;
                }
            }
            self.model.end(job.id, state);
            return;
        }
        let job = self.model.of(job.id);
        job.state = JobState::Ready;
        job.owner = None;
        job.not_before = Millis(0);
        if let End::RetryIn(ms) = end {
            job.failures += 1;
            job.not_before = Millis(now.0 + ms);
        }
    }

    async fn cancel(&mut self, number: usize) {
        let Some(job) = self.model.jobs.get(number).cloned() else { return };
        let outcome = self.queue.cancel(job.id, "stop", self.model.now).await.unwrap();
        let expected = match job.state {
            JobState::Waiting | JobState::Ready => {
                self.model.end(job.id, JobState::Cancelled);
                CancelOutcome::Cancelled
            }
            JobState::Running => {
                self.model.of(job.id).cancel_requested = true;
                CancelOutcome::Requested
            }
            JobState::Done | JobState::Dead | JobState::Cancelled => {
                CancelOutcome::Ended(job.state)
            }
        };
        assert_eq!(outcome, expected);
    }

    async fn cancel_lane(&mut self, number: usize) {
        let now = self.model.now;
        let all = self.queue.cancel_lane(&lane(&number.to_string()), "stop", now).await.unwrap();
        let mut expected = LaneCancel { n_cancelled: 0, running: None };
        for job in self.model.jobs.iter_mut().filter(|job| job.lane == number) {
            if job.has_not_begun() {
                job.state = JobState::Cancelled;
                expected.n_cancelled += 1;
            } else if job.state == JobState::Running {
                job.cancel_requested = true;
                expected.running = Some(job.id);
            }
        }
        assert_eq!(all, expected);
    }

    async fn retry(&mut self, number: usize) {
        let Some(job) = self.model.jobs.get(number).cloned() else { return };
        let outcome = self.queue.retry(job.id).await.unwrap();
        if job.state != JobState::Dead {
            assert_eq!(outcome, RetryOutcome::NotDead(job.state));
            return;
        }
        let state = self.model.joining(job.lane);
        assert_eq!(outcome, RetryOutcome::Retried(state));
        self.model.last_seq += 1;
        let seq = self.model.last_seq;
        let job = self.model.of(job.id);
        (job.state, job.seq, job.owner) = (state, seq, None);
        (job.failures, job.not_before, job.cancel_requested) = (0, Millis(0), false);
    }

    /// Compares every job, and looks at what must hold whatever the model says.
    async fn compare(&self) {
        let stored = self.queue.list(None, None, 1000).await.unwrap();
        assert_eq!(stored.len(), self.model.jobs.len(), "a job was lost, or made up");
        let mut heads: BTreeMap<String, i64> = BTreeMap::new();
        for job in &stored {
            let model = self.model.jobs.iter().find(|model| model.id == job.id).unwrap();
            let seen = (job.state, job.attempt, job.failures, job.cancel_requested);
            // What made it dead is not counted any more.
            let expected =
                (model.state, model.attempt, i64::from(model.failures), model.cancel_requested);
            assert_eq!(seen, expected, "{job:?}");
            if matches!(job.state, JobState::Ready | JobState::Running) {
                let other = heads.insert(job.lane.to_string(), job.seq);
                assert_eq!(other, None, "two heads in a lane");
            }
        }
        for job in stored.iter().filter(|job| job.state == JobState::Waiting) {
            let head = heads.get(job.lane.as_str());
            assert!(head.is_some_and(|head| *head < job.seq), "a lane without its head");
        }
    }
}

/// Plays steps on an empty queue.
async fn play(store: Store, steps: Vec<Step>) {
    testing::clear_queue(&store).await;
    let model = Model { jobs: Vec::new(), messages: BTreeMap::new(), last_seq: 0, now: NOW };
    let mut both = Both { queue: Queue::with_limits(store, LIMITS), model, tickets: Vec::new() };
    for step in &steps {
        both.step(step).await;
        both.compare().await;
    }
}

/// Plays many random runs on one store.
async fn check(store: Store) {
    let runtime = tokio::runtime::Handle::current();
    let checked = tokio::task::spawn_blocking(move || {
        let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) };
        TestRunner::new(config).run(&steps(), |steps| {
            runtime.block_on(play(store.clone(), steps));
            Ok(())
        })
    });
    checked.await.unwrap().unwrap();
}

on_both! {
    async fn whatever_happens_the_queue_is_as_its_model(store: Store) {
        check(store).await;
    }
}
