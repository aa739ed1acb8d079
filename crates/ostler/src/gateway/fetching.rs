//! Has what came with messages fetched when their turn begins, and recordings among
//! it heard.

use std::path::Path;

use ostler_core::failure::Failure;
use tokio::{sync::watch, time::Instant};

use super::{
    attempt::{Wish, unwanted},
    begin::Beginning,
    inbound::{Details, Media, Payload},
};
use crate::{
    id::JobId,
    media::{
        Rules,
        incoming::{Fetcher, LIMIT, SPARE, Wanted},
        transcribe::{self, Recording},
    },
};

/// Whether something came with a message that has to be fetched first.
pub(crate) fn is_due(rules: &Rules, payload: &Payload) -> bool {
    let is_due = |media: &Media| media.path.is_none() && media.url.is_some();
    rules.dir.is_some()
        && !rules.vouched(&payload.channel).is_empty()
        && payload.details.media.iter().any(is_due)
}

/// Fetches what came with the messages of a turn, and notes where it lies, or why
/// it does not. The error is why the turn does not begin; none if that is nobody's
/// business any more.
pub(crate) async fn fetch(
    (fetcher, rules): (&Fetcher, &Rules),
    job: JobId,
    beginning: &mut Beginning,
    wish: watch::Receiver<Wish>,
) -> Result<(), Option<Failure>> {
    let Beginning { payload, joined, .. } = beginning;
    let until = Instant::now() + LIMIT;
    let all = async {
        fill(fetcher, rules, job, payload, until).await;
        for (job, payload) in &mut *joined {
            fill(fetcher, rules, *job, payload, until).await;
        }
        let until = Instant::now() + transcribe::LIMIT;
        hear(rules, job, payload, until).await;
        for (job, payload) in joined {
            hear(rules, *job, payload, until).await;
        }
    };
    tokio::select! {
        () = all => Ok(()),
        why = unwanted(wish) => Err(why),
    }
}

async fn fill(fetcher: &Fetcher, rules: &Rules, job: JobId, payload: &mut Payload, until: Instant) {
    let Some(root) = rules.dir.as_deref().filter(|_| is_due(rules, payload)) else { return };
    let media = &payload.details.media;
    let (vouched, caps) = (rules.vouched(&payload.channel), rules.caps);
    let wanted = Wanted { job, media, root, vouched, caps, spare: SPARE, until };
    let fetched = fetcher.fetch(wanted).await;
    for (media, fetched) in payload.details.media.iter_mut().zip(fetched) {
        fetched.note(media);
    }
}

/// Has recordings heard that were fetched for a message, unless its channel said
/// already what is spoken there.
async fn hear(rules: &Rules, job: JobId, payload: &mut Payload, until: Instant) {
    let Details { media, transcript, .. } = &mut payload.details;
    let (Some(transcriber), Some(root), None) =
        (&rules.transcriber, &rules.dir, transcript.as_ref())
    else {
        return;
    };
    let folder = root.join(job.to_string());
    let mut texts = Vec::new();
    for (number, media) in (1..).zip(media) {
        let Media { path: Some(path), media_type: Some(kind), .. } = media else { continue };
        if !kind.starts_with("audio/") || !Path::new(path).starts_with(&folder) {
            continue;
        }
        match transcriber.hear(root, Recording { job, number, path, kind }, until).await {
            Ok(text) => texts.push(text),
            Err(why) => media.unheard = Some(why.to_string()),
        }
    }
    let mut all = texts.join("\n\n");
    all.truncate(all.floor_char_boundary(transcribe::LONGEST));
    *transcript = Some(all).filter(|text| !text.is_empty());
}

#[cfg(test)]
mod tests {
    use ostler_core::environment::Variables;

    use super::*;
    use crate::{channel::DISCORD, config::Config};

    #[test]
    fn a_message_from_a_chat_waits_for_what_has_to_be_fetched() {
        let rules = Rules::new(&Config::default(), &Variables::new(), Path::new("/data"));
        let is_due = |channel: &str, media: serde_json::Value| {
            let payload = serde_json::json!({
                "v": 1, "text": "x", "sender": "ann", "channel": channel, "address": "1",
                "details": { "media": [media] },
            });
            is_due(&rules, &serde_json::from_value(payload).unwrap())
        };
        let url = serde_json::json!({ "url": "https://cdn.discordapp.com/a.png" });
        assert!(is_due(DISCORD, url.clone()));
        assert!(!is_due("webhook", url) && !is_due(DISCORD, serde_json::json!({ "type": "x" })));
        assert!(!is_due(DISCORD, serde_json::json!({ "path": "/m/1", "url": "https://m/1" })));
    }
}
