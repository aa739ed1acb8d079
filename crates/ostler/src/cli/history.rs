//! `ostler history`: what was said in the gateway's conversations. Works while it
//! runs, and when it does not.

mod time;
mod view;

use clap::Args;

use self::{
    time::Moment,
    view::{Page, Row},
};
use super::{
    Exit,
    agents::FormArg,
    sessions::{Which, find, unknown},
    store::{failed, print, shown},
};
use crate::{
    archive::words,
    clock::Millis,
    config::{Loaded, Problems, store_location},
    id::{ConversationId, MessageId},
    store::{
        Store, StoreError, Use,
        messages::{self, Message, Query, Start},
    },
    ui::Ui,
};

/// How many messages are read at once.
const READ: u32 = 200;

#[derive(Args, Debug)]
pub(crate) struct HistoryArgs {
    /// The conversation, as cnv_… or channel:address [default: that of the message of --after
    /// or --before, or of the newest one]
    conversation: Option<Which>,
    /// The messages of all conversations
    #[arg(long, conflicts_with = "conversation")]
    all: bool,
    /// From this time on: 2026-11-16, 2026-11-16T09:30:00Z, or how long ago, such as 2h
    #[arg(long, value_name = "TIME")]
    since: Option<Moment>,
    /// Up to this time
    #[arg(long, value_name = "TIME")]
    until: Option<Moment>,
    /// Only messages that have all of these words
    #[arg(long, value_name = "WORDS", allow_hyphen_values = true)]
    search: Option<String>,
    /// Begin after this message; without it, or --since, the newest are shown
    #[arg(long, value_name = "ID")]
    after: Option<MessageId>,
    /// End before this message
    #[arg(long, value_name = "ID", conflicts_with = "after")]
    before: Option<MessageId>,
    /// How many at most
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    /// What to print
    #[arg(long, value_enum, default_value = "text")]
    output: FormArg,
}

/// Prints what was said.
pub(crate) async fn run(args: HistoryArgs, loaded: Loaded, ui: &mut Ui) -> Result<Exit, Problems> {
    let location = store_location(&loaded).await?;
    let store = match Store::open(&location, Use::Look).await {
        Ok(store) => store,
        Err(error) => return Ok(failed(&error, ui)),
    };
    let output = args.output;
    let exit = match page(&store, args, Millis::now()).await {
        Ok(page) => {
            let text = page.text();
            shown(print(&page, &text, output, ui), Exit::Answered, ui)
        }
        Err(Nothing::Store(error)) => failed(&error, ui),
        Err(Nothing::Conversation(which)) => unknown(&which, ui),
        Err(Nothing::Message(id)) => {
            ui.notice(&format!("ostler: there is no message {id}"));
            Exit::Failed
        }
        Err(Nothing::Elsewhere(id, conversation)) => {
            ui.notice(&format!(
                "ostler: the message {id} is in another conversation, {conversation}"
            ));
            Exit::Failed
        }
    };
    store.close().await;
    Ok(exit)
}

/// Why there is nothing to show.
#[derive(Debug)]
enum Nothing {
    Store(StoreError),
    Conversation(Which),
    Message(MessageId),
    /// The message belongs to another conversation than the one that was named.
    Elsewhere(MessageId, ConversationId),
}

impl From<StoreError> for Nothing {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Whose messages are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    All,
    One(ConversationId),
    /// There is no conversation.
    Nobody,
}

async fn page(store: &Store, args: HistoryArgs, now: Millis) -> Result<Page, Nothing> {
    let beside = match args.after.or(args.before) {
        Some(id) => Some(message(store, id).await?),
        None => None,
    };
    let conversation = match whose(store, &args, beside.as_ref()).await? {
        Of::All => None,
        Of::One(id) => Some(id),
        Of::Nobody => return Ok(Page::default()),
    };
    // Its number says nothing in another conversation.
    if let Some(message) = &beside
        && conversation.is_some_and(|of| of != message.conversation)
    {
        return Err(Nothing::Elsewhere(message.id, message.conversation));
    }
    let from = match beside {
        Some(message) if args.after.is_some() => Start::After(message.number, message.id),
        Some(message) => Start::Before(message.number, message.id),
        None if args.since.is_some() => Start::Oldest,
        None => Start::Newest,
    };
    let query = Query {
        conversation,
        since: args.since.map(|moment| moment.at(now)),
        until: args.until.map(|moment| moment.at(now)),
        from,
        limit: READ,
    };
    let words = Words::new(args.search.as_deref().unwrap_or_default());
    let limit = usize::try_from(args.limit).unwrap_or(usize::MAX);
    Ok(read(store, query, &words, limit).await?)
}

async fn whose(store: &Store, args: &HistoryArgs, beside: Option<&Message>) -> Result<Of, Nothing> {
    if args.all {
        return Ok(Of::All);
    }
    let Some(which) = &args.conversation else {
        if let Some(message) = beside {
            return Ok(Of::One(message.conversation));
        }
        let newest = store.read((), |conn, ()| Box::pin(messages::newest_conversation(conn)));
        return Ok(newest.await?.map_or(Of::Nobody, Of::One));
    };
    let found = store.read(which.clone(), |conn, which| Box::pin(find(conn, which)));
    match found.await? {
        Some(conversation) => Ok(Of::One(conversation.id)),
        None => Err(Nothing::Conversation(which.clone())),
    }
}

async fn message(store: &Store, id: MessageId) -> Result<Message, Nothing> {
    let found = store.read(id, |conn, id| Box::pin(messages::find(conn, *id)));
    found.await?.ok_or(Nothing::Message(id))
}

/// Reads as many messages as are wanted, and one more to know whether there are more.
async fn read(
    store: &Store,
    mut query: Query,
    words: &Words,
    limit: usize,
) -> Result<Page, StoreError> {
    let mut found: Vec<Message> = Vec::new();
    while found.len() <= limit {
        let page = store.read(query.clone(), |conn, query| Box::pin(messages::read(conn, query)));
        let page = page.await?;
        let Some(last) = page.last() else { break };
        query.from = query.from.beyond(last);
        let is_last = u32::try_from(page.len()).is_ok_and(|n_read| n_read < query.limit);
        found.extend(page.into_iter().filter(|message| words.are_in(message)));
        if is_last {
            break;
        }
    }
    let has_more = found.len() > limit;
    found.truncate(limit);
    let is_backward = matches!(query.from, Start::Newest | Start::Before(..));
    if is_backward {
        found.reverse();
    }
    let next = found.last().filter(|_| has_more && !is_backward).map(|message| message.id);
    let previous = found.first().filter(|_| has_more && is_backward).map(|message| message.id);
    let messages = found.into_iter().map(Row::from).collect();
    Ok(Page { messages, previous, next })
}

/// Words that are looked for, in small letters.
#[derive(Debug)]
struct Words(Vec<String>);

impl Words {
    fn new(text: &str) -> Self {
        Self(text.split_whitespace().map(str::to_lowercase).collect())
    }

    /// Whether a message has all of them. Compared here and not by the databases,
    /// which differ in what they take for small letters.
    fn are_in(&self, message: &Message) -> bool {
        if self.0.is_empty() {
            return true;
        }
        let said = words(message).0.to_lowercase();
        self.0.iter().all(|word| said.contains(word.as_str()))
    }
}

#[cfg(test)]
mod tests;
