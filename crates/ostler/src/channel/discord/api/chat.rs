//! Messages in Discord: sent, changed and deleted, with their files.

use std::time::Duration;

use serde::Deserialize;
use twilight_http::{
    request::{Form, RequestBuilder},
    routing::Route,
};

use super::{Api, Trouble, id, payload, to, verdict::changed};
use crate::{
    channel::{
        Next, SendError,
        chat::{
            Attachment, Changed, Chat, Choices, Content, Doing, Limits, Post, Posting, Stands,
            markup::Markup, measure::Measure,
        },
        discord::names,
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
    together_bytes: 100_000_000,
    kinds: None,
    measure: Measure::Characters,
    has_captions: true,
    choices: Choices::Buttons,
    markup: Markup::Discord,
    // By its nonce, for some minutes.
    known_again: Some(Duration::from_secs(60)),
};

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
        self.rate.has_room()
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
            let posted: Posted = self.ask(request).await?;
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
            changed(self.call(request).await.map(|_| ()))
        })
    }

    fn delete<'a>(&'a self, place: &'a str, message: &'a str) -> Doing<'a, Changed> {
        Box::pin(async move {
            let route = Route::DeleteMessage { channel_id: id(place)?, message_id: id(message)? };
            changed(self.call(to(&route)).await.map(|_| ()))
        })
    }

    fn find<'a>(&'a self, _: &'a str, _: Posting<'a>, _: Millis) -> Doing<'a, Vec<Stands>> {
        // Discord knows a message again by itself.
        Box::pin(async { Ok(Vec::new()) })
    }
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
    given_up(format!("the file {name:?} is larger than {most} MB, which Discord does not take"))
}

fn given_up(reason: String) -> SendError {
    SendError { reason, next: Next::GiveUp, is_unsure: false }
}
