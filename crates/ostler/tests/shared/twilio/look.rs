//! What tests ask of a double.

use super::{
    Twilio, World,
    media::{Fetch, Media},
    message::{Change, Message},
    webhook::{Post, Purpose},
    world::Request,
};

impl Twilio {
    /// Returns what was sent to an address as it stands, the oldest first.
    pub(crate) fn messages_to(&self, address: &str) -> Vec<Message> {
        self.look(|world| world.messages_to(address).into_iter().cloned().collect())
    }

    /// Returns a message as it stands, sent or received.
    pub(crate) fn message(&self, sid: &str) -> Option<Message> {
        self.look(|world| world.message(sid).cloned())
    }

    /// Returns what was sent into a Conversation: the author and the text.
    pub(crate) fn said_in(&self, conversation: &str) -> Vec<(String, String)> {
        self.look(|world| world.said_in(conversation))
    }

    /// Returns what was done over the API, in its order.
    pub(crate) fn changes(&self) -> Vec<Change> {
        self.look(|world| world.changes().to_vec())
    }

    /// Returns how the webhook was told of what a person wrote, the last time.
    pub(crate) fn told(&self, sid: &str) -> Option<Post> {
        self.look(|world| {
            let mut posts = world.posts().iter().rev();
            posts.find(|post| post.sid == sid && post.purpose != Purpose::Status).cloned()
        })
    }

    /// Returns every webhook and status callback that was posted, in order.
    pub(crate) fn posts(&self) -> Vec<Post> {
        self.look(|world| world.posts().to_vec())
    }

    /// Returns every attempt to fetch media that a message has links to.
    pub(crate) fn media_fetches(&self) -> Vec<Fetch> {
        self.look(|world| world.media_fetches().to_vec())
    }

    /// Returns the media of a message.
    pub(crate) fn media_of(&self, sid: &str) -> Vec<Media> {
        self.look(|world| {
            let message = world.message(sid).into_iter();
            let media = message.flat_map(|message| &message.media);
            media.filter_map(|sid| world.media.get(sid).cloned()).collect()
        })
    }

    /// Returns every request to the API.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.look(|world| world.requests().to_vec())
    }

    /// Returns how many requests were answered with 429.
    pub(crate) fn limited(&self) -> usize {
        self.look(World::limited)
    }

    /// Returns what a webhook is told of a message that a person wrote.
    pub(crate) fn params(&self, sid: &str) -> Vec<(String, String)> {
        self.look(|world| world.message(sid).map(|it| it.params.clone()).unwrap_or_default())
    }

    /// Signs a request with Twilio's own library, where there is one.
    pub(crate) fn sign(&self, url: &str, params: &[(String, String)]) -> String {
        self.shared.signer.sign(url, params, &self.auth_token())
    }
}
