//! What `fastpath ctl top` prints: the links of a running network by load.

use fastpath::link_loads::LinkLoads;
use fastpath_report::text::{align_left, table};
use fastpath_spec::mistake::printable;

/// Formats a table of the first `rows` directions. It has no control characters.
pub(crate) fn load_table(loads: &LinkLoads, rows: usize) -> String {
    let titles = [
        "link",
        "from → to",
        "load",
        "headroom",
        "in",
        "out",
        "queue",
        "delay",
        "dropped",
        "late",
        "late p99",
    ];
    let mut table = table(titles);
    align_left(&mut table, [8]);
    for link in loads.links.iter().take(rows) {
        let dropped: Vec<String> = link.dropped.iter().map(|(why, n)| format!("{n} {why}")).collect();
        table.add_row([
            printable(&link.link).into_owned(),
            printable(&format!("{} → {}", link.from, link.to)).into_owned(),
            match (link.state.as_str(), link.load) {
                ("up", Some(load)) => format!("{:.0} %", 100.0 * load),
                ("up", None) => "–".to_owned(),
                (state, _) => state.to_owned(),
            },
            format!("{:.0} %", 100.0 * link.headroom),
            bits(link.in_bps),
            bits(link.out_bps),
            format!("{} ({} B)", link.queued_frames, link.queued_bytes),
            format!("{:.2} ms", link.queueing_delay_us / 1000.0),
            if dropped.is_empty() { "0".to_owned() } else { dropped.join(", ") },
            link.late.map_or_else(|| "–".to_owned(), |late| late.to_string()),
            link.lateness_p99_us.map_or_else(|| "–".to_owned(), |us| format!("{us:.0} µs")),
        ]);
    }
    let more = loads.links.len().saturating_sub(rows);
    let more = if more > 0 { format!("\n… and {more} more") } else { String::new() };
    let LinkLoads { uptime_s, interval_s, .. } = loads;
    let workers = loads.workers.iter().enumerate().map(|(number, load)| {
        format!("\nworker {number}: load {:.0} %, headroom {:.0} %", 100.0 * load, 100.0 * (1.0 - load))
    });
    let workers: String = workers.collect();
    let warnings = loads.warnings.iter().map(|warning| format!("\n{}", printable(warning)));
    let warnings: String = warnings.collect();
    format!("{table}{more}{workers}{warnings}\nafter {uptime_s:.1} s, over {interval_s:.2} s")
}

fn bits(bps: f64) -> String {
    let units = [(1e9, "Gbit"), (1e6, "Mbit"), (1e3, "kbit")];
    let found = units.into_iter().find(|(size, _)| bps >= *size);
    found.map_or_else(|| format!("{bps:.0}bit"), |(size, unit)| format!("{:.2}{unit}", bps / size))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpath::link_loads::LinkLoad;
    use std::collections::BTreeMap;

    #[test]
    fn a_table_has_the_first_directions_and_no_terminal_escape() {
        let busy = LinkLoad {
            link: "a-b".to_owned(),
            from: "a\u{1b}[31m".to_owned(),
            to: "b".to_owned(),
            state: "up".to_owned(),
            load: Some(0.5),
            headroom: 0.5,
            in_bps: 0.0,
            out_bps: 5e6,
            queued_frames: 7,
            queued_bytes: 700,
            queueing_delay_us: 2500.0,
            dropped: BTreeMap::from([("queue-full".to_owned(), 3)]),
            late: None,
            lateness_p99_us: None,
        };
        let loads = LinkLoads {
            uptime_s: 10.5,
            interval_s: 0.5,
            workers: vec![0.25],
            warnings: vec!["worker 0 is busy".to_owned()],
            links: vec![busy.clone(), busy],
        };
        let text = load_table(&loads, 1);
        for part in [
            "50 %",
            "5.00Mbit",
            "7 (700 B)",
            "2.50 ms",
            "3 queue-full",
            "… and 1 more",
            "worker 0: load 25 %, headroom 75 %\nworker 0 is busy\nafter",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains('\u{1b}'), "a name has no terminal escape: {text:?}");
    }
}
