//! What tests let go wrong, and what they set otherwise than usual.

use std::{collections::BTreeSet, time::Duration};

use jiff::{SignedDuration, Timestamp, ToSpan as _};

use super::{Fault, Status, Twilio, fault::Faults};

impl Twilio {
    /// Plans a fault for the next requests whose `METHOD /path` contains a text.
    pub(crate) fn plan(&self, requests: usize, containing: &str, fault: Fault) {
        self.shared.change(|world| world.faults.plan(requests, containing, fault));
    }

    /// Plans no more faults.
    pub(crate) fn forget_faults(&self) {
        self.shared.change(|world| world.faults = Faults::default());
    }

    /// Plans a fault for the next messages that are to be sent.
    pub(crate) fn plan_sends(&self, requests: usize, fault: Fault) {
        let containing = format!("POST /2010-04-01/Accounts/{}/Messages.json", self.account_sid());
        self.plan(requests, &containing, fault);
    }

    /// Refuses the next requests with 429.
    pub(crate) fn limit_next(&self, requests: usize, retry_after: Option<u32>) {
        self.plan(requests, "", Fault::Limit(retry_after));
    }

    /// Refuses the next requests with this status.
    pub(crate) fn fail_next(&self, requests: usize, status: u16) {
        self.plan(requests, "", Fault::Fail(status));
    }

    /// Does the next requests and never answers.
    pub(crate) fn hang_next(&self, requests: usize) {
        self.plan(requests, "", Fault::Hang);
    }

    /// Answers what is held back, and whatever was to be held back after it.
    pub(crate) fn answer_held(&self) {
        self.shared.held.send_replace(false);
    }

    /// Refuses more than so many requests at once with 429.
    pub(crate) fn limit(&self, at_once: usize) {
        self.shared.change(|world| world.concurrency = Some(at_once));
    }

    /// Refuses messages to an address with 429, or takes them again.
    pub(crate) fn limit_to(&self, address: &str, is_limited: bool) {
        self.shared.change(|world| match is_limited {
            true => world.limited_to.insert(address.to_owned()),
            false => world.limited_to.remove(address),
        });
    }

    /// Takes the limit of requests at once away, as there is none at first.
    pub(crate) fn relax(&self) {
        self.shared.change(|world| world.concurrency = None);
    }

    /// Takes the credentials back.
    pub(crate) fn reject_credentials(&self) {
        self.shared.change(|world| world.token_rejected = true);
    }

    /// Takes calls with the API key, and none with the token, which signs as before.
    pub(crate) fn refuse_the_token(&self) {
        self.shared.change(|world| world.is_key_only = true);
    }

    /// Lets the sender of WhatsApp be another number than that of the sandbox.
    pub(crate) fn sender_has(&self, number: &str) {
        self.shared.change(|world| world.whatsapp = number.to_owned());
    }

    /// Lets the sender of WhatsApp have another status than `ONLINE`.
    pub(crate) fn sender_is(&self, status: &'static str) {
        self.shared.change(|world| world.sender_status = status);
    }

    /// Lets the account have another status than `active`.
    pub(crate) fn account_is(&self, status: &'static str) {
        self.shared.change(|world| world.account_status = status);
    }

    /// Lets a person on WhatsApp have written just now.
    pub(crate) fn open_window(&self, address: &str) {
        self.wrote(address, Timestamp::now());
    }

    /// Lets WhatsApp take nothing but templates for a person, though he writes.
    pub(crate) fn keep_window_closed(&self, address: &str, is_closed: bool) {
        self.shared.change(|world| match is_closed {
            true => world.closed.insert(address.to_owned()),
            false => world.closed.remove(address),
        });
    }

    /// Lets a person on WhatsApp have written last more than a day ago.
    pub(crate) fn close_window(&self, address: &str) {
        self.wrote(address, Timestamp::now() - 25.hours());
    }

    fn wrote(&self, address: &str, at: Timestamp) {
        assert!(address.starts_with("whatsapp:"), "{address} is not of WhatsApp");
        self.shared.change(|world| world.wrote.insert(address.to_owned(), at));
    }

    /// Lets Twilio's clock be this much behind this machine's.
    pub(crate) fn clock_is_behind(&self, by: Duration) {
        self.shared.change(|world| world.behind = SignedDuration::try_from(by).unwrap());
    }

    /// Lets Twilio's clock be this much ahead of this machine's.
    pub(crate) fn clock_is_ahead(&self, by: Duration) {
        self.shared.change(|world| world.behind = -SignedDuration::try_from(by).unwrap());
    }

    /// Lets a message be this much older.
    pub(crate) fn backdate(&self, sid: &str, by: Duration) {
        self.shared.change(|world| {
            let message = world.message_mut(sid).unwrap();
            message.created -= by;
            message.sent = message.sent.map(|at| at - by);
        });
    }

    /// Lets somebody be sent nothing any more.
    pub(crate) fn unsubscribe(&self, address: &str) {
        self.shared.change(|world| world.unsubscribed.insert(address.to_owned()));
    }

    /// Forbids numbers that begin so, such as those of a country.
    pub(crate) fn forbid(&self, start: &str) {
        self.shared.change(|world| world.forbidden.insert(start.to_owned()));
    }

    /// Lets it be a trial account, which writes to these numbers alone.
    pub(crate) fn is_trial(&self, verified: &[&str]) {
        let verified = verified.iter().map(|number| (*number).to_owned()).collect();
        self.shared.change(|world| world.trial = Some(verified));
    }

    /// Lets the sender of WhatsApp be the sandbox, which nobody has joined.
    pub(crate) fn is_sandbox(&self) {
        self.shared.change(|world| world.sandbox = Some(BTreeSet::new()));
    }

    /// Lets the next files that messages have links to be fetched, and get lost then.
    pub(crate) fn lose_files(&self, count: usize) {
        self.shared.change(|world| world.lost_files = count);
    }

    /// Lets messages come no further than this, if nothing fails.
    pub(crate) fn walk_to(&self, status: Status) {
        self.shared.change(|world| world.walk_to = status);
    }

    /// Lets messages to an address be taken and end as undelivered, with this error.
    pub(crate) fn doom(&self, address: &str, code: u32) {
        self.shared.change(|world| world.doomed.insert(address.to_owned(), code));
    }

    /// Delivers to an address again.
    pub(crate) fn spare(&self, address: &str) {
        self.shared.change(|world| world.doomed.remove(address));
    }
}
