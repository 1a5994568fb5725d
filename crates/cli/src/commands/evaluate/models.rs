//! `fastpath evaluate models`: every published figure of the five documents, recomputed and judged.

use crate::{Answer, print};
use clap::Args;
use fastpath_model::seeds::{Ours, SeedResult, results};
use serde_json::json;
use std::io::{self, Write};

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
        let passed = results.iter().filter(|r| r.pass).count();
        let mut out = io::stdout().lock();
        if self.json {
            writeln!(out, "{}", json!({ "results": results, "passed": passed, "total": results.len() }))?;
        } else {
            show(&mut out, &results)?;
            writeln!(out, "{passed} of {} figures come out", results.len())?;
        }
        Ok(if passed == results.len() { Answer::Yes } else { Answer::No })
    }
}

fn show(out: &mut impl Write, results: &[SeedResult]) -> io::Result<()> {
    let mut table = print::table(["figure", "document", "ours", "rule", ""]);
    for result in results {
        let ours = match &result.ours {
            Ours::Number(x) => print::number(*x),
            Ours::Text(text) => text.clone(),
        };
        let rule = format!("{:?}", result.status);
        let verdict = if result.pass { "ok" } else { "DIFFERS" };
        table.add_row([result.id.as_str(), &result.doc_value, &ours, &rule, verdict]);
    }
    writeln!(out, "{table}")
}
