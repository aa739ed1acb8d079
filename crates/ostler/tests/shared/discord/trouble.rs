//! What tests let go wrong, and what they set otherwise than usual.

use std::time::Duration;

use serde_json::Value;

use super::{
    Discord, World,
    fault::{Fault, Faults},
    limits::Bucket,
    session::Out,
};

impl Discord {
    /// Sets the interval of heartbeats for connections to come.
    pub(crate) fn heartbeat(&self, interval: Duration) {
        self.shared.change(|world| world.heartbeat = interval);
    }

    /// Sets how long an interaction waits for its first answer.
    pub(crate) fn patience(&self, patience: Duration) {
        self.shared.change(|world| world.patience = patience);
    }

    /// Sets how long a nonce is remembered.
    pub(crate) fn remember_nonces(&self, life: Duration) {
        self.shared.change(|world| world.nonce_life = life);
    }

    /// Sets how often a message of more than an hour can be edited.
    pub(crate) fn old_edits(&self, edits: u32) {
        self.shared.change(|world| world.old_edits = edits);
    }

    /// Sets how many requests a bucket allows in what time.
    pub(crate) fn limit(&self, bucket: Bucket, requests: u32, per: Duration) {
        self.shared.change(|world| world.limits.set(bucket, requests, per));
    }

    /// Takes all rate limits away.
    pub(crate) fn relax(&self) {
        self.shared.change(|world| world.limits.relax());
    }

    /// Plans a fault for the next requests whose `METHOD /path` contains a text, with
    /// the path after the version: `POST /channels/1/messages`.
    pub(crate) fn plan(&self, requests: usize, containing: &str, fault: Fault) {
        self.shared.change(|world| world.faults.plan(requests, containing, fault));
    }

    /// Forgets what was planned to go wrong.
    pub(crate) fn forget_faults(&self) {
        self.shared.change(|world| world.faults = Faults::default());
    }

    /// Refuses the next requests with 429.
    pub(crate) fn limit_next(&self, requests: usize, retry_after: f64, global: bool) {
        self.plan(requests, "", Fault::Limit { retry_after, global });
    }

    /// Refuses the next requests with this status.
    pub(crate) fn fail_next(&self, requests: usize, status: u16) {
        self.plan(requests, "", Fault::Fail(status));
    }

    /// Does the next requests and never answers.
    pub(crate) fn hang_next(&self, requests: usize) {
        self.plan(requests, "", Fault::Hang);
    }

    /// Drops every connection of the gateway without a word.
    pub(crate) fn cut(&self) {
        self.shared.change(|world| {
            for link in world.links.values() {
                link.send(Out::Cut);
            }
        });
    }

    /// Closes every connection of the gateway. What cannot be resumed is forgotten.
    pub(crate) fn close(&self, code: u16) {
        self.shared.change(|world| {
            for link in world.links.values() {
                link.send(Out::Close(code, "Closed by the test."));
            }
            if matches!(code, 1000 | 1001 | 4007 | 4009) {
                world.forget_sessions();
            }
        });
    }

    /// Asks every client to connect anew and resume.
    pub(crate) fn ask_reconnect(&self) {
        self.shared.change(|world| {
            for link in world.links.keys() {
                world.control(*link, 7, &Value::Null);
            }
        });
    }

    /// Asks every client for a heartbeat at once.
    pub(crate) fn ask_heartbeat(&self) {
        self.shared.change(|world| {
            for link in world.links.keys() {
                world.control(*link, 1, &Value::Null);
            }
        });
    }

    /// Tells every client that its session is invalid.
    pub(crate) fn invalidate(&self, resumable: bool) {
        self.shared.change(|world| world.invalidate(resumable));
    }

    /// Lets nothing arrive any more on the connections that are open: no event and no
    /// answer to a heartbeat. Connections to come are as usual.
    pub(crate) fn silence(&self) {
        self.shared.change(|world| {
            for link in world.links.values_mut() {
                link.silent = true;
            }
        });
    }

    /// Forgets what could be resumed.
    pub(crate) fn forget_sessions(&self) {
        self.shared.change(World::forget_sessions);
    }

    /// Lets every client have heard more of its session than it was told. None of them can
    /// be gone on with, though all are there.
    pub(crate) fn rewind_sessions(&self) {
        self.shared.change(World::rewind_sessions);
    }

    /// Says of sessions to come where they are to be gone on with.
    pub(crate) fn resume_at(&self, url: &str) {
        self.shared.change(|world| url.clone_into(&mut world.resume_url));
    }

    /// Takes from the application the right to read what people write.
    pub(crate) fn forbid_content(&self) {
        self.shared.change(|world| world.content_forbidden = true);
    }

    /// Takes the bot's token back.
    pub(crate) fn reject_token(&self) {
        self.shared.change(|world| world.token_rejected = true);
    }

    /// Takes from the bot the right to use a channel and its threads.
    pub(crate) fn refuse_channel(&self, channel: u64) {
        self.shared.change(|world| world.refused.insert(channel));
    }

    /// Takes permissions from everybody in a channel.
    pub(crate) fn deny(&self, channel: u64, permissions: u64) {
        self.shared.change(|world| {
            world.channels.get_mut(&channel).expect("the channel exists").denied = permissions;
        });
    }

    /// Closes a thread until somebody speaks there.
    pub(crate) fn archive(&self, thread: u64) {
        self.shared.change(|world| {
            world.channels.get_mut(&thread).expect("the thread exists").archived = true;
        });
    }

    pub(crate) fn delete_channel(&self, channel: u64) {
        self.shared.change(|world| world.delete_channel(channel));
    }

    /// Lets an interaction's token be one of more than 15 minutes.
    pub(crate) fn expire(&self, interaction: u64) {
        self.shared.change(|world| {
            let one = world.interactions.get_mut(&interaction);
            one.expect("the interaction exists").expired = true;
        });
    }

    /// Tells all sessions of an event that the double does not know.
    pub(crate) fn dispatch(&self, event: &str, data: &Value) {
        self.shared.change(|world| world.dispatch(event, 0, data));
    }
}
