//! Output in bulk, written block by block so that its size costs no memory.

use super::Error;
use super::stage::{Stage, Stream};

/// Enough for few system calls, little enough not to count as memory.
const BLOCK: usize = 64 * 1024;

pub(super) fn fill(bytes: u64, to: Stream, stage: &mut Stage<'_>) -> Result<(), Error> {
    let block = [b'x'; BLOCK];
    in_blocks(bytes, |length| stage.write(to, block.get(..length).unwrap_or(&block)))
}

pub(super) fn garbage(
    bytes: u64,
    seed: u64,
    to: Stream,
    stage: &mut Stage<'_>,
) -> Result<(), Error> {
    // A linear congruential generator: its high bits look random
    // enough, and the same seed gives the same bytes on every machine.
    let mut state = seed;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state.to_be_bytes()[0]
    };
    in_blocks(bytes, |length| {
        let block: Vec<u8> = std::iter::repeat_with(&mut next).take(length).collect();
        stage.write(to, &block)
    })
}

fn in_blocks(bytes: u64, mut write: impl FnMut(usize) -> Result<(), Error>) -> Result<(), Error> {
    let mut left = bytes;
    while left > 0 {
        let length = usize::try_from(left).map_or(BLOCK, |left| left.min(BLOCK));
        write(length)?;
        left = left.saturating_sub(length as u64);
    }
    Ok(())
}

pub(super) fn flood(
    bytes: u64,
    line_bytes: usize,
    template: &str,
    to: Stream,
    stage: &mut Stage<'_>,
) -> Result<(), Error> {
    let mut block = Vec::with_capacity(BLOCK + line_bytes);
    let mut written = 0;
    for number in 1_u64.. {
        if written >= bytes {
            break;
        }
        let line = flood_line(number, line_bytes, template);
        written += line.len() as u64;
        block.extend_from_slice(line.as_bytes());
        if block.len() >= BLOCK || written >= bytes {
            stage.write(to, &block)?;
            block.clear();
        }
    }
    Ok(())
}

fn flood_line(number: u64, line_bytes: usize, template: &str) -> String {
    let mut line = template.replace("{n}", &number.to_string());
    let bare_length = line.replace("{pad}", "").len() + 1;
    line = line.replacen("{pad}", &"x".repeat(line_bytes.saturating_sub(bare_length)), 1);
    line = line.replace("{pad}", "");
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_without_room_for_padding_stays_whole() {
        assert_eq!(flood_line(12, 3, "{n}: {pad}{pad}."), "12: .\n");
        assert_eq!(flood_line(12, 9, "{n}: {pad}{pad}."), "12: xxx.\n");
    }
}
