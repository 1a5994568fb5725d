//! An SVG image as PNG. Text needs fonts, which the caller loads: this crate reads no files.

use crate::ImageError;
use resvg::tiny_skia::{Color, Pixmap, Transform};
use resvg::usvg::{Options, Tree};

pub use resvg::usvg::fontdb::Database as Fonts;

/// Pixels per unit of the SVG.
const SCALE: f32 = 1.5;

/// Maximum height, pixels.
const HEIGHT_MAX: u32 = 30_000;

pub(super) fn png(svg: &str, fonts: Fonts) -> Result<Vec<u8>, ImageError> {
    let mut options = Options { font_family: "DejaVu Sans".to_owned(), ..Options::default() };
    *options.fontdb_mut() = fonts;
    let Some(family) = options.fontdb.faces().next().and_then(|face| face.families.first()) else {
        return Err(ImageError::NoFont);
    };
    // Charts use sans-serif, which few systems without a desktop define.
    let family = family.0.clone();
    let has_dejavu = options.fontdb.faces().any(|f| f.families.iter().any(|(name, _)| name == "DejaVu Sans"));
    options.fontdb_mut().set_sans_serif_family(if has_dejavu { "DejaVu Sans".to_owned() } else { family });
    let tree = Tree::from_str(svg, &options).map_err(|error| ImageError::Draw(error.to_string()))?;
    let size = tree.size();
    let (width, height) = ((size.width() * SCALE) as u32, (size.height() * SCALE) as u32);
    if height > HEIGHT_MAX {
        return Err(ImageError::Size(height));
    }
    let mut image = Pixmap::new(width.max(1), height.max(1)).ok_or(ImageError::Size(height))?;
    image.fill(Color::WHITE);
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut image.as_mut());
    image.encode_png().map_err(|error| ImageError::Draw(error.to_string()))
}
