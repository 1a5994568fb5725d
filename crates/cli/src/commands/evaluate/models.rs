//! `fastpath evaluate models`: every published figure of the five documents, recomputed and judged.

use super::{Figure, tell, verdict};
use crate::{Answer, print};
use clap::Args;
use fastpath_model::seeds::{Ours, SeedResult, results};

/// Recompute every published figure the models rest on; exit 1 if one does not come out.
#[derive(Args)]
pub(super) struct ModelsCommand {
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

impl ModelsCommand {
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        let results = results();
        let mut table = print::table(["figure", "document", "ours", "rule", ""]);
        for result in &results {
            let ours = match &result.ours {
                Ours::Number(x) => print::number(*x),
                Ours::Text(text) => text.clone(),
            };
            let rule = format!("{:?}", result.status);
            table.add_row([result.id.clone(), result.doc_value.clone(), ours, rule, verdict(result.pass)]);
        }
        tell(&results, self.json, table, &[])
    }
}

impl Figure for SeedResult {
    fn pass(&self) -> bool {
        self.pass
    }
}
