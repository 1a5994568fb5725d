//! What `fastpath replay` prints: where all frames went, delays of links with jitter, traffic.

use super::{Render, json_line};
use fastpath::ReplaySummary;
use fastpath::net::FrameAccounting;
use fastpath::replay::{PairDelays, RealisedDelays};
use serde_json::json;
use std::io::{self, Write};

/// Most pairs of hosts that the text shows.
const PAIRS_SHOWN: usize = 20;

impl Render for ReplaySummary {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let ReplaySummary { accounting, jitter, pairs, traffic, transfers, seed, .. } = self;
        let FrameAccounting { delivered, dropped, held, .. } = accounting;
        write!(out, "in         {:>12}", accounting.total_in())?;
        match accounting.generated {
            0 => writeln!(out)?,
            made => writeln!(
                out,
                "  ({} entered, {made} made inside: copies, fragments, answers of routers)",
                accounting.entered
            )?,
        }
        writeln!(out, "delivered  {delivered:>12}")?;
        writeln!(out, "dropped    {:>12}", accounting.total_dropped())?;
        for (reason, count) in dropped {
            writeln!(out, "  {reason:<13}{count:>8}")?;
        }
        writeln!(out, "held       {held:>12}")?;
        writeln!(out, "seed       {seed:>12}")?;
        for RealisedDelays { from, to, delays, .. } in jitter {
            writeln!(out, "delay      {from} → {to}: {delays}")?;
        }
        traffic.iter().try_for_each(|flow| writeln!(out, "traffic    {flow}"))?;
        transfers.iter().try_for_each(|transfer| writeln!(out, "transfer   {transfer}"))?;
        write_pairs(out, pairs)
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let ReplaySummary { accounting, jitter, pairs, traffic, transfers, links, seed, .. } = self;
        let FrameAccounting { delivered, dropped, held, .. } = accounting;
        let mut conservation =
            json!({ "in": accounting.total_in(), "delivered": delivered, "dropped": dropped, "held": held });
        if accounting.generated > 0 {
            conservation["in_entered"] = json!(accounting.entered);
            conservation["in_made_inside"] = json!(accounting.generated);
        }
        let mut all = json!({ "conservation": conservation, "seed": seed });
        all["links"] = json!(links);
        if !jitter.is_empty() {
            all["jitter"] = json!(jitter);
        }
        if !pairs.is_empty() {
            all["pairs"] = json!(pairs);
        }
        if !traffic.is_empty() {
            all["traffic"] = json!(traffic);
        }
        if !transfers.is_empty() {
            all["transfers"] = json!(transfers);
        }
        json_line(out, &all)
    }
}

/// Writes how long frames took between hosts.
fn write_pairs(out: &mut dyn Write, pairs: &[PairDelays]) -> io::Result<()> {
    if pairs.is_empty() {
        return Ok(());
    }
    let named: Vec<(String, &PairDelays)> =
        pairs.iter().map(|pair| (format!("{} → {}", pair.from, pair.to), pair)).collect();
    let shown = &named[..named.len().min(PAIRS_SHOWN)];
    let width = shown.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).max(9);
    writeln!(out, "\n{:width$}  {:>9}  delay, ms: {:>9}  {:>9}  {:>9}", "", "frames", "min", "mean", "max")?;
    for (name, PairDelays { frames, min, mean, max, .. }) in shown {
        let [min, mean, max] = [min, mean, max].map(|delay| delay.as_ms_f64());
        writeln!(out, "{name:width$}  {frames:>9}  {min:>20.3}  {mean:>9.3}  {max:>9.3}")?;
    }
    let more = pairs.len() - shown.len();
    if more > 0 { writeln!(out, "and {more} more pairs of hosts: see --json") } else { Ok(()) }
}
