//! Replies that could not be delivered and were given up.

use serde::Serialize;
use serde_json::Value;

use crate::{
    channel,
    id::{ConversationId, OutboxId, TurnId},
    store::{
        Store, StoreError,
        outbox::{self, Failed},
    },
    ui::printable,
};

/// A page of replies. Part of the contract.
#[derive(Serialize)]
pub(super) struct Page {
    replies: Vec<Row>,
    /// What to give as `--after` for more; null when there is no more.
    next: Option<OutboxId>,
}

/// A reply that was given up.
#[derive(Serialize)]
struct Row {
    id: OutboxId,
    conversation: Option<ConversationId>,
    turn: Option<TurnId>,
    channel: String,
    address: String,
    /// How often it was tried.
    attempts: i64,
    reason: String,
    /// What would have been sent.
    body: Value,
}

/// What became of the wish to try one again. Part of the contract.
#[derive(Serialize)]
pub(super) struct Retried {
    reply: OutboxId,
    outcome: &'static str,
    #[serde(skip)]
    pub(super) is_done: bool,
}

impl From<Failed> for Row {
    fn from(Failed { id, message, attempt, reason }: Failed) -> Self {
        let body = serde_json::from_str(&message.body);
        Self {
            id,
            conversation: message.conversation,
            turn: message.turn,
            channel: message.channel,
            address: message.address,
            attempts: attempt,
            reason,
            body: body.unwrap_or(Value::String(message.body)),
        }
    }
}

/// Lists replies that were given up, oldest first.
pub(super) async fn list(
    store: &Store,
    after: Option<OutboxId>,
    limit: u32,
) -> Result<Page, StoreError> {
    let failed = store.read((after, limit), |conn, (after, limit)| {
        Box::pin(outbox::list_failed(conn, *after, *limit))
    });
    let replies: Vec<_> = failed.await?.into_iter().map(Row::from).collect();
    let is_full = u32::try_from(replies.len()).is_ok_and(|n_replies| n_replies == limit);
    let next = replies.last().filter(|_| is_full).map(|reply| reply.id);
    Ok(Page { replies, next })
}

/// Lets one be tried again.
pub(super) async fn retry(store: &Store, reply: OutboxId) -> Result<Retried, StoreError> {
    let retried = store.write_repeatable(reply, |conn, id| Box::pin(outbox::retry(conn, *id)));
    let is_done = retried.await?;
    let outcome = if is_done { "enqueued" } else { "not_given_up" };
    Ok(Retried { reply, outcome, is_done })
}

impl Page {
    /// Returns it for people, who may show it to others: an address can be all
    /// that one needs in order to write there.
    pub(super) fn text(&self) -> String {
        let line = |row: &Row| {
            let place = channel::place(&row.channel, &row.address);
            let Row { id, attempts, reason, .. } = row;
            printable(&format!("{id}  {attempts} attempts  {place}  {reason}")).replace('\n', " ")
        };
        let mut lines: Vec<_> = self.replies.iter().map(line).collect();
        if lines.is_empty() {
            lines.push("no reply was given up".to_owned());
        }
        if let Some(next) = self.next {
            lines.push(format!("more with --after {next}"));
        }
        lines.join("\n")
    }
}

impl Retried {
    /// Returns it for people.
    pub(super) fn text(&self) -> String {
        format!("{}: {}", self.reply, self.outcome.replace('_', " "))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        clock::Millis,
        store::{
            outbox::{Among, NewMessage, Next, Put},
            testing::on_sqlite,
        },
    };

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_reply_that_was_given_up_is_listed_and_tried_again() {
        on_sqlite(async |store| {
            let id = store
                .must((), |conn, ()| {
                    Box::pin(async move {
                        let message = NewMessage {
                            dedupe: "a".to_owned(),
                            conversation: None,
                            turn: None,
                            channel: "webhook".to_owned(),
                            address: "https://example.com/very-secret".to_owned(),
                            body: r#"{"text":"hi"}"#.to_owned(),
                        };
                        let put = outbox::put(conn, &message, Millis(1)).await?;
                        let Put::New(id) = put else { panic!() };
                        let lease = Duration::from_secs(1);
                        outbox::claim(conn, "me", Among::All, &[], Millis(1), lease).await?;
                        outbox::failed(conn, id, 1, "gone\u{1b}\n!", Next::GiveUp, Millis(2))
                            .await?;
                        Ok(id)
                    })
                })
                .await;
            let page = list(&store, None, 1).await.unwrap();
            let json = serde_json::to_value(&page).unwrap();
            assert_eq!((&json["replies"][0]["body"]["text"], page.next), (&"hi".into(), Some(id)));
            let text = page.text();
            assert_eq!(text.lines().count(), 2, "{text}");
            assert!(!text.contains('\u{1b}'), "{text}");
            assert!(text.contains("https://example.com") && !text.contains("secret"), "{text}");
            assert!(retry(&store, id).await.unwrap().is_done);
            assert!(!retry(&store, id).await.unwrap().is_done);
            assert_eq!(list(&store, None, 1).await.unwrap().text(), "no reply was given up");
        })
        .await;
    }
}
