//! What `fastpath replay` prints: where all frames went, delays of links with jitter, traffic.

use super::{Render, json_line};
use fastpath::ReplaySummary;
use fastpath::net::FrameAccounting;
use fastpath::replay::RealisedDelays;
use serde_json::json;
use std::io::{self, Write};

impl Render for ReplaySummary {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let ReplaySummary { accounting, jitter, traffic, seed, .. } = self;
        let FrameAccounting { delivered, dropped, held, .. } = accounting;
        writeln!(out, "in         {:>12}", accounting.total_in())?;
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
        traffic.iter().try_for_each(|flow| writeln!(out, "traffic    {flow}"))
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let ReplaySummary { accounting, jitter, traffic, seed, .. } = self;
        let FrameAccounting { delivered, dropped, held, .. } = accounting;
        let conservation =
            json!({ "in": accounting.total_in(), "delivered": delivered, "dropped": dropped, "held": held });
        let mut all = json!({ "conservation": conservation, "seed": seed });
        if !jitter.is_empty() {
            all["jitter"] = json!(jitter);
        }
        if !traffic.is_empty() {
            all["traffic"] = json!(traffic);
        }
        json_line(out, &all)
    }
}
