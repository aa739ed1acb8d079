//! Media: what people send, and what messages have links to, which is fetched once, and
//! asked for before that and after it.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use jiff::Timestamp;
use reqwest::header::{CONTENT_DISPOSITION, CONTENT_TYPE, HeaderName};

use super::{Shared, world::sid};

/// As whom Twilio asks for what a link leads to.
const AGENT: &str = "TwilioProxy/1.1";
/// The longest that a link may take.
const PATIENCE: Duration = Duration::from_secs(15);

/// A file of a message.
#[derive(Clone, Debug)]
pub(crate) struct Media {
    pub(crate) sid: String,
    /// The message that it belongs to; of what was uploaded, none.
    pub(crate) parent: String,
    pub(crate) content_type: String,
    pub(crate) name: Option<String>,
    pub(super) content: Content,
    pub(super) created: Timestamp,
}

impl Media {
    pub(super) fn new(parent: &str, content_type: &str, content: Content) -> Self {
        Self {
            sid: sid("ME"),
            parent: parent.to_owned(),
            content_type: content_type.to_owned(),
            name: None,
            content,
            created: Timestamp::now(),
        }
    }

    /// Returns the bytes, if it has any of its own.
    pub(crate) fn bytes(&self) -> &[u8] {
        match &self.content {
            Content::Bytes(bytes) => bytes,
            Content::Endless | Content::Elsewhere(_) => &[],
        }
    }
}

/// What a download gives.
#[derive(Clone, Debug)]
pub(super) enum Content {
    Bytes(Arc<[u8]>),
    /// Bytes without an end.
    Endless,
    /// The reader is sent to another address.
    Elsewhere(String),
}

/// An attempt to fetch what a message has a link to.
#[derive(Clone, Debug)]
pub(crate) struct Fetch {
    pub(crate) url: String,
    pub(crate) message: String,
    /// The status of the answer; 0 where there was none.
    pub(crate) status: u16,
    pub(crate) content_type: String,
    pub(crate) content_disposition: String,
    pub(crate) size: usize,
    pub(crate) at: Instant,
}

/// What a channel takes, and the errors of what it does not.
struct Rules {
    types: &'static [&'static str],
    total: usize,
    image: usize,
    not_fetched: u32,
    not_supported: u32,
}

/// The error of media that are too large, on all channels.
const TOO_LARGE: u32 = 11751;
const MEGABYTE: usize = 1024 * 1024;

const WHATSAPP: Rules = Rules {
    types: &[
        "application/msword",
        "application/pdf",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "audio/3gpp",
        "audio/aac",
        "audio/amr",
        "audio/mpeg",
        "audio/ogg",
        "image/jpeg",
        "image/jpg",
        "image/png",
        "image/webp",
        "text/vcard",
        "text/x-vcard",
        "video/mp4",
    ],
    total: 16 * MEGABYTE,
    image: 5 * MEGABYTE,
    not_fetched: 63019,
    not_supported: 63021,
};

const MMS: Rules = Rules {
    types: &[
        "application/pdf",
        "application/vcard",
        "audio/3gpp",
        "audio/3gpp2",
        "audio/ac3",
        "audio/amr",
        "audio/amr-nb",
        "audio/basic",
        "audio/L24",
        "audio/mp4",
        "audio/mpeg",
        "audio/ogg",
        "audio/vnd.rn-realaudio",
        "audio/vnd.wave",
        "audio/vorbis",
        "audio/webm",
        "image/bmp",
        "image/gif",
        "image/jpeg",
        "image/png",
        "image/tiff",
        "text/calendar",
        "text/csv",
        "text/directory",
        "text/richtext",
        "text/rtf",
        "text/vcard",
        "text/x-vcard",
        "video/3gpp",
        "video/3gpp-tt",
        "video/3gpp2",
        "video/H261",
        "video/H263",
        "video/H264",
        "video/mp4",
        "video/mpeg",
        "video/quicktime",
        "video/webm",
    ],
    total: 5 * MEGABYTE,
    image: 5 * MEGABYTE,
    not_fetched: 11200,
    not_supported: 12300,
};

/// Fetches all that a message has links to, each once, or returns the error that the
/// message fails with.
pub(super) async fn fetch_all(shared: &Shared, message: &str) -> Result<(), u32> {
    let found = shared.lock().message(message).cloned();
    let Some(found) = found else { return Ok(()) };
    let rules = if found.is_whatsapp() { &WHATSAPP } else { &MMS };
    let mut left = rules.total;
    for url in &found.media_urls {
        let asked = tokio::time::timeout(PATIENCE, fetch(shared, message, url, left)).await;
        let media = asked.unwrap_or(Err(None)).map_err(|code| code.unwrap_or(rules.not_fetched))?;
        let kind = media.content_type.as_str();
        if !rules.types.iter().any(|known| known.eq_ignore_ascii_case(kind)) {
            return Err(rules.not_supported);
        }
        let size = media.bytes().len();
        if kind.starts_with("image/") && size > rules.image {
            return Err(TOO_LARGE);
        }
        left -= size;
        shared.change(|world| {
            let sid = media.sid.clone();
            world.media.insert(sid.clone(), media);
            if let Some(message) = world.message_mut(message) {
                message.media.push(sid);
            }
        });
    }
    Ok(())
}

/// Asks what a link leads to.
async fn is_known(shared: &Shared, url: &str) -> bool {
    let asked = shared.client.head(url).header("User-Agent", AGENT).send().await;
    asked.is_ok_and(|response| response.status().is_success())
}

/// Fetches one link. An error without a code is one of the fetch itself.
async fn fetch(
    shared: &Shared,
    message: &str,
    url: &str,
    most: usize,
) -> Result<Media, Option<u32>> {
    let mut fetched = Fetch {
        url: url.to_owned(),
        message: message.to_owned(),
        status: 0,
        content_type: String::new(),
        content_disposition: String::new(),
        size: 0,
        at: Instant::now(),
    };
    let was_known = is_known(shared, url).await;
    let asked = shared.client.get(url).header("User-Agent", AGENT).send().await;
    let Ok(mut response) = asked else {
        shared.change(|world| world.fetches.push(fetched));
        return Err(None);
    };
    let text = |name: HeaderName| {
        let value = response.headers().get(name);
        value.and_then(|value| value.to_str().ok()).unwrap_or("").to_owned()
    };
    fetched.status = response.status().as_u16();
    fetched.content_type = text(CONTENT_TYPE);
    fetched.content_disposition = text(CONTENT_DISPOSITION);
    let is_there = response.status().is_success();
    let mut bytes = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > most {
            break;
        }
    }
    fetched.size = bytes.len();
    let kind = fetched.content_type.split(';').next().unwrap_or("").trim().to_owned();
    let name = fetched.content_disposition.split_once("filename=");
    let name =
        name.map(|(_, name)| name.split(';').next().unwrap_or("").trim_matches('"').to_owned());
    let is_lost = shared.change(|world| {
        world.fetches.push(fetched);
        let is_lost = world.lost_files > 0;
        world.lost_files = world.lost_files.saturating_sub(1);
        is_lost
    });
    if !is_there || bytes.is_empty() || is_lost || !was_known {
        return Err(None);
    }
    if bytes.len() > most {
        return Err(Some(TOO_LARGE));
    }
    if !is_known(shared, url).await {
        return Err(None);
    }
    let mut media = Media::new(message, &kind, Content::Bytes(Arc::from(bytes)));
    media.name = name;
    Ok(media)
}
