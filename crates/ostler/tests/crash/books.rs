//! The bookkeeping: what was accepted, what the store has, what was delivered,
//! and what does not add up. Pure.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

/// A message, by its conversation and its number there, from 1 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Message {
    pub(crate) conversation: usize,
    pub(crate) number: u32,
}

impl Message {
    /// What the agent says when it answers this message.
    fn echo(self) -> String {
        format!("You said {self}.")
    }

    /// Returns the message that a text is or answers, by what stands before its name.
    pub(crate) fn after(mark: &str, text: &str) -> Option<Self> {
        let word = text.split_once(mark)?.1;
        let word = word.split(|c: char| c != '-' && !c.is_alphanumeric()).next()?;
        let (conversation, number) = word.strip_prefix('c')?.split_once('-')?;
        Some(Self { conversation: conversation.parse().ok()?, number: number.parse().ok()? })
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "c{}-{}", self.conversation, self.number)
    }
}

/// What a sender was told.
#[derive(Clone, Debug)]
pub(crate) struct Accepted {
    pub(crate) message: Message,
    pub(crate) job: String,
}

/// A reply that came, as often as it came.
#[derive(Clone, Debug)]
pub(crate) struct Delivered {
    pub(crate) key: String,
    pub(crate) job: String,
    pub(crate) conversation: usize,
    /// Nothing for a reply that tells of a failure.
    pub(crate) text: Option<String>,
    pub(crate) is_unsure: bool,
}

/// A job as the store has it in the end.
#[derive(Clone, Debug)]
pub(crate) struct StoredJob {
    pub(crate) id: String,
    /// The message that it came from, if its prompt says so.
    pub(crate) message: Option<Message>,
    pub(crate) conversation: usize,
    pub(crate) place: i64,
    pub(crate) state: String,
    /// The turns that answered.
    pub(crate) answers: Vec<Answer>,
    /// The replies that were to be delivered: their ids and states.
    pub(crate) replies: Vec<(String, String)>,
}

/// A turn that ended without an error.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) text: String,
    pub(crate) session: String,
    /// The numbers of its `complete` events in the log.
    pub(crate) completes: Vec<i64>,
}

/// Something that must not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Accepted, and never answered or never delivered.
    Lost { message: Message, what: String },
    /// More than one job, answer or reply of a message.
    Duplicated { message: Message, what: String },
    /// Not in the order in which the conversation was accepted.
    OutOfOrder { message: Message, what: &'static str },
    /// The answer of another message.
    WrongAnswer { message: Message, text: String },
    /// The same reply came again without a word that it may have come before.
    Unmarked { message: Message },
    /// A session that was known was not gone on with.
    SessionChanged { message: Message },
    /// A job or a reply that belongs to nothing that was accepted.
    Unknown { what: String },
}

/// What came out.
#[derive(Debug)]
pub(crate) struct Balance {
    pub(crate) accepted: usize,
    pub(crate) answered: usize,
    /// Replies that came again, with the same key.
    pub(crate) repeated: usize,
    pub(crate) faults: Vec<Fault>,
}

impl Balance {
    pub(crate) fn lost(&self) -> usize {
        self.faults.iter().filter(|fault| matches!(fault, Fault::Lost { .. })).count()
    }

    pub(crate) fn duplicated(&self) -> usize {
        self.faults.iter().filter(|fault| matches!(fault, Fault::Duplicated { .. })).count()
    }

    /// Compares the three accounts.
    pub(crate) fn of(accepted: &[Accepted], stored: &[StoredJob], delivered: &[Delivered]) -> Self {
        let mut books = Books { jobs: BTreeMap::new(), faults: Vec::new() };
        books.enter_accepted(accepted);
        let answered = books.compare_stored(stored);
        let repeated = books.compare_delivered(delivered);
        books.check_order(stored, delivered);
        Self { accepted: books.jobs.len(), answered, repeated, faults: books.faults }
    }
}

struct Books {
    /// What was accepted, by job.
    jobs: BTreeMap<String, Message>,
    faults: Vec<Fault>,
}

impl Books {
    fn enter_accepted(&mut self, accepted: &[Accepted]) {
        let mut messages = BTreeSet::new();
        for Accepted { message, job } in accepted {
            let (message, again) = (*message, !messages.insert(*message));
            if again || self.jobs.contains_key(job) {
                let what = format!("accepted as {job}, which is not one job for one message");
                self.faults.push(Fault::Duplicated { message, what });
            }
            self.jobs.insert(job.clone(), message);
        }
    }

    /// Returns how many have their answer.
    fn compare_stored(&mut self, stored: &[StoredJob]) -> usize {
        let by_id: BTreeMap<&str, &StoredJob> =
            stored.iter().map(|job| (job.id.as_str(), job)).collect();
        for job in stored.iter().filter(|job| !self.jobs.contains_key(&job.id)) {
            self.faults.push(stray(job.message, format!("the job {}", job.id)));
        }
        let mut answered = 0;
        for (id, message) in &self.jobs {
            let message = *message;
            let Some(job) = by_id.get(id.as_str()) else {
                let what = format!("{id} is not in the store");
                self.faults.push(Fault::Lost { message, what });
                continue;
            };
            match job.answers.as_slice() {
                [] => {
                    let what = format!("{id} has no answer and is {}", job.state);
                    self.faults.push(Fault::Lost { message, what });
                }
                [answer] => {
                    answered += 1;
                    if job.state != "done" {
                        let what = format!("{id} has its answer and is {}", job.state);
                        self.faults.push(Fault::Duplicated { message, what });
                    }
                    if answer.completes.len() != 1 {
                        let what = format!("{id} completed {} times", answer.completes.len());
                        self.faults.push(Fault::Duplicated { message, what });
                    }
                    if !answer.text.contains(&message.echo()) {
                        let text = answer.text.clone();
                        self.faults.push(Fault::WrongAnswer { message, text });
                    }
                }
                answers => {
                    let what = format!("{id} has {} answers", answers.len());
                    self.faults.push(Fault::Duplicated { message, what });
                }
            }
            match job.replies.as_slice() {
                [(_, state)] if state == "sent" => {}
                [] | [_] => {
                    let what = format!("the reply of {id} did not leave: {:?}", job.replies);
                    self.faults.push(Fault::Lost { message, what });
                }
                replies => {
                    let what = format!("{id} has {} replies", replies.len());
                    self.faults.push(Fault::Duplicated { message, what });
                }
            }
        }
        answered
    }

    /// Returns how many replies came again.
    fn compare_delivered(&mut self, delivered: &[Delivered]) -> usize {
        let mut repeated = 0;
        let mut keys: BTreeMap<&str, &str> = BTreeMap::new();
        for reply in delivered {
            let Some(message) = self.jobs.get(&reply.job).copied() else {
                let message =
                    Message::after("You said ", reply.text.as_deref().unwrap_or_default());
                self.faults.push(stray(message, format!("the reply {}", reply.key)));
                continue;
            };
            match keys.insert(&reply.job, &reply.key) {
                None => {}
                Some(key) if key == reply.key => {
                    repeated += 1;
                    if !reply.is_unsure {
                        self.faults.push(Fault::Unmarked { message });
                    }
                }
                Some(key) => {
                    let what = format!("replies {key} and {} of {}", reply.key, reply.job);
                    self.faults.push(Fault::Duplicated { message, what });
                }
            }
            let text = reply.text.as_deref().unwrap_or("a failure");
            if reply.conversation != message.conversation || !text.contains(&message.echo()) {
                self.faults.push(Fault::WrongAnswer { message, text: text.to_owned() });
            }
        }
        let missing = self.jobs.iter().filter(|(id, _)| !keys.contains_key(id.as_str()));
        for (id, message) in missing {
            let what = format!("no reply of {id} came");
            self.faults.push(Fault::Lost { message: *message, what });
        }
        repeated
    }

    /// In each conversation, messages are to be in their order: in the lane, in
    /// the log and at the receiver; and from the first answer on in one session.
    fn check_order(&mut self, stored: &[StoredJob], delivered: &[Delivered]) {
        let known = |id: &str| self.jobs.get(id).copied();
        let mut places = Vec::new();
        let mut completes = Vec::new();
        for job in stored {
            let Some(message) = known(&job.id) else { continue };
            places.push((job.conversation, job.place, message));
            for answer in &job.answers {
                let of_log = answer.completes.iter().map(|n| (job.conversation, *n, message));
                completes.extend(of_log);
            }
        }
        let mut arrivals = Vec::new();
        let mut seen = BTreeSet::new();
        for (reply, at) in delivered.iter().zip(0..) {
            if seen.insert(&reply.key)
                && let Some(message) = known(&reply.job)
            {
                arrivals.push((reply.conversation, at, message));
            }
        }
        let accounts = [("its lane", places), ("the log", completes), ("what came", arrivals)];
        for (what, mut account) in accounts {
            account.sort_unstable();
            for pair in account.windows(2) {
                let [(one, _, before), (other, _, message)] = pair else { continue };
                if one == other && before.number > message.number {
                    self.faults.push(Fault::OutOfOrder { message: *message, what });
                }
            }
        }
        self.check_sessions(stored);
    }

    fn check_sessions(&mut self, stored: &[StoredJob]) {
        let mut answers: Vec<(usize, i64, &str, Message)> = stored
            .iter()
            .filter_map(|job| Some((job, *self.jobs.get(&job.id)?)))
            .flat_map(|(job, message)| {
                job.answers
                    .iter()
                    .map(move |answer| (job.conversation, job.place, &*answer.session, message))
            })
            .collect();
        answers.sort_unstable();
        for pair in answers.windows(2) {
            let [(one, _, before, _), (other, _, session, message)] = pair else { continue };
            if one == other && before != session {
                self.faults.push(Fault::SessionChanged { message: *message });
            }
        }
    }
}

/// What it is that nobody was told of: a message once more, if it says which.
fn stray(message: Option<Message>, what: String) -> Fault {
    match message {
        Some(message) => Fault::Duplicated { message, what },
        None => Fault::Unknown { what },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three accounts that agree: two conversations with two messages each.
    #[derive(Clone)]
    struct Accounts {
        accepted: Vec<Accepted>,
        stored: Vec<StoredJob>,
        delivered: Vec<Delivered>,
    }

    impl Accounts {
        fn fine() -> Self {
            let mut accounts =
                Self { accepted: Vec::new(), stored: Vec::new(), delivered: Vec::new() };
            for (conversation, number, at) in [(0, 1, 1), (1, 1, 2), (0, 2, 3), (1, 2, 4)] {
                let message = Message { conversation, number };
                let job = format!("job_{at}");
                let text = message.echo();
                let session = format!("session {conversation}");
                accounts.accepted.push(Accepted { message, job: job.clone() });
                accounts.stored.push(StoredJob {
                    id: job.clone(),
                    message: Some(message),
                    conversation,
                    place: i64::from(number),
                    state: "done".to_owned(),
                    answers: vec![Answer { text: text.clone(), session, completes: vec![at] }],
                    replies: vec![(format!("out_{at}"), "sent".to_owned())],
                });
                accounts.delivered.push(Delivered {
                    key: format!("out_{at}"),
                    job,
                    conversation,
                    text: Some(text),
                    is_unsure: false,
                });
            }
            accounts
        }

        fn balance(&self) -> Balance {
            Balance::of(&self.accepted, &self.stored, &self.delivered)
        }
    }

    /// Returns the faults that a change makes.
    fn faults(change: impl FnOnce(&mut Accounts)) -> Vec<Fault> {
        let mut accounts = Accounts::fine();
        change(&mut accounts);
        accounts.balance().faults
    }

    const SECOND: Message = Message { conversation: 1, number: 1 };

    fn is_lost(fault: &Fault) -> bool {
        matches!(fault, Fault::Lost { message: SECOND, .. })
    }

    fn is_duplicated(fault: &Fault) -> bool {
        matches!(fault, Fault::Duplicated { message: SECOND, .. })
    }

    #[test]
    fn accounts_that_agree_have_no_fault() {
        let balance = Accounts::fine().balance();
        assert_eq!(balance.faults, []);
        assert_eq!((balance.accepted, balance.answered, balance.repeated), (4, 4, 0));
    }

    #[test]
    fn a_job_that_is_gone_is_lost() {
        let faults = faults(|accounts| drop(accounts.stored.remove(1)));
        assert!(matches!(faults.as_slice(), [fault] if is_lost(fault)), "{faults:?}");
    }

    #[test]
    fn a_job_without_an_answer_is_lost_whatever_its_state() {
        for state in ["waiting", "running", "dead", "done"] {
            let faults = faults(|accounts| {
                accounts.stored[1].answers.clear();
                accounts.stored[1].state = state.to_owned();
            });
            assert!(matches!(faults.as_slice(), [fault] if is_lost(fault)), "{faults:?}");
        }
    }

    #[test]
    fn a_reply_that_never_came_is_lost() {
        let faults = faults(|accounts| drop(accounts.delivered.remove(1)));
        assert!(matches!(faults.as_slice(), [fault] if is_lost(fault)), "{faults:?}");
    }

    #[test]
    fn a_reply_that_was_given_up_is_lost() {
        let faults = faults(|accounts| accounts.stored[1].replies[0].1 = "failed".to_owned());
        assert!(matches!(faults.as_slice(), [fault] if is_lost(fault)), "{faults:?}");
    }

    #[test]
    fn a_second_answer_is_a_duplicate() {
        let faults = faults(|accounts| {
            let mut second = accounts.stored[1].answers[0].clone();
            second.completes = vec![3];
            accounts.stored[1].answers.push(second);
        });
        assert!(faults.iter().any(is_duplicated), "{faults:?}");
    }

    #[test]
    fn a_turn_that_completes_twice_is_a_duplicate() {
        let faults = faults(|accounts| accounts.stored[1].answers[0].completes.push(2));
        assert!(faults.iter().any(is_duplicated), "{faults:?}");
    }

    #[test]
    fn a_job_that_is_to_run_again_after_its_answer_is_a_duplicate() {
        let faults = faults(|accounts| accounts.stored[1].state = "ready".to_owned());
        assert!(matches!(faults.as_slice(), [fault] if is_duplicated(fault)), "{faults:?}");
    }

    #[test]
    fn a_second_reply_is_a_duplicate_in_the_store_and_at_the_receiver() {
        let stored = faults(|accounts| {
            accounts.stored[1].replies.push(("out_9".to_owned(), "sent".to_owned()));
        });
        assert!(matches!(stored.as_slice(), [fault] if is_duplicated(fault)), "{stored:?}");
        let delivered = faults(|accounts| {
            let mut second = accounts.delivered[1].clone();
            second.key = "out_9".to_owned();
            second.is_unsure = true;
            accounts.delivered.push(second);
        });
        assert!(delivered.iter().any(is_duplicated), "{delivered:?}");
    }

    #[test]
    fn a_message_that_became_two_jobs_is_a_duplicate() {
        let faults = faults(|accounts| {
            let job = "job_9".to_owned();
            accounts.accepted.push(Accepted { message: SECOND, job: job.clone() });
            let twin = StoredJob { id: job, ..accounts.stored[1].clone() };
            accounts.stored.push(twin);
        });
        assert!(faults.iter().any(is_duplicated), "{faults:?}");
    }

    #[test]
    fn a_job_nobody_was_told_of_is_a_duplicate_of_its_message_and_so_is_its_reply() {
        let found = faults(|accounts| drop(accounts.accepted.remove(1)));
        assert_eq!(found.iter().filter(|fault| is_duplicated(fault)).count(), 2, "{found:?}");
        let found = faults(|accounts| {
            accounts.accepted.remove(1);
            accounts.stored[1].message = None;
            accounts.delivered[1].text = None;
        });
        let is_unknown = |fault: &Fault| matches!(fault, Fault::Unknown { .. });
        assert_eq!(found.iter().filter(|fault| is_unknown(fault)).count(), 2, "{found:?}");
    }

    #[test]
    fn a_message_is_known_by_its_name_in_a_prompt_and_in_an_answer() {
        let message = Some(Message { conversation: 3, number: 17 });
        assert_eq!(Message::after("sim:echo=", "sim:echo=c3-17 sim:delay=4"), message);
        assert_eq!(Message::after("You said ", "Hello. You said c3-17. It has 9."), message);
        for text in ["", "You said hello.", "You said c3.", "You said cx-1."] {
            assert_eq!(Message::after("You said ", text), None, "{text}");
        }
    }

    #[test]
    fn a_repetition_with_its_mark_is_counted_and_no_fault() {
        let mut accounts = Accounts::fine();
        let again = Delivered { is_unsure: true, ..accounts.delivered[1].clone() };
        accounts.delivered.push(again);
        let balance = accounts.balance();
        assert_eq!((balance.repeated, balance.faults), (1, vec![]));
    }

    #[test]
    fn a_repetition_without_its_mark_is_a_fault() {
        let faults = faults(|accounts| {
            let again = accounts.delivered[1].clone();
            accounts.delivered.push(again);
        });
        assert_eq!(faults, [Fault::Unmarked { message: SECOND }]);
    }

    #[test]
    fn the_answer_of_another_message_is_found_in_the_store_and_at_the_receiver() {
        let stored =
            faults(|accounts| accounts.stored[1].answers[0].text = "You said c1-2.".into());
        let delivered =
            faults(|accounts| accounts.delivered[1].text = Some("You said c1-11.".into()));
        let failure = faults(|accounts| accounts.delivered[1].text = None);
        let elsewhere = faults(|accounts| accounts.delivered[1].conversation = 0);
        for faults in [stored, delivered, failure, elsewhere] {
            let is_wrong = |fault: &Fault| matches!(fault, Fault::WrongAnswer { .. });
            assert!(faults.iter().any(is_wrong), "{faults:?}");
        }
    }

    #[test]
    fn another_order_is_found_in_the_lane_the_log_and_at_the_receiver() {
        let lane = faults(|accounts| accounts.stored[1].place = 9);
        let log = faults(|accounts| accounts.stored[1].answers[0].completes = vec![9]);
        let receiver = faults(|accounts| accounts.delivered.swap(1, 3));
        let later = Message { conversation: 1, number: 2 };
        for (faults, expected) in [(lane, "its lane"), (log, "the log"), (receiver, "what came")] {
            let [Fault::OutOfOrder { message, what }] = faults.as_slice() else {
                panic!("{faults:?}")
            };
            assert_eq!((*what, message.conversation), (expected, later.conversation));
        }
    }

    #[test]
    fn another_session_is_found() {
        let faults = faults(|accounts| accounts.stored[3].answers[0].session = "fresh".into());
        let message = Message { conversation: 1, number: 2 };
        assert_eq!(faults, [Fault::SessionChanged { message }]);
    }
}
