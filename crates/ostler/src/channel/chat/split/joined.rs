//! What makes one sign of several characters: marks on a base, emoji sequences and
//! flags. Less exact than the Unicode rules, and without their tables.

const JOINER: char = '\u{200d}';

/// The characters so far, as far as they matter for what is joined to them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Before {
    last: Option<char>,
    /// Whether the last one is the first half of a flag.
    is_half_flag: bool,
}

impl Before {
    /// Takes the next character.
    pub(super) fn add(&mut self, c: char) {
        self.is_half_flag = is_flag(c) && !self.is_half_flag;
        self.last = Some(c);
    }

    /// Tells whether a character belongs to the sign before it.
    pub(super) fn is_joined_by(&self, next: char) -> bool {
        is_mark(next) || self.last == Some(JOINER) || (self.is_half_flag && is_flag(next))
    }
}

fn is_flag(c: char) -> bool {
    matches!(c, '\u{1f1e6}'..='\u{1f1ff}')
}

/// Tells whether a character has no place of its own.
fn is_mark(c: char) -> bool {
    match u32::from(c) {
        0..0x300 => false,
        // The scripts of India share one layout.
        code @ 0x900..=0xdff => {
            matches!(code & 0x7f, 0..=3 | 0x3c | 0x3e..=0x4f | 0x51..=0x57 | 0x62..=0x63)
                || matches!(code, 0xdca..=0xddf | 0xdf2..=0xdf3)
        }
        0x300..=0x36f
        | 0x483..=0x489
        | 0x591..=0x5bd
        | 0x5bf
        | 0x5c1..=0x5c2
        | 0x5c4..=0x5c5
        | 0x5c7
        | 0x610..=0x61a
        | 0x64b..=0x65f
        | 0x670
        | 0x6d6..=0x6dc
        | 0x6df..=0x6e4
        | 0x6e7..=0x6e8
        | 0x6ea..=0x6ed
        | 0x711
        | 0x730..=0x74a
        | 0x7a6..=0x7b0
        | 0x7eb..=0x7f3
        | 0x816..=0x819
        | 0x81b..=0x823
        | 0x825..=0x827
        | 0x829..=0x82d
        | 0x859..=0x85b
        | 0x8ca..=0x8ff
        | 0xe31
        | 0xe34..=0xe3a
        | 0xe47..=0xe4e
        | 0xeb1
        | 0xeb4..=0xebc
        | 0xec8..=0xece
        | 0xf18..=0xf19
        | 0xf35
        | 0xf37
        | 0xf39
        | 0xf3e..=0xf3f
        | 0xf71..=0xf84
        | 0xf86..=0xf87
        | 0xf8d..=0xfbc
        | 0xfc6
        | 0x102b..=0x103e
        | 0x1056..=0x1059
        | 0x105e..=0x1060
        | 0x1160..=0x11ff
        | 0x135d..=0x135f
        | 0x1712..=0x1715
        | 0x17b4..=0x17d3
        | 0x17dd
        | 0x180b..=0x180f
        | 0x1920..=0x193b
        | 0x1a55..=0x1a7f
        | 0x1ab0..=0x1ace
        | 0x1b00..=0x1b04
        | 0x1b34..=0x1b44
        | 0x1b6b..=0x1b73
        | 0x1cd0..=0x1ce8
        | 0x1dc0..=0x1dff
        | 0x200c..=0x200d
        | 0x20d0..=0x20f0
        | 0x2cef..=0x2cf1
        | 0x2de0..=0x2dff
        | 0x302a..=0x302f
        | 0x3099..=0x309a
        | 0xa66f..=0xa672
        | 0xa674..=0xa67d
        | 0xa69e..=0xa69f
        | 0xa8e0..=0xa8f1
        | 0xfb1e
        | 0xfe00..=0xfe0f
        | 0xfe20..=0xfe2f
        | 0x1d165..=0x1d169
        | 0x1d16d..=0x1d172
        | 0x1f3fb..=0x1f3ff
        | 0xe0020..=0xe007f
        | 0xe0100..=0xe01ef => true,
        _ => false,
    }
}
