//! What stands for PNG images in a build without them.

use crate::ImageError;

/// The fonts for PNG images, which this build does not draw.
#[derive(Debug, Default)]
pub struct Fonts(());

impl Fonts {
    /// Returns no fonts.
    pub fn new() -> Fonts {
        Fonts(())
    }
}

pub(super) fn png(_svg: &str, _fonts: Fonts) -> Result<Vec<u8>, ImageError> {
    Err(ImageError::NotBuilt)
}
