//! The answer of a turn, as the messages that stay.

use super::{
    super::{
        Attachment, Content, Limits, Post,
        split::{Piece, split, split_growing},
    },
    words,
};

/// More pages than these are never posted.
const MOST_PAGES: usize = 50;

/// What a text is as a file.
pub(super) const TEXT: &str = "text/plain";

/// What becomes of a long answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Long {
    /// It takes as many messages as it needs.
    Split,
    /// It becomes a file if it takes more messages than these.
    File { over: usize },
}

/// Returns the messages of an answer.
pub(crate) fn reply(
    text: &str,
    mut files: Vec<Attachment>,
    long: Long,
    limits: &Limits,
) -> Vec<Post> {
    let most = match long {
        Long::Split => MOST_PAGES,
        Long::File { over } => over.min(MOST_PAGES),
    };
    let mut pieces = split(text, limits.text, limits.measure);
    if pieces.len() > most && limits.takes(TEXT) {
        let whole = whole(text, limits.file_bytes);
        let note = limits.markup.aside("The whole answer is attached.");
        let note = words::shortened(&note, limits.text / 2);
        let room = limits.text.saturating_sub(limits.measure.of(&note) + 1);
        let start = split_growing(text, room, limits.measure).into_iter().next();
        pieces = start
            .map(|start| Piece { text: format!("{}\n{note}", start.text), ..start })
            .into_iter()
            .collect();
        files.splice(0..0, whole);
    }
    let is_cut = pieces.len() > MOST_PAGES;
    pieces.truncate(MOST_PAGES);
    let mut posts: Vec<Post> =
        pieces.into_iter().map(|piece| Post { text: piece.text, ..Post::default() }).collect();
    if is_cut {
        let note = limits.markup.aside("The rest of the answer is too long for this chat.");
        posts.push(Post::of(words::shortened(&note, limits.text)));
    }
    let groups = limits.grouped(files);
    if posts.is_empty() && groups.is_empty() {
        let text = words::shortened(&limits.markup.aside("no text"), limits.text);
        return vec![Post { text, ..Post::default() }];
    }
    // Where a text and files cannot be one message, the files follow.
    let n_posts = if limits.has_captions {
        posts.len().max(groups.len())
    } else {
        posts.len().saturating_add(groups.len())
    };
    posts.resize(n_posts, Post::default());
    for (post, group) in posts.iter_mut().rev().zip(groups.into_iter().rev()) {
        post.files = group;
    }
    posts
}

/// Returns the whole answer as a file, or as several if one cannot be so large.
fn whole(text: &str, most: u64) -> Vec<Attachment> {
    // No character is longer than that.
    let most = usize::try_from(most).unwrap_or(usize::MAX).max(4);
    let (mut parts, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        let (part, after) = rest.split_at(rest.floor_char_boundary(most));
        parts.push(part.to_owned());
        rest = after;
    }
    let is_one = parts.len() == 1;
    let named = parts.into_iter().zip(1..).map(|(part, n): (String, u32)| Attachment {
        name: if is_one { "answer.md".to_owned() } else { format!("answer-{n}.md") },
        content: Content::Text(part),
    });
    named.collect()
}
