//! The way of a message after it was taken, and how its sender is told of it.

use jiff::{Timestamp, ToSpan as _};

use super::{
    Shared,
    answer::failure,
    media,
    message::{ChangeKind, Message, Status},
    webhook::{self, Purpose},
    world::World,
};

/// The error of a text of one's own to somebody who did not write for a day.
const OUTSIDE_WINDOW: u32 = 63016;
/// The error of a message to somebody who has not joined the sandbox.
const NOT_JOINED: u32 = 63015;

/// Takes a message through its statuses, and tells each to its callback.
pub(super) async fn walk(shared: &Shared, sid: &str) {
    let fetched = media::fetch_all(shared, sid).await;
    let steps = match fetched {
        Ok(()) => shared.lock().steps(sid),
        Err(code) => vec![(Status::Failed, Some(code))],
    };
    for (status, error) in steps {
        let told = shared.change(|world| world.step(sid, status, error));
        if let Some((url, params)) = told {
            webhook::post(shared, Purpose::Status, sid, &url, &params).await;
        }
    }
}

/// An address and the form that is posted to it.
type Told = (String, Vec<(String, String)>);

impl World {
    /// Decides how a message goes on.
    fn steps(&mut self, sid: &str) -> Vec<(Status, Option<u32>)> {
        let Some(message) = self.message(sid).cloned() else { return Vec::new() };
        let chosen = (message.status == Status::Accepted).then_some((Status::Queued, None));
        if let Some(code) = self.doomed.get(&message.to) {
            return chosen.into_iter().chain([(Status::Undelivered, Some(*code))]).collect();
        }
        let joined = self.sandbox.as_ref().filter(|_| message.is_whatsapp());
        if joined.is_some_and(|joined| !joined.contains(&message.to)) {
            return chosen.into_iter().chain([(Status::Failed, Some(NOT_JOINED))]).collect();
        }
        if message.is_whatsapp() && !message.is_template && !self.is_window_open(&message.to) {
            let refused = (Status::Undelivered, Some(OUTSIDE_WINDOW));
            return chosen.into_iter().chain([refused]).collect();
        }
        let last = if message.is_whatsapp() { Status::Read } else { Status::Delivered };
        let last = last.min(self.walk_to);
        let way = [Status::Sending, Status::Sent, Status::Delivered, Status::Read];
        let way = way.into_iter().filter(|status| *status <= last).map(|status| (status, None));
        chosen.into_iter().chain(way).collect()
    }

    /// Says whether a person wrote within the last 24 hours.
    pub(super) fn is_window_open(&self, address: &str) -> bool {
        let day_ago = Timestamp::now() - 24.hours();
        let has_written = self.wrote.get(address).is_some_and(|last| *last > day_ago);
        has_written && !self.closed.contains(address)
    }

    fn step(&mut self, sid: &str, status: Status, error: Option<u32>) -> Option<Told> {
        let now = self.now();
        let message = self.message_mut(sid)?;
        message.status = status;
        message.error = error;
        message.updated = now;
        if status == Status::Sent {
            message.sent = Some(message.updated);
        }
        let message = message.clone();
        self.changed(ChangeKind::Status, sid, &message.to, status.name());
        // That it is being handed on is seen by who looks, and told to nobody.
        let callback = message.status_callback.clone().filter(|_| status != Status::Sending)?;
        Some((callback, self.status_params(&message)))
    }

    /// Returns the form of a status callback.
    fn status_params(&self, message: &Message) -> Vec<(String, String)> {
        let status = message.status.name();
        let mut params = vec![
            ("SmsSid", message.sid.clone()),
            ("SmsStatus", status.to_owned()),
            ("MessageStatus", status.to_owned()),
            ("To", message.to.clone()),
            ("MessageSid", message.sid.clone()),
            ("AccountSid", self.account.clone()),
            ("From", message.from.clone()),
            ("ApiVersion", "2010-04-01".to_owned()),
        ];
        if let Some(service) = &message.messaging_service {
            params.push(("MessagingServiceSid", service.clone()));
        }
        if let Some(number) = message.to.strip_prefix("whatsapp:") {
            params.push(("ChannelInstallSid", self.sender.clone()));
            params.push(("ChannelPrefix", "whatsapp".to_owned()));
            params.push(("ChannelToAddress", number.to_owned()));
            params.push(("StructuredMessage", "false".to_owned()));
            if matches!(message.status, Status::Delivered | Status::Read | Status::Undelivered) {
                params.push(("EventType", status.to_uppercase()));
            }
        }
        if let Some(code) = message.error {
            params.push(("ErrorCode", code.to_string()));
            params.push(("ErrorMessage", failure(code).to_owned()));
        }
        params.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}
