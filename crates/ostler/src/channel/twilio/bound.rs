//! Whose messages belong to a group. What somebody in a group writes goes to the
//! number that he has there, so that Twilio tells of it twice: as said in the group,
//! and as written to the number. It is the group's, and answered there alone.
//!
//! Who is in which group is kept in memory, for calls are to be answered soon.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::{self, Instant};

use super::{
    api::{Api, Participant},
    code::Trouble,
    heard::Heard,
    kind::Kind,
};

/// How long a call of Twilio's waits until it is known who is in a group.
const PATIENCE: Duration = Duration::from_secs(5);
/// What was asked before that is asked again. Whoever asks for messages does so more
/// often; of several gateways only one does.
const STALE: Duration = Duration::from_secs(300);
/// What was asked before that is asked again before something is taken for a group's: who
/// has left it is not answered there.
const SURE: Duration = Duration::from_secs(5);
/// How many groups are remembered that are not listed.
const GROUPS: usize = 100;

/// Somebody's number, and the one of this gateway's to which he writes in a group.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Binding {
    kind: Kind,
    person: String,
    own: String,
}

impl Binding {
    fn of(participant: &Participant) -> Option<Self> {
        let binding = participant.messaging_binding.as_ref()?;
        let (kind, person) = Kind::of(binding.address.as_deref()?);
        let (_, own) = Kind::of(binding.proxy_address.as_deref()?);
        Some(Self { kind, person: person.to_owned(), own: own.to_owned() })
    }
}

/// What is known of a group.
struct Known {
    bindings: Vec<Binding>,
    asked_at: Instant,
}

/// Who is in groups. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Bound {
    api: Arc<Api>,
    groups: Arc<Mutex<HashMap<String, Known>>>,
    /// Held by whoever asks for what is not known or may be new, so that others can wait for
    /// what he hears.
    asking: Arc<tokio::sync::Mutex<()>>,
}

impl fmt::Debug for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bound")
    }
}

impl Bound {
    pub(crate) fn new(api: Arc<Api>) -> Self {
        Self { api, groups: Arc::default(), asking: Arc::default() }
    }

    /// Whether what somebody wrote to a number is a group's, as Twilio says now, or said a
    /// moment ago.
    pub(crate) async fn has(&self, heard: &Heard) -> bool {
        let is_old = |(_, asked_at): &(String, Instant)| asked_at.elapsed() >= SURE;
        if self.groups_of(heard).iter().any(is_old) {
            let asked = async {
                let _asking = self.asking.lock().await;
                for (group, _) in self.groups_of(heard).into_iter().filter(is_old) {
                    if let Err(why) = self.ask(&group).await {
                        tracing::debug!(group, "it is not known who is in a group: {why}");
                    }
                }
            };
            time::timeout(PATIENCE, asked).await.ok();
        }
        !self.groups_of(heard).is_empty()
    }

    /// Returns the groups whose somebody's message is, as far as is known, and when each
    /// was asked for.
    fn groups_of(&self, heard: &Heard) -> Vec<(String, Instant)> {
        if heard.kind == Kind::Group {
            return Vec::new();
        }
        let is_it = |binding: &Binding| {
            binding.kind == heard.kind
                && binding.person == heard.from
                && heard.to.as_deref().is_some_and(|to| to == binding.own)
        };
        let known = self.lock();
        let of = known.iter().filter(|(_, known)| known.bindings.iter().any(is_it));
        of.map(|(group, known)| (group.clone(), known.asked_at)).collect()
    }

    /// Asks who is in these groups now, for by nothing else somebody is known who has just
    /// joined one; and now and then in others that were heard of. The error
    /// is that of a group of which nothing is known at all. For those of which something is
    /// known nobody has to wait.
    pub(crate) async fn refresh(&self, listed: &[String]) -> Result<(), Trouble> {
        let begun = Instant::now();
        {
            let _asking = self.asking.lock().await;
            for group in self.older_than(STALE, listed) {
                self.ask(&group).await?;
            }
        }
        let heard_of: Vec<String> = self.lock().keys().cloned().collect();
        let others = self.older_than(STALE, &heard_of);
        let others = others.iter().filter(|group| !listed.contains(group));
        for group in self.older_than(begun.elapsed(), listed).iter().chain(others) {
            self.ask(group).await?;
        }
        Ok(())
    }

    /// Waits until it is known who is in these groups; not for long. Returns whether it
    /// is.
    pub(crate) async fn is_ready(&self, listed: &[String]) -> bool {
        let is_asking = self.asking.try_lock().is_err();
        if !is_asking && self.older_than(STALE, listed).is_empty() {
            return true;
        }
        let asked = async {
            let _asking = self.asking.lock().await;
            for group in self.older_than(STALE, listed) {
                if let Err(why) = self.ask(&group).await {
                    tracing::warn!(group, "it is not known who is in a group: {why}");
                    return;
                }
            }
        };
        time::timeout(PATIENCE, asked).await.ok();
        let known = self.lock();
        listed.iter().all(|group| known.contains_key(group))
    }

    /// Hears that something happened in a group, by somebody or not: it may be new, or
    /// have new people.
    pub(crate) async fn hear_of(&self, group: &str, by: Option<&Heard>) {
        {
            let known = self.lock();
            let is_full = known.len() >= GROUPS && !known.contains_key(group);
            let is_in = |known: &Known, by: &Heard| {
                let is_he = |it: &Binding| it.kind == by.by && it.person == by.from;
                by.is_own || known.bindings.iter().any(is_he)
            };
            if is_full || by.is_some_and(|by| known.get(group).is_some_and(|it| is_in(it, by))) {
                return;
            }
        }
        let asked = async {
            let _asking = self.asking.lock().await;
            if let Err(why) = self.ask(group).await {
                tracing::debug!(group, "it is not known who is in a group: {why}");
            }
        };
        time::timeout(PATIENCE, asked).await.ok();
    }

    /// Asks who is in a group. One that nobody may look at has nobody in it.
    async fn ask(&self, group: &str) -> Result<(), Trouble> {
        let asked_at = Instant::now();
        let people = match self.people(group).await {
            Ok(people) => people,
            Err(trouble) if trouble.is_lasting() => Vec::new(),
            // What is known is better than nothing.
            Err(_) if self.lock().contains_key(group) => return Ok(()),
            Err(trouble) => return Err(trouble),
        };
        let bindings = people.iter().filter_map(Binding::of).collect();
        let mut known = self.lock();
        // Who asked later knows better, though he heard it before.
        if known.get(group).is_none_or(|known| known.asked_at <= asked_at) {
            known.insert(group.to_owned(), Known { bindings, asked_at });
        }
        Ok(())
    }

    /// Returns who is heard in a group: nobody, if it was closed.
    async fn people(&self, group: &str) -> Result<Vec<Participant>, Trouble> {
        if self.api.is_closed(group).await? {
            return Ok(Vec::new());
        }
        self.api.participants(group).await
    }

    /// Returns the groups of which nothing is known, or for longer than that not.
    fn older_than(&self, age: Duration, listed: &[String]) -> Vec<String> {
        let known = self.lock();
        let is_known =
            |group: &&String| known.get(*group).is_some_and(|known| known.asked_at.elapsed() < age);
        listed.iter().filter(|group| !is_known(group)).cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Known>> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use axum::{Json, Router};
    use futures_util::FutureExt as _;
    use serde_json::json;
    use tokio::{net::TcpListener, sync::Semaphore, task::JoinSet};

    use super::*;
    use crate::{channel::twilio::api::Login, config::Secret};

    /// A stand-in for Twilio that knows groups without people, and answers when it may.
    struct Server {
        bound: Bound,
        /// How many calls may be answered, and how many were made.
        answers: Arc<Semaphore>,
        calls: Arc<Semaphore>,
        tasks: JoinSet<()>,
    }

    impl Server {
        async fn start() -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("http://{}", listener.local_addr().unwrap());
            let (answers, calls) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
            let held = (Arc::clone(&answers), Arc::clone(&calls));
            let router = Router::new().fallback(move || {
                let (answers, calls) = held.clone();
                async move {
                    calls.add_permits(1);
                    answers.acquire().await.unwrap().forget();
                    Json(json!({ "state": "active", "participants": [] }))
                }
            });
            let mut tasks = JoinSet::new();
            tasks.spawn(async move { axum::serve(listener, router).await.unwrap() });
            let password = Secret::new("very-secret".to_owned());
            let login = Login { account: "AC1".to_owned(), user: "AC1".to_owned(), password };
            let bound = Bound::new(Arc::new(Api::new(login, Some(&url))));
            Self { bound, answers, calls, tasks }
        }

        /// Lets a look at groups begin, and waits until it has made a call.
        async fn look(&mut self, listed: &[String]) {
            let (bound, listed) = (self.bound.clone(), listed.to_vec());
            self.calls.forget_permits(usize::MAX);
            self.tasks.spawn(async move { bound.refresh(&listed).await.unwrap() });
            self.calls.acquire().await.unwrap().forget();
        }

        /// Lets time pass since everything was asked.
        fn age(&self, by: Duration) {
            self.bound.lock().values_mut().for_each(|known| known.asked_at -= by);
        }
    }

    #[tokio::test]
    async fn nobody_waits_for_a_look_at_groups_that_are_known() {
        let mut server = Server::start().await;
        let groups = ["CH1".to_owned(), "CH2".to_owned()];
        server.answers.add_permits(4);
        server.bound.refresh(&groups).await.unwrap();
        server.age(SURE);
        server.look(&groups).await;
        assert_eq!(server.bound.is_ready(&groups).now_or_never(), Some(true));
        // For one that is not known he does.
        let more = ["CH3".to_owned()];
        assert_eq!(server.bound.is_ready(&more).now_or_never(), None);
        server.look(&more).await;
        assert_eq!(server.bound.is_ready(&groups).now_or_never(), None);
        server.answers.add_permits(100);
        assert!(server.bound.is_ready(&more).await);
    }

    #[tokio::test]
    async fn each_look_asks_once_for_each_group_whenever_the_last_one_was() {
        let server = Server::start().await;
        let groups = ["CH1".to_owned()];
        server.answers.add_permits(100);
        for (age, n_calls) in [(Duration::ZERO, 2), (Duration::ZERO, 4), (STALE, 6)] {
            server.age(age);
            server.bound.refresh(&groups).await.unwrap();
            assert_eq!(server.calls.available_permits(), n_calls);
        }
    }
}
