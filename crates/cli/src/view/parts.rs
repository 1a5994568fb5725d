//! How a network is cut for workers, as `fastpath check --workers` prints it.

use fastpath::net::{Cut, JoinedLinks, Partition};
use fastpath::replay::{WorkerCount, expected_speedup};
use fastpath_spec::mistake::printable;
use fastpath_spec::{NodeId, Topology};
use serde_json::{Value, json};
use std::io::{self, Write};

/// Most names, cuts and reasons that the text shows.
const SHOWN: usize = 12;

/// The parts of a topology.
pub(super) struct Parts<'t> {
    topology: &'t Topology,
    partition: Partition,
    /// The number of parts in real time, where short links are not cut.
    in_real_time: usize,
}

impl<'t> Parts<'t> {
    /// Cuts a topology.
    pub(super) fn new(topology: &'t Topology, workers: WorkerCount) -> Parts<'t> {
        let count = workers.count();
        let in_real_time = Partition::with_lookahead(topology, count, Partition::REAL_TIME_LOOKAHEAD).count();
        Parts { topology, partition: Partition::new(topology, count), in_real_time }
    }

    fn name(&self, node: NodeId) -> &str {
        &self.topology.node(node).name
    }

    /// Why nodes stay together.
    fn reason(&self, joined: &JoinedLinks) -> String {
        match joined {
            JoinedLinks::Link(link, why) => format!("link {}: {why}", self.topology.link(*link).name),
            JoinedLinks::Group(group) => {
                let name = &self.topology.groups[*group].name;
                format!("group {name}: its links start with the first packet on any of them")
            }
            JoinedLinks::Routes => {
                "routes: they follow links that change with the first packet on a group".to_owned()
            }
        }
    }

    fn cut(&self, cut: &Cut) -> String {
        let link = self.topology.link(cut.link);
        let [a, b] = [0, 1].map(|end| (self.name(link.ends[end].0), cut.parts[end]));
        let [forward, backward] = cut.lookahead;
        let back = if forward == backward { String::new() } else { format!(", {backward} back") };
        format!(
            "cut {}: {} (part {}) to {} (part {}), known {forward} before{back}",
            link.name, a.0, a.1, b.0, b.1
        )
    }

    /// Writes a line for the whole, one for each part and each cut, and why nodes stay together.
    pub(super) fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let Parts { partition, .. } = self;
        let parts = if partition.count() == 1 { "part" } else { "parts" };
        let speedup = expected_speedup(partition);
        writeln!(out, "{} {parts}, expected speed-up {speedup:.2} with a core for each", partition.count())?;
        for (part, share) in partition.shares().into_iter().enumerate() {
            let names: Vec<&str> = partition.nodes(part).map(|node| self.name(node)).collect();
            let more = if names.len() > SHOWN { ", …" } else { "" };
            let (count, first) = (names.len(), names[..names.len().min(SHOWN)].join(", "));
            let line =
                format!("  part {part}: {count} nodes, {:.0} % of the work: {first}{more}", 100.0 * share);
            writeln!(out, "{}", printable(&line))?;
        }
        if self.in_real_time != partition.count() {
            let (count, parts) = (self.in_real_time, if self.in_real_time == 1 { "part" } else { "parts" });
            let least = Partition::REAL_TIME_LOOKAHEAD;
            writeln!(out, "  in real time {count} {parts}: links below {least} are not cut")?;
        }
        let cuts = partition.cuts().iter().map(|cut| self.cut(cut));
        lines(out, cuts, "cuts")?;
        let joined = partition.joined().iter().map(|joined| format!("not cut at {}", self.reason(joined)));
        lines(out, joined, "links that are not cut")
    }

    /// Returns the same as JSON.
    pub(super) fn value(&self) -> Value {
        let Parts { partition, .. } = self;
        let parts = partition.shares().into_iter().enumerate().map(|(part, share)| {
            let nodes: Vec<&str> = partition.nodes(part).map(|node| self.name(node)).collect();
            json!({ "nodes": nodes, "share": share })
        });
        let cuts = partition.cuts().iter().map(|cut| {
            let ps = cut.lookahead.map(|lookahead| lookahead.as_ps());
            json!({ "link": self.topology.link(cut.link).name, "parts": cut.parts, "lookahead_ps": ps })
        });
        let joined = partition.joined().iter().map(|joined| self.reason(joined));
        json!({
            "parts": parts.collect::<Vec<_>>(),
            "cuts": cuts.collect::<Vec<_>>(),
            "joined": joined.collect::<Vec<_>>(),
            "real_time_parts": self.in_real_time,
            "expected_speedup": expected_speedup(partition),
            "lookahead_min_ps": partition.lookahead_min().map(|lookahead| lookahead.as_ps()),
        })
    }
}

/// Writes the first lines, and the number of the others.
fn lines(out: &mut dyn Write, lines: impl ExactSizeIterator<Item = String>, what: &str) -> io::Result<()> {
    let more = lines.len().saturating_sub(SHOWN);
    for line in lines.take(SHOWN) {
        writeln!(out, "  {}", printable(&line))?;
    }
    if more > 0 { writeln!(out, "  and {more} more {what}: see --json") } else { Ok(()) }
}
