//! The server against what the real one said, and against its known traps.
