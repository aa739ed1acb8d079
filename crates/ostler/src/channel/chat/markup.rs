//! How words are set off in a chat, where that can be done at all. Pure.

use jiff::Timestamp;

/// What a chat makes of marks in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Markup {
    /// Markdown, with what Discord adds to it.
    Discord,
    /// Asterisks, underscores and fences, and no way to escape them.
    WhatsApp,
    /// Nothing: every mark is seen.
    None,
}

/// What sets words off on WhatsApp.
const MARKS: [char; 4] = ['*', '_', '~', '`'];

impl Markup {
    /// Makes our own words strong.
    pub(crate) fn strong(self, words: &str) -> String {
        match self {
            Self::Discord => format!("**{words}**"),
            Self::WhatsApp => format!("*{words}*"),
            Self::None => words.to_owned(),
        }
    }

    /// Sets a line apart that is beside the point.
    pub(crate) fn aside(self, line: &str) -> String {
        match self {
            Self::Discord => format!("-# {line}"),
            Self::WhatsApp => format!("_{line}_"),
            Self::None => format!("({line})"),
        }
    }

    /// Returns a line of others that is shown as it is, as far as that can be had.
    pub(crate) fn as_it_is(self, line: &str) -> String {
        match self {
            Self::Discord => escaped(line),
            // What cannot be escaped is left out.
            Self::WhatsApp => line.replace(MARKS, ""),
            Self::None => line.to_owned(),
        }
    }

    /// Returns a line of others that stands by itself, so that it does not pass for one of
    /// ours.
    pub(crate) fn set_off(self, line: &str) -> String {
        match self {
            Self::Discord | Self::WhatsApp => self.as_it_is(line),
            Self::None => format!("> {line}"),
        }
    }

    /// Whether a line of others can be shown as it is, with nothing left out.
    pub(crate) fn keeps(self, line: &str) -> bool {
        match self {
            Self::Discord | Self::None => true,
            Self::WhatsApp => !line.contains(MARKS),
        }
    }

    /// Puts a text into a block that nothing in it can close, and in which no line can
    /// be taken for one of ours.
    pub(crate) fn block(self, text: &str) -> String {
        match self {
            // Three of them always end a block there: a longer fence is none.
            Self::Discord | Self::WhatsApp => {
                format!("```\n{}\n```", text.replace("```", "ˋˋˋ"))
            }
            Self::None => {
                text.lines().map(|line| format!("> {line}")).collect::<Vec<_>>().join("\n")
            }
        }
    }

    /// Says until when something can be done, by the seconds since 1970.
    pub(crate) fn until(self, at: i64) -> String {
        match self {
            Self::Discord => format!("Expires <t:{at}:R>"),
            Self::WhatsApp | Self::None => {
                let at = Timestamp::from_second(at).unwrap_or(Timestamp::MAX);
                format!("Expires at {} UTC", at.strftime("%H:%M"))
            }
        }
    }
}

/// Returns a line of Markdown that is shown as it is.
fn escaped(line: &str) -> String {
    let mut escaped = String::with_capacity(line.len());
    for c in line.chars() {
        let is_markdown = "\\`*_~|[]()<>#".contains(c);
        if is_markdown {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_set_off_as_the_chat_knows_it() {
        let all = |by: fn(Markup) -> String| {
            [Markup::Discord, Markup::WhatsApp, Markup::None].map(by).join(" ")
        };
        assert_eq!(all(|markup| markup.strong("x")), "**x** *x* x");
        assert_eq!(all(|markup| markup.aside("x")), "-# x _x_ (x)");
        assert_eq!(all(|markup| markup.as_it_is("a*b")), "a\\*b ab a*b");
        assert_eq!(all(|markup| markup.set_off("1 Deny")), "1 Deny 1 Deny > 1 Deny");
        assert!(Markup::Discord.keeps("a*b") && !Markup::WhatsApp.keeps("a*b"));
        let until = all(|markup| markup.until(3600));
        assert_eq!(until, "Expires <t:3600:R> Expires at 01:00 UTC Expires at 01:00 UTC");
    }

    #[test]
    fn nothing_in_a_block_closes_it() {
        for markup in [Markup::Discord, Markup::WhatsApp] {
            assert_eq!(markup.block("a```b"), "```\naˋˋˋb\n```");
            assert_eq!(markup.block("a`````"), "```\naˋˋˋ``\n```");
        }
        assert_eq!(Markup::None.block("a\n1 Deny"), "> a\n> 1 Deny");
    }
}
