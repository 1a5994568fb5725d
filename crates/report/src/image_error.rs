//! Why there is no PNG image.

/// Why there is no image.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// The feature `png` is not in this build.
    #[error("this build draws no PNG; write *.svg or *.html, or build fastpath with --features png")]
    NotBuilt,
    /// There is no font for the text.
    #[error(
        "no font is installed, and a PNG needs one (Debian: fonts-dejavu-core); write *.svg or *.html instead"
    )]
    NoFont,
    /// The image is higher than allowed.
    #[error("too many charts for one PNG ({0} pixels high); write *.html instead")]
    Size(u32),
    /// The renderer failed.
    #[error("drawing the charts: {0}")]
    Draw(String),
}
