//! What tests let go wrong, and what they set otherwise than usual.

use std::time::Duration;

use jiff::{Timestamp, ToSpan as _};

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

    /// Takes the limit of requests at once away, as there is none at first.
    pub(crate) fn relax(&self) {
        self.shared.change(|world| world.concurrency = None);
    }

    /// Takes the credentials back.
    pub(crate) fn reject_credentials(&self) {
        self.shared.change(|world| world.token_rejected = true);
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
        self.shared.change(|world| world.behind = by);
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
