//! `fastpath evaluate models`: every published figure of the five publications, recomputed and
//! judged.

use super::tell;
use crate::{Answer, view};
use clap::Args;
use fastpath_model::publications::results;

/// Recompute the published figures of the models.
///
/// The exit code is 1 if a figure differs from the published one.
#[derive(Args)]
pub(super) struct ModelsCommand {
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

impl ModelsCommand {
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        let results = results();
        tell(&results, self.json, view::models(&results))
    }
}
