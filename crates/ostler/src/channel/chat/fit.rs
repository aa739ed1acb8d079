//! Whether a file can go into a chat, by how large it is and what it contains. Pure.

use super::{Attachment, Limits};

impl Limits {
    /// Whether files of a media type can go there.
    pub(crate) fn takes(&self, kind: &str) -> bool {
        self.files > 0 && self.kinds.is_none_or(|kinds| kinds.contains(&kind))
    }

    /// Returns why a file cannot go there, in words that follow its name.
    pub(crate) fn refusal(&self, file: &Attachment) -> Option<String> {
        let (kind, length) = (file.kind(), file.content.len());
        let megabytes = |bytes: u64| bytes / 1_000_000;
        if self.files == 0 {
            Some("no files can be sent here".to_owned())
        } else if !self.takes(kind) {
            Some("files of this kind cannot be sent here".to_owned())
        } else if kind.starts_with("image/") && length > self.image_bytes {
            Some(format!("pictures here may have {} MB", megabytes(self.image_bytes)))
        } else if length > self.file_bytes {
            Some(format!("files here may have {} MB", megabytes(self.file_bytes)))
        } else {
            None
        }
    }

    /// Puts files together that can go with one message.
    pub(crate) fn grouped(&self, files: Vec<Attachment>) -> Vec<Vec<Attachment>> {
        let mut groups: Vec<Vec<Attachment>> = Vec::new();
        for file in files.into_iter().filter(|_| self.files > 0) {
            let has_room = |group: &&mut Vec<Attachment>| {
                let together: u64 = group.iter().map(|file| file.content.len()).sum();
                group.len() < self.files
                    && together.saturating_add(file.content.len()) <= self.together_bytes
            };
            match groups.last_mut().filter(has_room) {
                Some(group) => group.push(file),
                None => groups.push(vec![file]),
            }
        }
        groups
    }
}
