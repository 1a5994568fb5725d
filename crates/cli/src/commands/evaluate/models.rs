//! `fastpath evaluate models`: every published figure of the five publications, recomputed and
//! judged.

use super::{Figure, tell, verdict};
use crate::Answer;
use clap::Args;
use fastpath_model::publications::{Ours, PublishedFigure, results};
use fastpath_report::text as print;

/// Recompute the published figures of the models; exit 1 if one differs.
#[derive(Args)]
pub(super) struct ModelsCommand {
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

impl ModelsCommand {
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        let results = results();
        let titles = ["publication", "place", "figure", "published", "ours", "rule", "", "key"];
        let mut table = print::table(titles);
        for result in &results {
            let ours = match &result.ours {
                Ours::Number(x) => print::number(*x),
                Ours::Text(text) => text.clone(),
            };
            table.add_row([
                result.publication.clone(),
                result.place.clone(),
                result.quantity.clone(),
                result.doc_value.clone(),
                ours,
                format!("{:?}", result.status),
                verdict(result.pass),
                result.id.clone(),
            ]);
        }
        tell(&results, self.json, table, &[])
    }
}

impl Figure for PublishedFigure {
    fn pass(&self) -> bool {
        self.pass
    }
}
