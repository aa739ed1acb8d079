//! Messages in Discord: sent, changed and deleted, with their files.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use twilight_http::{
    request::{Form, RequestBuilder},
    routing::Route,
};
use twilight_model::channel::Message;

use super::{Api, Trouble, id, payload, read, refusal, to, verdict::changed};
use crate::{
    channel::{
        SendError,
        chat::{
            Attachment, Changed, Chat, Choices, Content, Doing, Limits, Post, Posting, Stands,
            markup::Markup, measure::Measure,
        },
        discord::{names, snowflake},
    },
    clock::Millis,
};

/// What Discord takes.
pub(crate) const LIMITS: Limits = Limits {
    text: 2000,
    // Five changes in five seconds are allowed.
    edits: Some(Duration::from_millis(1200)),
    typing: Some(Duration::from_secs(8)),
    buttons: 25,
    label: 80,
    files: 10,
    file_bytes: 10_000_000,
    image_bytes: 10_000_000,
    // More than 25 MB in one call is refused, whatever each file has; and all of them
    // are sent anew whenever a call fails.
    together_bytes: 25_000_000,
    kinds: None,
    measure: Measure::Characters,
    has_captions: true,
    choices: Choices::Buttons,
    markup: Markup::Discord,
    // By its nonce, for some minutes.
    known_again: Some(Duration::from_secs(60)),
};

/// By how much the clock of this machine may be ahead of Discord's unnoticed.
const SKEW: SignedDuration = SignedDuration::from_secs(10);

/// A message, as far as it matters what Discord says of it.
#[derive(Deserialize)]
struct Posted {
    id: String,
    content: Option<String>,
}

/// A file that is sent along.
struct File {
    name: String,
    bytes: Vec<u8>,
}

impl Chat for Api {
    fn limits(&self) -> &Limits {
        &LIMITS
    }

    fn has_room(&self) -> bool {
        !self.lull.is_on() && self.rate.has_room()
    }

    fn typing<'a>(&'a self, place: &'a str, _answers: Option<&'a str>) -> Doing<'a, ()> {
        Box::pin(async move {
            let request = to(&Route::CreateTypingTrigger { channel_id: id(place)? });
            self.call(request).await?;
            Ok(())
        })
    }

    fn send<'a>(&'a self, place: &'a str, posting: Posting<'a>) -> Doing<'a, Stands> {
        Box::pin(async move {
            let request = to(&Route::CreateMessage { channel_id: id(place)? });
            let (names, files) = load(&posting.post.files)?;
            let request = with_files(request, &payload::posted(&posting, &names), &files)?;
            let posted: Posted = read(&self.call_with(request, bytes_of(&files)).await?)?;
            let is_as_sent =
                posted.content.is_none_or(|content| content.trim() == posting.post.text.trim());
            Ok(Stands { message: posted.id, is_as_sent })
        })
    }

    fn edit<'a>(&'a self, place: &'a str, message: &'a str, post: &'a Post) -> Doing<'a, Changed> {
        Box::pin(async move {
            let route = Route::UpdateMessage { channel_id: id(place)?, message_id: id(message)? };
            let (names, files) = load(&post.files)?;
            let request = with_files(to(&route), &payload::edited(post, &names), &files)?;
            match self.call_with(request, bytes_of(&files)).await {
                Err(trouble) if trouble.is_code(refusal::OLD) => {
                    tracing::info!("an old message of Discord's is replaced by a new one");
                    self.delete(place, message).await?;
                    Ok(Changed::Gone)
                }
                called => changed(called.map(drop)),
            }
        })
    }

    fn delete<'a>(&'a self, place: &'a str, message: &'a str) -> Doing<'a, Changed> {
        Box::pin(async move {
            let route = Route::DeleteMessage { channel_id: id(place)?, message_id: id(message)? };
            changed(self.call(to(&route)).await.map(|_| ()))
        })
    }

    fn find<'a>(
        &'a self,
        place: &'a str,
        posting: Posting<'a>,
        since: Millis,
    ) -> Doing<'a, Vec<Stands>> {
        Box::pin(async move {
            let since = Timestamp::from_millisecond(since.0).unwrap_or(Timestamp::MIN);
            let ahead = self.clock_skew().unwrap_or_default().max(SignedDuration::ZERO);
            let since = since.saturating_sub(SKEW + ahead).unwrap_or(Timestamp::MIN);
            let bot = self.me().await?;
            let (messages, _) = self.messages_after(place, snowflake::of_time(since)).await?;
            let own = messages.iter().filter(|message| message.author.id.to_string() == bot.id);
            Ok(own.filter_map(|message| stands(message, &posting)).collect())
        })
    }
}

/// Says how a message of the bot's stands there, if it is this one: it has the same
/// text, or is the only one that says that it answers the same message.
fn stands(message: &Message, posting: &Posting<'_>) -> Option<Stands> {
    let is_as_sent = message.content.trim() == posting.post.text.trim();
    let answered = message.reference.as_ref().and_then(|reference| reference.message_id);
    let is_answer = answered.is_some_and(|id| Some(id.to_string().as_str()) == posting.answers);
    (is_as_sent || is_answer).then(|| Stands { message: message.id.to_string(), is_as_sent })
}

fn bytes_of(files: &[File]) -> u64 {
    let bytes = files.iter().map(|file| u64::try_from(file.bytes.len()).unwrap_or(u64::MAX));
    bytes.fold(0, u64::saturating_add)
}

/// Completes a request with a message and its files.
fn with_files(
    request: RequestBuilder,
    message: &payload::Message<'_>,
    files: &[File],
) -> Result<RequestBuilder, Trouble> {
    if files.is_empty() {
        return Ok(request.json(message));
    }
    let json = serde_json::to_vec(message).map_err(|_| Trouble::Unmade("it cannot be written"))?;
    let form = Form::new().json_part(b"payload_json", &json);
    let form = files.iter().enumerate().fold(form, |form, (n, file)| {
        form.file_part(format!("files[{n}]").as_bytes(), file.name.as_bytes(), &file.bytes)
    });
    Ok(request.form(form))
}

/// Returns the files of a message, and their names.
fn load(attachments: &[Attachment]) -> Result<(Vec<String>, Vec<File>), SendError> {
    let mut files = Vec::with_capacity(attachments.len());
    for Attachment { name, content } in attachments {
        let name = names::of_file(name);
        let bytes = match content {
            Content::Text(text) => text.clone().into_bytes(),
            Content::Bytes(bytes) => bytes.to_vec(),
        };
        if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > LIMITS.file_bytes {
            return Err(too_large(&name));
        }
        files.push(File { name, bytes });
    }
    Ok((files.iter().map(|file| file.name.clone()).collect(), files))
}

fn too_large(name: &str) -> SendError {
    let most = LIMITS.file_bytes / 1_000_000;
    SendError::given_up(format!(
        "the file {name:?} is larger than {most} MB, which Discord does not take"
    ))
}
