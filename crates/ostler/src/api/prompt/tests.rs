//! What a prompt may say.
