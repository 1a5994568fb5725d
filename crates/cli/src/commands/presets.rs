//! `fastpath presets`: kinds of access by name, with their values and sources.

use crate::{Answer, view};
use clap::Args;

/// Show the presets of links with their values and sources.
///
/// A preset is used in a spec file (`preset = "lte"`), or by `fastpath shell --preset lte`.
#[derive(Args)]
pub(crate) struct Presets {
    /// Print one JSON array instead of text.
    #[arg(long)]
    json: bool,
}

impl Presets {
    pub(crate) fn run(self) -> anyhow::Result<Answer> {
        view::print(&view::Presets, self.json)?;
        Ok(Answer::Yes)
    }
}
