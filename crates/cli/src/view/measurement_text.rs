//! Measurements as text: tables for terminals.

use fastpath::measurements::Recorded;
use fastpath::record::Measurement;
use fastpath_lab::KernelFacilities;
use fastpath_measure::{
    Barriers, ByTraffic, ChangePhase, ExecutorCost, FlowChanges, Host, Jitter, Operation, OperationCost,
    Place, Stage, SwitchCost, UnitLatency, WorkerRates, WorkerRatios, WorkerScaling,
};
use fastpath_report::text as print;
use serde_json::{Map, Value};
use std::io::{self, Write};

/// Writes what was measured of a machine.
///
/// # Errors
/// The error of `out`.
pub(super) fn host(out: &mut impl Write, record: &Measurement, found: &Host) -> io::Result<()> {
    let machine = &record.provenance.machine;
    writeln!(out, "{}: {}, {} cores, Linux {}", machine.name, machine.cpu, machine.cores, machine.kernel)?;
    let scores: Vec<String> = found.score_per_core.iter().map(|s| print::number(*s)).collect();
    writeln!(out, "own integer score per core (not CoreMark): {} iterations/s", scores.join(", "))?;
    if let Some(score) = found.coremark {
        writeln!(out, "CoreMark, as given: {}", print::number(score))?;
    }
    let mut table = print::table(["copy of", "L1 Gbit/s", "L2", "L3", "router's arena", "unaligned"]);
    let mut sizes: Vec<usize> = found.copying.iter().map(|c| c.bytes).collect();
    sizes.dedup();
    for bytes in sizes {
        let rate = |place, offset| {
            let found = found.copying.iter().find(|c| (c.bytes, c.place, c.offset) == (bytes, place, offset));
            found.map_or(String::new(), |c| print::number(c.bits_per_s / 1e9))
        };
        table.add_row([
            format!("{bytes} B"),
            rate(Place::L1, 0),
            rate(Place::L2, 0),
            rate(Place::L3, 0),
            rate(Place::Arena, 0),
            rate(Place::Arena, 1),
        ]);
    }
    writeln!(out, "{table}")?;
    caches(out, found)?;
    throughput(out, found)?;
    timing(out, found)?;
    if let Some(KernelFacilities { programs, fq, bpf_qdisc }) = found.kernel {
        let has = |it: bool| if it { "yes" } else { "no" };
        let (programs, fq, bpf_qdisc) = (has(programs), has(fq), has(bpf_qdisc));
        writeln!(
            out,
            "the kernel has: programs at interfaces {programs}, fq (earliest departure time) {fq}, BPF queue disciplines {bpf_qdisc}"
        )?;
    }
    found.notes.iter().try_for_each(|note| writeln!(out, "note: {note}"))?;
    Ok(())
}

fn caches(out: &mut impl Write, found: &Host) -> io::Result<()> {
    let mut table =
        print::table(["cache", "latency ns", "fits", "does not", "confidence %", "kernel says", ""]);
    for edge in &found.caches {
        let verdict = match edge.agrees() {
            None => "",
            Some(true) => "agrees",
            Some(false) => "DIFFERS",
        };
        table.add_row([
            format!("L{}", edge.level),
            print::number(edge.ns),
            size(edge.fits_bytes),
            size(edge.exceeds_bytes),
            print::number(100.0 * edge.confidence),
            edge.declared_bytes.map_or(String::new(), size),
            verdict.to_owned(),
        ]);
    }
    writeln!(out, "{table}")?;
    let tlb = &found.tlb;
    write!(out, "loads over {}: {} ns on small pages", size(tlb.bytes), print::number(tlb.small_pages_ns))?;
    match (&tlb.huge_pages_ns, &tlb.unavailable) {
        (Some(ns), _) => writeln!(out, ", {} ns on huge pages", print::number(*ns)),
        (None, why) => writeln!(out, "; no huge pages: {}", why.as_deref().unwrap_or("not asked for")),
    }
}

fn throughput(out: &mut impl Write, found: &Host) -> io::Result<()> {
    let mut table = print::table(["working set", "threads", "read GB/s", "write", "copy"]);
    for first in found.throughput.iter().filter(|p| p.operation == Operation::Read) {
        let rate = |operation| {
            let same = found
                .throughput
                .iter()
                .find(|p| (p.operation, p.bytes, p.threads) == (operation, first.bytes, first.threads));
            same.map_or(String::new(), |p| print::number(p.bytes_per_s / 1e9))
        };
        table.add_row([
            size(first.bytes),
            first.threads.to_string(),
            rate(Operation::Read),
            rate(Operation::Write),
            rate(Operation::Copy),
        ]);
    }
    writeln!(out, "{table}")
}

fn timing(out: &mut impl Write, found: &Host) -> io::Result<()> {
    let t = &found.timing;
    writeln!(
        out,
        "clock {} ns, system call {} ns, ring {} ns, core to core {} ns",
        print::number(t.clock_ns),
        print::number(t.syscall_ns),
        print::number(t.ring_ns),
        t.core_to_core_ns.map_or("–".to_owned(), print::number)
    )?;
    let mut table = print::table(["lateness ns", "p50", "p99", "p99.9", "worst"]);
    let mut row = |name: &str, j: &Jitter| {
        let [a, b, c, d] = [j.p50_ns, j.p99_ns, j.p99_9_ns, j.max_ns].map(|ns| format!("{ns:.0}"));
        table.add_row([name.to_owned(), a, b, c, d]);
    };
    row("spinning", &t.spin);
    row("sleeping 1 ms", &t.sleep);
    writeln!(out, "{table}")
}

/// `48 KiB`
fn size(bytes: usize) -> String {
    match bytes {
        b if b >= 1 << 20 => format!("{} MiB", print::number(b as f64 / 1_048_576.0)),
        b if b >= 1 << 10 => format!("{} KiB", print::number(b as f64 / 1024.0)),
        b => format!("{b} B"),
    }
}

/// Writes the points of a measured pipeline.
///
/// # Errors
/// The error of `out`.
pub(super) fn pipeline(out: &mut impl Write, records: &[Measurement]) -> io::Result<()> {
    let names = identifying(records);
    if records.iter().any(|record| record.results.contains_key("speedup")) {
        return connected(out, records, &names);
    }
    let point = |parameters: &Map<String, Value>| point(parameters, &names);
    let mut table =
        print::table(["point", "ns per packet", "packets/s", "ceiling", "stages, ns", "stages − whole"]);
    for Measurement { parameters, results, .. } in records {
        let number =
            |name: &str| results.get(name).and_then(Value::as_f64).map_or(String::new(), print::number);
        let stages: Vec<Stage> =
            results.get("stages").cloned().and_then(|v| serde_json::from_value(v).ok()).unwrap_or_default();
        let stages: Vec<String> = stages.iter().map(|s| format!("{} {:.1}", s.name, s.ns)).collect();
        let difference = results.get("stages_minus_whole_pct").and_then(Value::as_f64).unwrap_or(f64::NAN);
        table.add_row([
            point(parameters),
            number("T_ns"),
            number("packets_per_second"),
            number("ceiling_packets_per_second"),
            stages.join(", "),
            format!("{difference:+.1} %"),
        ]);
    }
    writeln!(out, "{table}")?;
    for Measurement { parameters, results, .. } in records {
        for found in results.get("throughput").and_then(Value::as_array).into_iter().flatten() {
            writeln!(out, "{}: {}", point(parameters), rate_found(found))?;
        }
        if let Some(bytes) = results.get("bytes_per_link").and_then(Value::as_f64) {
            writeln!(out, "{}: {bytes:.0} bytes per idle link", point(parameters))?;
        }
    }
    Ok(())
}

/// Writes the points of connected networks with one worker and with several.
fn connected(out: &mut impl Write, records: &[Measurement], names: &[&str]) -> io::Result<()> {
    let columns = [
        "point",
        "packets/s",
        "one worker",
        "speed-up",
        "expected",
        "packet-hops/s",
        "handover, ns",
        "crossing",
    ];
    let mut table = print::table(columns);
    for Measurement { parameters, results, .. } in records {
        let value = |name: &str| results.get(name).and_then(Value::as_f64).unwrap_or(f64::NAN);
        table.add_row([
            point(parameters, names),
            print::number(value("packets_per_second")),
            print::number(value("one_worker_packets_per_second")),
            format!("{:.2}", value("speedup")),
            results.get("expected_speedup").map_or(String::new(), estimate),
            print::number(value("packet_hops_per_second")),
            format!("{:.1}", value("handover_ns")),
            format!("{:.0} %", 100.0 * value("cut_share")),
        ]);
    }
    writeln!(out, "{table}")?;
    for Measurement { parameters, results, .. } in records {
        for found in results.get("predicted").and_then(Value::as_array).into_iter().flatten() {
            let said = format!(
                "{} workers ({} parts): {} times",
                found["workers"],
                found["parts"],
                estimate(&found["speedup"])
            );
            writeln!(out, "{}: {said} as fast as one, by the model", point(parameters, names))?;
        }
    }
    Ok(())
}

/// `1.8 (1.7 to 1.9)`
fn estimate(of: &Value) -> String {
    let number = |name: &str| of[name].as_f64().unwrap_or(f64::NAN);
    format!("{:.2} ({:.2} to {:.2})", number("value"), number("low"), number("high"))
}

/// Formats the result of the search for one loss ratio.
fn rate_found(found: &Value) -> String {
    let number = |name: &str| found[name].as_f64().map_or("–".to_owned(), print::number);
    let loss = print::number(100.0 * found["goal"]["loss_ratio"].as_f64().unwrap_or(f64::NAN));
    let mut said = if found["lower_pps"].is_null() {
        format!("at {} packets/s, the lowest rate tried, loss is above {loss} %", number("upper_pps"))
    } else {
        let not = if found["upper_pps"].is_null() {
            "the highest rate tried".to_owned()
        } else {
            format!("not {}", number("upper_pps"))
        };
        let came = if loss == "0" {
            String::new()
        } else {
            format!("; {} packets/s are forwarded", number("conditional_pps"))
        };
        format!("loss is at most {loss} % up to {} packets/s ({not}){came}", number("lower_pps"))
    };
    let counts = [("pauses", "host stalls left out"), ("spoilt", "trials repeated after a host stall")];
    for (name, what) in counts {
        if let Some(count) = found[name].as_u64().filter(|&count| count > 0) {
            said += &format!(" ({count} {what})");
        }
    }
    said
}

/// Returns the parameters that identify a point. Bursts and flows are among them only if they vary.
fn identifying(records: &[Measurement]) -> Vec<&'static str> {
    let is_varied = |name: &&str| {
        let values = || records.iter().map(|record| record.parameters.get(*name));
        values().zip(values().skip(1)).any(|(one, next)| one != next)
    };
    let always = ["port", "table", "p", "h", "size", "cores", "topology", "links", "workers"];
    always.into_iter().chain(["flows", "burst"].into_iter().filter(is_varied)).collect()
}

/// Formats a point: `netcope p = 64, h = 10, cores = 1`.
fn point(parameters: &Map<String, Value>, names: &[&str]) -> String {
    let program = parameters.get("program").and_then(Value::as_str).unwrap_or_default();
    let given = names.iter().filter_map(|name| Some((*name, parameters.get(*name)?)));
    let values: Vec<String> = given.map(|(name, value)| format!("{name} = {value}")).collect();
    format!("{program} {}", values.join(", "))
}

/// Writes what lookups, packets and changes of a switch cost.
///
/// # Errors
/// The error of `out`.
pub(super) fn switch(out: &mut impl Write, cost: &SwitchCost) -> io::Result<()> {
    let mut table = print::table(["ns per lookup", "one flow", "Zipf", "random"]);
    let lookups = &cost.ns_per_lookup;
    let ways = [
        ("compiled", lookups.compiled),
        ("interpreted", lookups.interpreted),
        ("hash per mask", lookups.hash_per_mask),
    ];
    for (way, ByTraffic { one_flow, zipf, random }) in ways {
        let [one_flow, zipf, random] = [one_flow, zipf, random].map(print::number);
        table.add_row([way.to_owned(), one_flow, zipf, random]);
    }
    writeln!(
        out,
        "{} rules, compiled in {} ms to {} bytes of code",
        cost.rules,
        print::number(cost.compile_ms),
        cost.code_bytes
    )?;
    writeln!(out, "{table}")?;
    let rates = &cost.packets_per_second;
    let [compiled, interpreted] = [rates.compiled, rates.interpreted].map(|rate| print::number(rate / 1e6));
    writeln!(out, "64-byte packets from port to port: {compiled} Mpps compiled, {interpreted} interpreted")?;
    let updates = &cost.updates;
    let number = print::number;
    writeln!(
        out,
        "time until a change is in force, µs: median {}, p99 {}, maximum {} (CPU time at most {}; an empty loop of the median's length took at most {})",
        number(updates.update_us.median),
        number(updates.update_us.p99),
        number(updates.update_us.max),
        number(updates.update_us.cpu_max),
        number(updates.update_us.control_max),
    )?;
    writeln!(
        out,
        "bursts of 32 packets meanwhile, µs: median {}, maximum {}; {} of {} packets lost",
        number(updates.burst_us.median),
        number(updates.burst_us.max),
        updates.lost,
        updates.packets
    )?;
    Ok(())
}

/// Writes what a packet costs by one executor.
pub(super) fn executor(out: &mut impl Write, cost: &ExecutorCost) -> io::Result<()> {
    let ExecutorCost { executor, rules, rules_in_user_space, in_user_space_because, ns_per_packet, method } =
        cost;
    writeln!(out, "{rules} rules, {executor}: {} ns per packet ({method})", print::number(*ns_per_packet))?;
    if *rules_in_user_space > 0 {
        let because = in_user_space_because.join(", ");
        writeln!(out, "{rules_in_user_space} rules in user space because of {because}")?;
    }
    Ok(())
}

/// Writes what changes of flows cost.
///
/// # Errors
/// The error of `out`.
pub(super) fn flow_changes(out: &mut impl Write, found: &FlowChanges) -> io::Result<()> {
    let mut table =
        print::table(["", "seconds", "flows/s", "longest stop, µs", "with the scheduler's pauses, µs"]);
    let phases = [
        ("add", found.add),
        ("modify", found.modify),
        ("aggregate", found.aggregate),
        ("delete, strict", found.delete_strict),
        ("delete all", found.delete_all),
    ];
    for (name, ChangePhase { seconds, per_second, stop_us, wall_us }) in phases {
        let numbers = [seconds, per_second, stop_us, wall_us].map(print::number);
        table.add_row(std::iter::once(name.to_owned()).chain(numbers));
    }
    writeln!(out, "{table}")?;
    let Barriers { count, median_us, p99_us, stale } = found.barriers;
    let (median_us, p99_us) = (print::number(median_us), print::number(p99_us));
    writeln!(
        out,
        "{count} barriers: median {median_us} µs, 99 % within {p99_us} µs; {stale} frames by an earlier rule"
    )?;
    let [full, kept] = [found.bytes_per_flow, found.bytes_kept_per_flow].map(print::number);
    writeln!(out, "memory: {full} bytes per flow, of which {kept} are kept after the deletion")?;
    let rate = print::number(found.packets_per_second);
    writeln!(out, "beside {rate} packets/s, of which {} were lost", found.lost)
}

/// Writes what several workers of a switch pass.
pub(super) fn workers(out: &mut impl Write, found: &WorkerScaling) -> io::Result<()> {
    let WorkerScaling { rules, workers, rounds, one, own_channels, shared_channel, .. } = found;
    let mut table = print::table([
        "",
        "packets/s",
        "packets/s of CPU time",
        "with a core, %",
        "ratio",
        "best",
        "by CPU time",
    ]);
    let several = [
        (format!("{workers} workers, own channels"), own_channels, found.own_channels_ratio),
        (format!("{workers} workers, one channel to send"), shared_channel, found.shared_channel_ratio),
    ];
    let rates = |rates: &WorkerRates| {
        [rates.packets_per_second, rates.packets_per_cpu_second, rates.cpu_share * 100.0].map(print::number)
    };
    let same = ["1", "1", "1"].map(str::to_owned);
    table.add_row(std::iter::once("1 worker".to_owned()).chain(rates(one)).chain(same));
    for (name, of, WorkerRatios { median, best, by_cpu_time }) in several {
        let ratios = [median, best, by_cpu_time].map(print::number);
        table.add_row(std::iter::once(name).chain(rates(of)).chain(ratios));
    }
    writeln!(out, "{rules} rules, {rounds} rounds in turns\n{table}")
}

/// Writes latencies of units and costs of operations.
///
/// # Errors
/// The error of `out`.
pub(super) fn latency(
    out: &mut impl Write,
    latencies: &[Recorded<UnitLatency>],
    costs: &[Recorded<OperationCost>],
) -> io::Result<()> {
    let text = |record: &Measurement, name: &str| match &record.parameters[name] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut table = print::table([
        "between",
        "size B",
        "median t_f ns",
        "core mean",
        "core sd",
        "outliers",
        "generator to generator ns",
    ]);
    for Recorded { found, record } in latencies {
        table.add_row([
            text(record, "between"),
            text(record, "size"),
            print::number(found.median_ns),
            print::number(found.t_f_ns.mixture.core_mean),
            print::number(found.t_f_ns.mixture.core_sd),
            found.t_f_ns.outliers.to_string(),
            found.round_trip_ns.map_or("–".to_owned(), print::number),
        ]);
    }
    writeln!(out, "{table}")?;
    if costs.is_empty() {
        return Ok(());
    }
    let mut table = print::table(["operation", "ns each", "R²"]);
    for Recorded { found, record } in costs {
        let cost = print::estimate(found.cost_ns);
        table.add_row([text(record, "operation"), cost, format!("{:.4}", found.r2)]);
    }
    writeln!(out, "{table}")?;
    let none = costs.iter().filter(|cost| cost.found.cost_ns.low == 0.0);
    let none: Vec<String> = none.map(|cost| text(&cost.record, "operation")).collect();
    if !none.is_empty() {
        let none = none.join(", ");
        writeln!(
            out,
            "note: {none}: the interval begins at 0, so the cost may be none; use more --packets or a quieter machine"
        )?;
    }
    Ok(())
}
