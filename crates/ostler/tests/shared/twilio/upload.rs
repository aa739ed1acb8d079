//! The media of Conversations, which are uploaded to a service of their own.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    answer::{Answer, Refusal, Reply},
    api::Asked,
    media::{Content, Media},
    message::ChangeKind,
    routes::field,
    time,
    world::World,
};

impl World {
    /// Takes a file for Conversations: the body as it is.
    pub(super) fn upload(&mut self, asked: &Asked) -> Answer {
        if asked.body.is_empty() {
            return Err(Refusal::missing("Media"));
        }
        let content = Content::Bytes(Arc::from(asked.body.as_slice()));
        let mut media = Media::new("", &asked.content_type, content);
        media.name = field(&asked.query, "Filename").map(ToOwned::to_owned);
        self.changed(ChangeKind::Uploaded, &media.sid, "", &asked.content_type);
        let json = self.upload_json(&media);
        self.media.insert(media.sid.clone(), media);
        Reply::created(json)
    }

    pub(super) fn get_upload(&self, sid: &str) -> Answer {
        let media = self.media.get(sid).filter(|media| media.parent.is_empty());
        let media = media.ok_or_else(|| Refusal::not_found(sid))?;
        Reply::ok(self.upload_json(media))
    }

    fn upload_json(&self, media: &Media) -> Value {
        let created = time::iso(media.created);
        let path = format!("/v1/Services/{}/Media/{}", self.chat_service, media.sid);
        let temporary = match &media.content {
            Content::Elsewhere(url) => url.clone(),
            Content::Bytes(_) | Content::Endless => format!("{}/cdn/{}", self.base, media.sid),
        };
        json!({
            "sid": media.sid,
            "account_sid": self.account,
            "service_sid": self.chat_service,
            "channel_sid": null,
            "message_sid": null,
            "date_created": created,
            "date_updated": created,
            "size": media.bytes().len(),
            "content_type": media.content_type,
            "filename": media.name,
            "author": self.account,
            "category": "media",
            "message_index": null,
            "url": path,
            "links": { "content": format!("{path}/Content"), "content_direct_temporary": temporary },
        })
    }
}
