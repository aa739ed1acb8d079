//! What people do: they write to a number or in a group, and read what is sent.

use std::sync::Arc;

use super::{
    Attached, Inbound, Twilio,
    content::Template,
    conversation,
    webhook::{self, Purpose},
    world::{World, sid},
};

impl Twilio {
    /// Lets a person write, and waits until the webhook answered or did not.
    pub(crate) fn say(&self, from: &str, to: &str, body: &str) -> String {
        self.hand_in(&Inbound::new(from, to, body))
    }

    /// Lets a person write more than text, and waits until the webhook answered or
    /// did not.
    pub(crate) fn hand_in(&self, inbound: &Inbound) -> String {
        let sid = self.say_unheard(inbound);
        self.deliver(&sid);
        sid
    }

    /// Lets a person write, and does not wait for the webhook.
    pub(crate) fn send_off(&self, inbound: &Inbound) -> String {
        let sid = self.say_unheard(inbound);
        let (shared, told) = (Arc::clone(&self.shared), sid.clone());
        self.runtime().spawn(async move { told_of(&shared, &told).await });
        sid
    }

    /// Lets a person write without a word to the webhook: the message is only listed.
    pub(crate) fn say_unheard(&self, inbound: &Inbound) -> String {
        self.shared.change(|world| world.take_in(inbound))
    }

    /// Tells the webhook of a message, of which it may have been told before, and waits
    /// until it answered or did not. Messages are delivered in the order of the calls.
    pub(crate) fn deliver(&self, sid: &str) {
        self.runtime().block_on(told_of(&self.shared, sid));
    }

    /// Tells the webhook of a message that it was told of before.
    pub(crate) fn deliver_again(&self, sid: &str) {
        self.deliver(sid);
    }

    /// Makes a Conversation of people with these addresses.
    pub(crate) fn group(&self, name: &str, addresses: &[&str]) -> String {
        self.shared.change(|world| world.add_conversation(name, addresses))
    }

    /// Lets somebody write in a Conversation, and waits for the webhooks: what he writes
    /// goes to the number that he has there, so that this is told of it, too.
    pub(crate) fn say_in_group(&self, conversation: &str, author: &str, body: &str) -> String {
        self.say_in_group_with(conversation, author, body, &[])
    }

    /// Lets somebody write in a Conversation with media, and waits for the webhook.
    pub(crate) fn say_in_group_with(
        &self,
        conversation: &str,
        author: &str,
        body: &str,
        media: &[Attached],
    ) -> String {
        let sid = self.shared.change(|world| world.say_there(conversation, author, body, media));
        self.deliver(&sid);
        let written = self.shared.change(|w| w.write_there(conversation, author, body, media));
        if let Some(written) = written {
            self.deliver(&written);
        }
        sid
    }

    /// Lets somebody write in a Conversation without a word to the webhooks. Returns what
    /// was said there, and what was written to a number, if it is somebody with one.
    pub(crate) fn say_in_group_unheard(
        &self,
        conversation: &str,
        author: &str,
        body: &str,
        media: &[Attached],
    ) -> (String, Option<String>) {
        self.shared.change(|world| {
            let written = world.write_there(conversation, author, body, media);
            (world.say_there(conversation, author, body, media), written)
        })
    }

    /// Lets somebody join a Conversation.
    pub(crate) fn join(&self, conversation: &str, address: &str) {
        self.shared.change(|world| drop(world.add_participant(conversation, address)));
    }

    /// Lets somebody leave a Conversation.
    pub(crate) fn leave(&self, conversation: &str, address: &str) {
        self.shared.change(|world| world.remove_participant(conversation, address));
    }

    /// Closes a Conversation.
    pub(crate) fn close_group(&self, conversation: &str) {
        self.shared.change(|world| world.close_conversation(conversation));
    }

    /// Makes a template that WhatsApp approved, with places such as `{{1}}`.
    pub(crate) fn template(&self, text: &str) -> String {
        self.add_template(text, true)
    }

    /// Makes a template that cannot begin a conversation.
    pub(crate) fn template_not_approved(&self, text: &str) -> String {
        self.add_template(text, false)
    }

    fn add_template(&self, text: &str, is_approved: bool) -> String {
        let sid = sid("HX");
        let template = Template { text: text.to_owned(), is_approved };
        self.shared.change(|world| world.templates.insert(sid.clone(), template));
        sid
    }
}

impl World {
    fn say_there(&mut self, group: &str, author: &str, body: &str, media: &[Attached]) -> String {
        let media: Vec<String> = media.iter().map(|media| self.keep(media)).collect();
        self.add_said(group, author, body, media)
    }

    /// Keeps what somebody says in a group as what he wrote to the number he has there.
    fn write_there(
        &mut self,
        group: &str,
        author: &str,
        body: &str,
        media: &[Attached],
    ) -> Option<String> {
        let proxy = self.proxy_of(group, author)?;
        let inbound = Inbound::new(author, &proxy, body);
        Some(self.take_in(&media.iter().cloned().fold(inbound, Inbound::with)))
    }

    /// Keeps a file of a Conversation, and returns its id.
    fn keep(&mut self, attached: &Attached) -> String {
        let media = attached.media("");
        let sid = media.sid.clone();
        self.media.insert(sid.clone(), media);
        sid
    }
}

/// Tells a webhook of what a person wrote.
async fn told_of(shared: &super::Shared, sid: &str) {
    if sid.starts_with("IM") {
        return conversation::tell(shared, sid).await;
    }
    let told = {
        let world = shared.lock();
        let message = world.message(sid).unwrap_or_else(|| panic!("no message {sid}"));
        world.webhook.clone().zip(Some(message.params.clone()))
    };
    if let Some((url, params)) = told {
        webhook::post(shared, Purpose::Incoming, sid, &url, &params).await;
    }
}
