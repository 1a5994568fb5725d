//! The sections of records: what is shown of each kind, and how.

use crate::chart::{Boxed, Chart, Drawing, Scale, Series};
use crate::plain;
use crate::simulated::simulations;
use crate::values::{axis, interval, number, series, thinned, word};
use crate::{Grid, Section, short};
use fastpath_record::{Measurement, Optimised};
use fastpath_units::stats::median;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Makes the section of all records of one kind.
type Show = fn(&[&Measurement]) -> Section;

/// The kinds, in the order of a report.
const KINDS: [(&str, Show); 5] = [
    ("host", host),
    ("pipeline", pipeline),
    ("latency", latency),
    ("operations", operations),
    ("simulation", simulations),
];

pub(super) fn all(records: &[Measurement]) -> Vec<Section> {
    let mut sections = Vec::new();
    for (kind, show) in KINDS {
        let of_kind: Vec<&Measurement> = records.iter().filter(|r| r.kind == kind).collect();
        if !of_kind.is_empty() {
            let mut section = show(&of_kind);
            section.notes.extend(provenance(&of_kind));
            sections.push(section);
        }
    }
    let others: BTreeSet<&str> =
        records.iter().map(|r| r.kind.as_str()).filter(|kind| KINDS.iter().all(|(k, _)| k != kind)).collect();
    for kind in others {
        let of_kind: Vec<&Measurement> = records.iter().filter(|r| r.kind == kind).collect();
        let mut section = plain::section(kind, &of_kind);
        section.notes.extend(provenance(&of_kind));
        sections.push(section);
    }
    sections
}

/// Describes the provenance of the records. Each different provenance is listed once.
fn provenance(records: &[&Measurement]) -> Vec<String> {
    let mut notes = Vec::new();
    for record in records {
        let p = &record.provenance;
        let commit = p.tool.commit.as_deref().map_or(String::new(), |c| format!(" ({c})"));
        let build = if p.tool.optimised == Optimised::Development {
            ", a DEVELOPMENT BUILD: its speed is not representative"
        } else {
            ""
        };
        notes.push(format!(
            "{}: {}, {} cores, Linux {}; fastpath {}{commit}{build}; {}; n = {}, seed {}; command: {}",
            p.machine.name,
            p.machine.cpu,
            p.machine.cores,
            p.machine.kernel,
            p.tool.version,
            p.day(),
            p.n,
            p.seed,
            p.command_line.join(" ")
        ));
    }
    notes.sort();
    notes.dedup();
    let disturbed = records.iter().filter(|r| r.provenance.disturbance.disturbed).count();
    if disturbed > 0 {
        notes.push(format!(
            "{disturbed} of {} records were made while other work disturbed the machine: they may be wrong by several percent",
            records.len()
        ));
    }
    notes
}

/// Writes a time with a suitable unit: `27.97 ns`, `4.012 ms`.
fn span(ns: f64) -> String {
    match ns.abs() {
        a if !a.is_finite() => "–".to_owned(),
        a if a >= 1e9 => format!("{} s", short(ns / 1e9)),
        a if a >= 1e6 => format!("{} ms", short(ns / 1e6)),
        a if a >= 1e3 => format!("{} µs", short(ns / 1e3)),
        _ => format!("{} ns", short(ns)),
    }
}

fn items<'a>(record: &'a Measurement, name: &str) -> impl Iterator<Item = &'a Value> {
    record.results.get(name).and_then(Value::as_array).into_iter().flatten()
}

fn host(records: &[&Measurement]) -> Section {
    let (mut charts, mut tables) = (Vec::new(), Vec::new());
    let latency = records.iter().enumerate().flat_map(|(i, r)| {
        let name = r.provenance.machine.name.clone();
        items(r, "latency").map(move |p| (i, name.clone(), number(&p["bytes"]), number(&p["ns"])))
    });
    charts.push(Chart {
        title: "Latency of dependent loads".to_owned(),
        x: axis("working set, bytes", Scale::Log2),
        y: axis("latency, ns", Scale::Log10),
        drawing: Drawing::Lines(series(latency)),
    });
    for record in records {
        for operation in ["read", "write", "copy"] {
            let of_operation = || items(record, "throughput").filter(move |p| p["operation"] == operation);
            let by_threads = of_operation().map(|p| {
                let size = number(&p["bytes"]);
                (size as u64, format!("{} B", binary(size)), number(&p["threads"]), number(&p["bytes_per_s"]))
            });
            charts.push(Chart {
                title: format!("Memory throughput, {operation}: a line for each working set of a thread"),
                x: axis("number of threads", Scale::Log2),
                y: axis("throughput of all threads, bytes/s", Scale::Log10),
                drawing: Drawing::Lines(thinned(series(by_threads))),
            });
        }
        let over_size = items(record, "throughput").filter(|p| p["threads"] == 1).map(|p| {
            let name = word(p.get("operation"));
            (name.clone(), name, number(&p["bytes"]), number(&p["bytes_per_s"]))
        });
        charts.push(Chart {
            title: "Memory throughput, one thread".to_owned(),
            x: axis("working set, bytes", Scale::Log2),
            y: axis("throughput, bytes/s", Scale::Log10),
            drawing: Drawing::Lines(series(over_size)),
        });
        let copies = items(record, "copying").map(|c| {
            let off = if c["offset"] == 0 { "aligned" } else { "unaligned" };
            let place = word(c.get("place"));
            // Caches are L1, L2, L3.
            let place = if place == "arena" { "router's arena".to_owned() } else { place.to_uppercase() };
            let name = format!("{place}, {off}");
            (name.clone(), name, number(&c["bytes"]), number(&c["ns"]))
        });
        charts.push(Chart {
            title: "Time to copy a packet".to_owned(),
            x: axis("packet size, bytes", Scale::Log2),
            y: axis("time, ns", Scale::Log10),
            drawing: Drawing::Lines(series(copies)),
        });
        tables.extend(host_tables(record));
    }
    Section { title: "Machines".to_owned(), notes: host_notes(records), charts, tables }
}

fn host_tables(record: &Measurement) -> [Grid; 2] {
    let caches = items(record, "caches").map(|c| {
        vec![
            format!("L{}", word(c.get("level"))),
            short(number(&c["ns"])),
            binary(number(&c["fits_bytes"])),
            binary(number(&c["exceeds_bytes"])),
            short(100.0 * number(&c["confidence"])),
            c.get("declared_bytes").map_or("–".to_owned(), |d| binary(number(d))),
        ]
    });
    let titles = ["cache", "latency ns", "fits, B", "does not, B", "confidence %", "kernel says, B"];
    let caches = Grid::new(titles, caches);
    let timing = record.results.get("timing").unwrap_or(&Value::Null);
    let single = ["clock_ns", "syscall_ns", "ring_ns", "core_to_core_ns"].map(|name| {
        vec![
            name.trim_end_matches("_ns").replace('_', " "),
            span(number(&timing[name])),
            String::new(),
            String::new(),
        ]
    });
    let jitter = ["spin", "sleep"].map(|name| {
        let at = |q: &str| span(number(&timing[name][q]));
        vec![format!("lateness, {name}"), at("p50_ns"), at("p99_ns"), at("max_ns")]
    });
    let rows = single.into_iter().chain(jitter);
    [caches, Grid::new(["", "median", "p99", "worst"], rows)]
}

fn host_notes(records: &[&Measurement]) -> Vec<String> {
    let mut notes = Vec::new();
    for record in records {
        let scores: Vec<String> = items(record, "score_per_core").map(|s| short(number(s))).collect();
        notes.push(format!("integer score per core (not CoreMark): {} iterations/s", scores.join(", ")));
        if let Some(score) = record.results.get("coremark") {
            notes.push(format!("CoreMark as given: {score}"));
        }
        notes.extend(items(record, "notes").map(|note| word(Some(note))));
    }
    notes
}

/// `48Ki`
fn binary(bytes: f64) -> String {
    match bytes {
        b if b >= 1_048_576.0 => format!("{}Mi", short(b / 1_048_576.0)),
        b if b >= 1024.0 => format!("{}Ki", short(b / 1024.0)),
        b => short(b),
    }
}

fn pipeline(records: &[&Measurement]) -> Section {
    let (emulated, others): (Vec<&Measurement>, Vec<&Measurement>) =
        records.iter().partition(|r| r.parameters.contains_key("links"));
    let mut charts = Vec::new();
    if !others.is_empty() {
        charts.push(core_times(&others));
    }
    if !emulated.is_empty() {
        charts.push(rates_over_links(&emulated));
    }
    let rows = records.iter().map(|r| {
        let stages =
            items(r, "stages").map(|s| format!("{} {}", word(s.get("name")), short(number(&s["ns"]))));
        vec![
            point(r),
            short(result(r, "T_ns")),
            short(result(r, "packets_per_second")),
            stages.collect::<Vec<_>>().join(", "),
            short(result(r, "stages_minus_whole_pct")),
        ]
    });
    let titles = ["point", "ns per packet", "packets/s", "stages, ns", "stages − whole, %"];
    let mut tables = vec![Grid::new(titles, rows)];
    tables.extend(searched(records));
    Section { title: "Pipelines".to_owned(), notes: vec![], charts, tables }
}

fn parameter(record: &Measurement, name: &str) -> f64 {
    record.parameters.get(name).map_or(f64::NAN, number)
}

fn result(record: &Measurement, name: &str) -> f64 {
    record.results.get(name).map_or(f64::NAN, number)
}

/// The core time of a packet over the frame size.
fn core_times(others: &[&Measurement]) -> Chart {
    let varied = ["flows", "burst"]
        .map(|name| others.iter().any(|r| r.parameters.get(name) != others[0].parameters.get(name)));
    let lines = others.iter().map(|r| {
        let (program, h, cores) =
            (word(r.parameters.get("program")), parameter(r, "h"), parameter(r, "cores"));
        let mut name = format!("{program}, {h} steps per packet");
        if cores != 1.0 {
            name += &format!(", {cores} cores");
        }
        let more = ["flows", "burst"].map(|name| parameter(r, name));
        for ((what, value), _) in
            ["flows", "in a burst"].into_iter().zip(more).zip(varied).filter(|(_, varied)| *varied)
        {
            name += &format!(", {value} {what}");
        }
        let more = more.map(|value| value as u64);
        ((program, h as u64, cores as u64, more), name, parameter(r, "p"), result(r, "T_ns"))
    });
    Chart {
        title: "Core time per packet".to_owned(),
        x: axis("frame size without FCS, bytes", Scale::Linear),
        y: axis("core time per packet, ns", Scale::Linear),
        drawing: Drawing::Lines(series(lines)),
    }
}

/// The forwarding rate over the number of links.
fn rates_over_links(emulated: &[&Measurement]) -> Chart {
    let lines = emulated.iter().flat_map(|r| {
        ["packets_per_second", "ceiling_packets_per_second"].map(|name| {
            let size = parameter(r, "size");
            let what = if name.starts_with("ceiling") { "without emulation" } else { "emulated" };
            // Old records do not say: they are of one core and memory ports.
            let cores = r.parameters.get("cores").map_or(1, |cores| number(cores) as u64);
            let port = r.parameters.get("port").map_or(String::new(), |port| word(Some(port)));
            let mut line = format!("{what}, {size} B");
            if cores != 1 {
                line += &format!(", {cores} cores");
            }
            if !port.is_empty() {
                line += &format!(", {port}");
            }
            ((name, size as u64, cores, port), line, parameter(r, "links"), result(r, name))
        })
    });
    Chart {
        title: "Forwarding rate over the number of links".to_owned(),
        x: axis("number of links", Scale::Log10),
        y: axis("forwarding rate, packets/s", Scale::Linear),
        drawing: Drawing::Lines(series(lines)),
    }
}

/// Describes the measured point of a pipeline.
fn point(record: &Measurement) -> String {
    let names = ["port", "table", "p", "h", "cores", "size", "links", "flows", "burst"];
    let set = names.iter().filter_map(|name| Some((name, record.parameters.get(*name)?)));
    let set: Vec<String> = set.map(|(name, value)| format!("{name} = {}", word(Some(value)))).collect();
    format!("{} {}", word(record.parameters.get("program")), set.join(", "))
}

/// The highest rates within a loss ratio, where they were searched.
fn searched(records: &[&Measurement]) -> Option<Grid> {
    let rows = records.iter().flat_map(|r| {
        let point = point(r);
        items(r, "throughput").map(move |found| {
            let rate = |name: &str| found.get(name).map_or("–".to_owned(), |pps| short(number(pps)));
            let loss = format!("{} %", short(100.0 * number(&found["goal"]["loss_ratio"])));
            let rates = ["lower_pps", "upper_pps", "conditional_pps"].map(rate);
            [point.clone(), loss].into_iter().chain(rates).collect()
        })
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let titles = [
        "point",
        "loss ratio at most",
        "passed up to, packets/s",
        "exceeded from, packets/s",
        "forwarded, packets/s",
    ];
    (!rows.is_empty()).then_some(Grid::new(titles, rows))
}

fn latency(records: &[&Measurement]) -> Section {
    let boxed = |r: &Measurement| {
        let t = &r.results["t_f_ns"];
        let five = [0, 1, 2, 3, 4].map(|i| number(&t["five"][i]));
        let [low, high] = [0, 1].map(|i| number(&t["fences"][i]));
        Boxed {
            name: format!("{} B", size(r)),
            five: [five[0].max(low), five[1], five[2], five[3], five[4].min(high)],
            outliers: items(r, "outliers_ns").map(number).collect(),
        }
    };
    let mut charts = Vec::new();
    for place in records.iter().map(|r| between(r)).collect::<BTreeSet<String>>() {
        let of_place: Vec<&&Measurement> = records.iter().filter(|r| between(r) == place).collect();
        charts.push(Chart {
            title: format!("Time of input and output of a unit (t_f); between units: {place}"),
            x: axis("frame size, bytes", Scale::Linear),
            y: axis("time, ns", Scale::Linear),
            drawing: Drawing::Boxes(of_place.iter().map(|r| boxed(r)).collect()),
        });
        let varied = of_place.iter().filter(|r| varies(r));
        charts.extend(varied.map(|r| histogram(r, &format!("{place}, {}", size(r)))));
    }
    Section {
        title: "Latency".to_owned(),
        notes: vec![
            "whiskers cover 99.3 % of a normal distribution; distant outliers are drawn at the upper edge; there is no \
             histogram where all packets took the same time"
                .to_owned(),
        ],
        charts,
        tables: vec![latency_table(records)],
    }
}

fn size(record: &Measurement) -> String {
    word(record.parameters.get("size"))
}

/// What joins the units. Old records do not say: they are of memory ports.
fn between(record: &Measurement) -> String {
    record.parameters.get("between").map_or("memory".to_owned(), |b| word(Some(b)))
}

fn latency_table(records: &[&Measurement]) -> Grid {
    let rows = records.iter().map(|r| {
        let t = &r.results["t_f_ns"];
        vec![
            between(r),
            size(r),
            short(number(&r.results["median_ns"])),
            short(number(&t["mixture"]["core_mean"])),
            short(number(&t["mixture"]["core_sd"])),
            interval(&t["mean"]),
            word(t.get("outliers")),
            word(t.get("samples")),
            short(number(&r.results["round_trip_ns"])),
        ]
    });
    let titles = [
        "between units",
        "frame, B",
        "median t_f ns",
        "core mean",
        "core sd",
        "mean with outliers",
        "outliers",
        "packets",
        "generator to generator, ns",
    ];
    Grid::new(titles, rows)
}

/// Whether the packets of a record took different times. In virtual time they may not.
fn varies(record: &Measurement) -> bool {
    let counts = record.results["histogram"]["counts"].as_array();
    counts.into_iter().flatten().filter(|count| number(count) > 0.0).count() > 1
}

/// The histogram between the fences, and the normal distribution of the mixture's core.
fn histogram(record: &Measurement, size: &str) -> Chart {
    let h = &record.results["histogram"];
    let (from, width) = (number(&h["from"]), number(&h["width"]));
    // `from` is the middle of the first bin.
    let from = from - width / 2.0;
    let counts: Vec<f64> = h["counts"].as_array().into_iter().flatten().map(number).collect();
    let bars: Vec<(f64, f64, f64)> = counts
        .iter()
        .enumerate()
        .map(|(i, c)| (from + i as f64 * width, from + (i + 1) as f64 * width, *c))
        .collect();
    let core = &record.results["t_f_ns"]["mixture"];
    let (mean, sd) = (number(&core["core_mean"]), number(&core["core_sd"]));
    let share = 1.0 - number(&core["outlier_share"]);
    let n = number(&record.results["t_f_ns"]["samples"]);
    let density = |x: f64| (-0.5 * ((x - mean) / sd).powi(2)).exp() / (sd * std::f64::consts::TAU.sqrt());
    // A distribution much narrower than a bin has no visible curve.
    let steps = if 10.0 * sd < width { 0 } else { 4 * counts.len() };
    let curve = (1..=steps).map(|i| {
        let x = from + i as f64 * width / 4.0;
        (x, share * n * width * density(x))
    });
    Chart {
        title: format!("Time of input and output (t_f): {size} B"),
        x: axis("time, ns", Scale::Linear),
        y: axis("number of packets", Scale::Linear),
        drawing: Drawing::Bars(
            bars,
            Series { name: format!("normal {} ± {}", short(mean), short(sd)), points: curve.collect() },
        ),
    }
}

fn operations(records: &[&Measurement]) -> Section {
    let lines = records.iter().flat_map(|r| {
        let name = word(r.parameters.get("operation"));
        // Each number of operations is measured several times.
        let mut repeats: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for point in items(r, "points") {
            repeats.entry(number(&point[0]) as u64).or_default().push(number(&point[1]));
        }
        repeats.into_iter().map(move |(n, times)| (name.clone(), name.clone(), n as f64, median(times)))
    });
    let chart = Chart {
        title: "Median cost of a forwarder that repeats an operation on each packet".to_owned(),
        x: axis("operations per packet", Scale::Linear),
        y: axis("time per packet, ns", Scale::Linear),
        drawing: Drawing::Lines(series(lines)),
    };
    let rows = records.iter().map(|r| {
        let cost = &r.results["cost_ns"];
        vec![
            word(r.parameters.get("operation")),
            short(number(&cost["value"])),
            format!("{} … {}", short(number(&cost["low"])), short(number(&cost["high"]))),
            format!("{:.4}", r.results.get("r2").map_or(f64::NAN, number)),
        ]
    });
    let tables = vec![Grid::new(["operation", "ns each", "95 % interval", "R²"], rows)];
    Section { title: "Operations".to_owned(), notes: vec![], charts: vec![chart], tables }
}
