//! The Messages resource and its media: made, read, and listed by pages.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    answer::{Answer, Refusal, Reply, failure},
    api::Begun,
    media::{Content, Media},
    message::{ChangeKind, Message},
    routes::field,
    time,
    urlencoded::encoded,
    world::World,
};

impl World {
    pub(super) fn create_message(
        &mut self,
        form: &[(String, String)],
        begun: &mut Vec<Begun>,
    ) -> Answer {
        let message = self.check_message(form)?;
        let json = self.message_json(&message);
        self.changed(ChangeKind::Sent, &message.sid, &message.to, &message.body);
        begun.push(Begun::Walk(message.sid.clone()));
        self.messages.push(message);
        Reply::created(json)
    }

    pub(super) fn get_message(&self, file: &str) -> Answer {
        let message = file.strip_suffix(".json").and_then(|sid| self.message(sid));
        let path = format!("{}/Messages/{file}", self.account_path());
        let message = message.ok_or_else(|| Refusal::not_found(&path))?;
        Reply::ok(self.message_json(message))
    }

    /// Lists messages, the newest first, in pages that begin after a message.
    pub(super) fn list_messages(&self, query: &[(String, String)]) -> Answer {
        let filter = Filter::read(query)?;
        let size = field(query, "PageSize").unwrap_or("50");
        let size = size.parse().ok().filter(|size| (1..=1000).contains(size));
        let size: usize = size.ok_or_else(|| Refusal::invalid("PageSize"))?;
        let page: usize = field(query, "Page").and_then(|page| page.parse().ok()).unwrap_or(0);
        let found: Vec<&Message> =
            self.messages.iter().rev().filter(|message| filter.takes(message)).collect();
        let start = match field(query, "PageToken") {
            None => page * size,
            Some(token) => {
                let after = token.strip_prefix("PA").unwrap_or("");
                let after = found.iter().position(|message| message.sid == after);
                after.ok_or_else(|| Refusal::invalid("PageToken"))? + 1
            }
        };
        let shown: Vec<&&Message> = found.iter().skip(start).take(size).collect();
        let link = |page: usize, token: Option<&str>| {
            let kept = query.iter().filter(|(name, _)| !name.starts_with("Page")).cloned();
            let mut query: Vec<(String, String)> = kept.collect();
            query.push(("PageSize".to_owned(), size.to_string()));
            query.push(("Page".to_owned(), page.to_string()));
            query.extend(token.map(|sid| ("PageToken".to_owned(), format!("PA{sid}"))));
            format!("{}/Messages.json?{}", self.account_path(), encoded(&query))
        };
        let is_more = start + shown.len() < found.len();
        let last = shown.last().filter(|_| is_more).map(|message| message.sid.as_str());
        Reply::ok(json!({
            "messages": shown.iter().map(|one| self.message_json(one)).collect::<Vec<_>>(),
            "page": page,
            "page_size": size,
            "start": start,
            "end": (start + shown.len()).saturating_sub(1),
            "uri": link(page, None),
            "first_page_uri": link(0, None),
            "next_page_uri": last.map(|sid| link(page + 1, Some(sid))),
            "previous_page_uri": page.checked_sub(1).map(|page| link(page, None)),
        }))
    }

    pub(super) fn list_media(&self, sid: &str) -> Answer {
        let path = format!("{}/Messages/{sid}/Media.json", self.account_path());
        let message = self.message(sid).ok_or_else(|| Refusal::not_found(&path))?;
        let media = message.media.iter().filter_map(|sid| self.media.get(sid));
        let media: Vec<Value> = media.map(|media| self.media_json(media)).collect();
        let uri = format!("{path}?PageSize=50&Page=0");
        Reply::ok(json!({
            "media_list": media,
            "page": 0,
            "page_size": 50,
            "start": 0,
            "end": media.len().saturating_sub(1),
            "uri": uri,
            "first_page_uri": uri,
            "next_page_uri": null,
            "previous_page_uri": null,
        }))
    }

    /// Describes media, or sends the reader on to them.
    pub(super) fn get_media(&self, message: &str, file: &str) -> Answer {
        let path = format!("{}/Messages/{message}/Media/{file}", self.account_path());
        let sid = file.trim_end_matches(".json");
        let media = self.media.get(sid).filter(|media| media.parent == message);
        let media = media.ok_or_else(|| Refusal::not_found(&path))?;
        if sid == file { self.redirect_to_media(sid) } else { Reply::ok(self.media_json(media)) }
    }

    pub(super) fn redirect_to_media(&self, sid: &str) -> Answer {
        let media = self.media.get(sid).ok_or_else(|| Refusal::not_found(sid))?;
        Ok(Reply::Redirect(match &media.content {
            Content::Elsewhere(url) => url.clone(),
            Content::Bytes(_) | Content::Endless => format!("{}/cdn/{sid}", self.base),
        }))
    }

    pub(super) fn account_path(&self) -> String {
        format!("/2010-04-01/Accounts/{}", self.account)
    }

    pub(super) fn media_json(&self, media: &Media) -> Value {
        let Media { sid, parent, content_type, .. } = media;
        let created = time::rfc2822(media.created);
        json!({
            "sid": sid,
            "account_sid": self.account,
            "parent_sid": parent,
            "content_type": content_type,
            "date_created": created,
            "date_updated": created,
            "uri": format!("{}/Messages/{parent}/Media/{sid}.json", self.account_path()),
        })
    }

    pub(super) fn message_json(&self, message: &Message) -> Value {
        let path = format!("{}/Messages/{}", self.account_path(), message.sid);
        json!({
            "account_sid": self.account,
            "api_version": "2010-04-01",
            "body": message.body,
            "date_created": time::rfc2822(message.created),
            "date_sent": message.sent.map(time::rfc2822),
            "date_updated": time::rfc2822(message.updated),
            "direction": message.direction,
            "error_code": message.error,
            "error_message": message.error.map(failure),
            "from": message.from,
            "messaging_service_sid": message.messaging_service,
            "num_media": message.n_media().to_string(),
            "num_segments": message.n_segments().to_string(),
            "price": null,
            "price_unit": "USD",
            "sid": message.sid,
            "status": message.status.name(),
            "subresource_uris": { "media": format!("{path}/Media.json") },
            "to": message.to,
            "uri": format!("{path}.json"),
        })
    }
}

/// Which messages are listed.
struct Filter<'a> {
    to: Option<&'a str>,
    from: Option<&'a str>,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
}

impl<'a> Filter<'a> {
    fn read(query: &'a [(String, String)]) -> Result<Self, Refusal> {
        let moment = |name: &str| match field(query, name) {
            None => Ok(None),
            Some(text) => time::read(text).map(Some).ok_or_else(|| Refusal::invalid(name)),
        };
        let on = moment("DateSent")?;
        // `DateSent>=2026-01-01` is the name `DateSent>` with a value.
        let since = moment("DateSent>")?.or(on).map(|(start, _)| start);
        let until = moment("DateSent<")?.or(on).map(|(_, end)| end);
        Ok(Self { to: field(query, "To"), from: field(query, "From"), since, until })
    }

    fn takes(&self, message: &Message) -> bool {
        // What is not sent yet has no date, and so is not chosen by one.
        let is_dated = self.since.is_some() || self.until.is_some();
        let at = match message.sent {
            None if is_dated => return false,
            sent => sent.unwrap_or(message.created),
        };
        // Moments are listed by the second, and so they are compared.
        let second = |moment: Timestamp| moment.as_second();
        self.to.is_none_or(|to| to == message.to)
            && self.from.is_none_or(|from| from == message.from)
            && self.since.is_none_or(|since| second(at) >= second(since))
            && self.until.is_none_or(|until| second(at) <= second(until))
    }
}
