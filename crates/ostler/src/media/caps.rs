//! How large files may be, by what they are. Pure.

use super::{MEGABYTE, kind::Sort};
use crate::config;

/// The largest files, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Caps {
    /// Of any sort.
    most: u64,
    image: u64,
    audio: u64,
    video: u64,
    document: u64,
}

impl Caps {
    /// Takes what is configured.
    pub(crate) fn new(media: &config::Media) -> Self {
        let bytes = |megabytes: u64| megabytes.saturating_mul(MEGABYTE);
        Self {
            most: bytes(media.max_mb),
            image: bytes(media.max_image_mb),
            audio: bytes(media.max_audio_mb),
            video: bytes(media.max_video_mb),
            document: bytes(media.max_document_mb.unwrap_or(media.max_mb)),
        }
    }

    /// Takes one limit for files of every sort.
    #[cfg(test)]
    pub(crate) fn all(most: u64) -> Self {
        Self { most, image: most, audio: most, video: most, document: most }
    }

    /// Returns these, with none above a limit.
    pub(crate) fn up_to(self, most: u64) -> Self {
        Self { most: self.most.min(most), ..self }
    }

    /// Returns how large a file may be of which nothing is known yet: as large as
    /// any sort may be.
    pub(crate) fn most(self) -> u64 {
        let sorts = [self.image, self.audio, self.video, self.document];
        self.most.min(sorts.into_iter().max().unwrap_or_default())
    }

    /// Returns how large a file of a sort may be.
    pub(crate) fn of(self, sort: Sort) -> u64 {
        let own = match sort {
            Sort::Image => self.image,
            Sort::Audio => self.audio,
            Sort::Video => self.video,
            Sort::Document => self.document,
        };
        own.min(self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sort_has_a_limit_and_none_is_above_that_of_all() {
        let caps = |media| Caps::new(&media);
        let config = config::Media::default();
        let default = caps(config.clone());
        assert_eq!(default.of(Sort::Image), 16 * MEGABYTE);
        assert_eq!(default.of(Sort::Document), 25 * MEGABYTE);
        assert_eq!(default.most(), 25 * MEGABYTE);
        let raised = caps(config::Media { max_mb: 100, ..config.clone() });
        assert_eq!(raised.of(Sort::Document), 100 * MEGABYTE);
        assert_eq!(raised.of(Sort::Video), 16 * MEGABYTE);
        let lowered = caps(config::Media { max_mb: 1, ..config.clone() });
        for sort in [Sort::Image, Sort::Audio, Sort::Video, Sort::Document] {
            assert_eq!(lowered.of(sort), MEGABYTE);
            assert!(default.up_to(5).of(sort) == 5 && default.up_to(u64::MAX) == default);
        }
        let small = config::Media { max_document_mb: Some(2), ..config };
        assert_eq!(caps(small).most(), 16 * MEGABYTE);
    }
}
