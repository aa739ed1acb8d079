//! Any bytes in any pieces: the same lines, none lost, never more held than allowed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ostler_core::lines::{Line, Lines};

const MAX_LINE: usize = 64;
const KEPT: usize = 8;

fn read(bytes: &[u8], piece: usize) -> Vec<Line> {
    let mut lines = Lines::new(MAX_LINE, KEPT);
    let mut result = Vec::new();
    for mut piece in bytes.chunks(piece.max(1)) {
        while let Some(line) = lines.take(&mut piece) {
            result.push(line);
        }
        assert!(lines.held() <= MAX_LINE + 1, "holds {}", lines.held());
    }
    result.extend(lines.finish());
    result
}

fuzz_target!(|data: &[u8]| {
    let [piece, bytes @ ..] = data else { return };
    let whole = read(bytes, bytes.len());
    let split = read(bytes, usize::from(*piece));
    assert_eq!(whole.len(), split.len());
    for (one, other) in whole.iter().zip(&split) {
        assert_eq!((&one.bytes, one.cut), (&other.bytes, other.cut));
    }
});
