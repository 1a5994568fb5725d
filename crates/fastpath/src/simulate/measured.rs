//! Machines and programs made of what was measured here: `this-host=RECORDS` and
//! `pipeline=RECORDS`.
//!
//! A record of `fastpath measure host` becomes a machine: its cores, and the caches found in its
//! latencies. Records of `fastpath measure pipeline` become a program: stage i measured is stage i
//! simulated, with a cost per packet and, where frames of several sizes were measured, per byte.
//! Both are texts like any other, so every number can be seen and changed.

use crate::error::{Error, Result};
use fastpath_record::{
    HostMeasurement, Observation, ObservationError, PipelineMeasurement, RecordedCache, RecordedStage,
};
use fastpath_sim::parameter::Text;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// The machine of the last host record in `file`.
pub(super) fn machine(file: &str) -> Result<Text> {
    let hosts = records(file, Observation::host)?;
    let HostMeasurement { machine, results } = hosts
        .last()
        .ok_or_else(|| Error::Argument(format!("{file}: no record of `fastpath measure host` in it")))?;
    let cores = results.score_per_core.len().max(1);
    let is_size = |x: f64| x.is_finite() && x > 0.0;
    let caches: Vec<&RecordedCache> =
        results.caches.iter().filter(|cache| is_size(cache.fits_bytes) && is_size(cache.ns)).collect();
    let levels = levels(&caches);
    let memory = results.latency.last().map(|point| point.ns).filter(|ns| is_size(*ns));
    let memory = memory
        .ok_or_else(|| Error::Argument(format!("{file}: the host record holds no memory latencies")))?;
    let plain = |text: &str| text.replace(['"', '\\'], "");
    let text = format!(
        r#"# Made of a record of `fastpath measure host`.
name = "this-host"
source = "{file}: {name}, {cpu}"

[ports]
count = 1
rate = "100Gbit"
source = "declared: a memory port has no wire, this one is not the limit"

[[station]]
name = "nic"
fixed = "1ns"
queue = {{ limit = 512 }}
source = "declared: costs nothing"

[[cores]]
name = "cpu"
cores = {cores}
clock = "1GHz"
scheduler = {{ kind = "poll", burst = 64 }}
queue = {{ limit = 512 }}
source = "cores: measured. Clock: declared, so that a cycle is a nanosecond; a measured program counts in time"

[[line]]
name = "wire"

[[cache]]
name = "memory"
line = 64
level = [
{levels}  {{ name = "RAM", size = "1024GiB", latency = "{memory:.3}ns", shared = true }},
]
source = "measured: plateaus of the latency of dependent loads, and the last of them"
"#,
        file = plain(file),
        name = plain(&machine.name),
        cpu = plain(&machine.cpu),
    );
    Ok(Text::new(format!("this-host={file}"), text))
}

/// Returns the lines of the levels of a cache.
fn levels(caches: &[&RecordedCache]) -> String {
    let mut levels = String::new();
    let sizes = sizes(caches);
    for (i, (cache, size)) in caches.iter().zip(&sizes).enumerate() {
        let shared = if i > 0 && i + 1 == caches.len() { ", shared = true" } else { "" };
        let line = format!(
            "  {{ name = \"L{}\", size = \"{size}B\", latency = \"{:.3}ns\"{shared} }},\n",
            i + 1,
            cache.ns
        );
        levels.push_str(&line);
    }
    levels
}

/// Returns the size of each cache: the one the kernel declares where the measurement agrees with
/// it, otherwise the one measured. Levels of memory must grow, so all sizes are the measured ones
/// where the declared ones do not: one declared cache may show as two edges.
fn sizes(caches: &[&RecordedCache]) -> Vec<f64> {
    let declared = |cache: &&RecordedCache| {
        let declared = cache.declared_bytes.filter(|declared| *declared >= 0.99 * cache.fits_bytes)?;
        cache.exceeds_bytes.is_none_or(|exceeds| declared <= 2.0 * exceeds).then_some(declared)
    };
    let sizes: Vec<f64> = caches.iter().map(|cache| declared(cache).unwrap_or(cache.fits_bytes)).collect();
    if sizes.is_sorted_by(|a, b| a < b) {
        sizes
    } else {
        caches.iter().map(|cache| cache.fits_bytes).collect()
    }
}

/// The program of the pipeline records in `file`: those like the last one, with the fewest steps of
/// parsing there are.
pub(super) fn program(file: &str) -> Result<Text> {
    let records = records(file, Observation::pipeline)?;
    let last = records
        .last()
        .ok_or_else(|| Error::Argument(format!("{file}: no record of `fastpath measure pipeline` in it")))?;
    let of = |r: &PipelineMeasurement| (r.parameters.program.clone(), r.parameters.cores, r.parameters.links);
    let same = || records.iter().filter(|record| of(record) == of(last));
    let fewest = same().map(|record| record.parameters.h).min().unwrap_or(0);
    let what = last.parameters.program.replace(['"', '\\'], "");
    let mut order: Vec<&str> = Vec::new();
    let mut stages: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
    for record in same().filter(|record| record.parameters.h == fewest) {
        for RecordedStage { name, ns } in &record.results.stages {
            if !stages.contains_key(name.as_str()) {
                order.push(name);
            }
            stages.entry(name).or_default().push((record.parameters.p, ns.max(0.0)));
        }
    }
    if order.is_empty() {
        return Err(Error::Argument(format!("{file}: the pipeline records hold no stages")));
    }
    let mut text = format!(
        "# Made of records of `fastpath measure pipeline`.\nname = \"{what}\"\nsource = \"{}: medians of each stage, per packet and core\"\n",
        file.replace(['"', '\\'], "")
    );
    for name in order {
        let (fixed, per_byte) = line(&stages[name]);
        write!(
            text,
            "\n[[stage]]\nname = \"{name}\"\non = \"cpu\"\nsteps = [{{ time = \"{fixed:.3}ns\" }}, {{ time = \"{:.0}ps\", per = \"byte\" }}]\n",
            1000.0 * per_byte
        )
        .expect("writing to a string cannot fail");
    }
    text.push_str("\n[[stage]]\nname = \"send on the wire\"\non = \"wire\"\n");
    Ok(Text::new(format!("pipeline={file}"), text))
}

/// Reads the records of one kind, typed by `typed`.
fn records<T>(
    file: &str,
    typed: impl Fn(&Observation) -> std::result::Result<Option<T>, ObservationError>,
) -> Result<Vec<T>> {
    let refuse = |error: ObservationError| Error::Argument(format!("{file}: {error}"));
    let text = std::fs::read_to_string(file).map_err(Error::file(Path::new(file)))?;
    let all = Observation::parse(&text).map_err(refuse)?;
    all.iter().filter_map(|record| typed(record).map_err(refuse).transpose()).collect()
}

/// Cost of a frame without bytes and of a byte, by least squares, neither below 0. Frames in memory
/// lack the FCS of 4 bytes that the simulated ones have.
fn line(points: &[(f64, f64)]) -> (f64, f64) {
    let n = points.len() as f64;
    let mean = |f: fn(&(f64, f64)) -> f64| points.iter().map(f).sum::<f64>() / n;
    let (mx, my) = (mean(|p| p.0), mean(|p| p.1));
    let sum = |f: &dyn Fn(f64, f64) -> f64| points.iter().map(|p| f(p.0 - mx, p.1 - my)).sum::<f64>();
    let xx = sum(&|x, _| x * x);
    let slope = if xx > 0.0 { (sum(&|x, y| x * y) / xx).max(0.0) } else { 0.0 };
    // Picoseconds per byte are whole numbers in a program.
    let slope = (1000.0 * slope).round() / 1000.0;
    ((my - slope * (mx + 4.0)).max(0.0), slope)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_caches_grow_whatever_the_kernel_declares() {
        const MIB: f64 = 1_048_576.0;
        let edge = |fits: f64, exceeds: f64, declared: Option<f64>| RecordedCache {
            fits_bytes: fits * MIB,
            exceeds_bytes: Some(exceeds * MIB),
            declared_bytes: declared.map(|size| size * MIB),
            ns: 1.0,
        };
        let mib = |edges: &[RecordedCache]| {
            sizes(&edges.iter().collect::<Vec<_>>()).into_iter().map(|size| size / MIB).collect::<Vec<_>>()
        };
        // The kernel says 480 MiB of L3; the latencies have an edge at 32 and one at 384 MiB.
        let split = [
            edge(0.046875, 0.0625, Some(0.046875)),
            edge(1.5, 2.0, Some(2.0)),
            edge(32.0, 48.0, Some(480.0)),
            edge(384.0, 512.0, None),
        ];
        assert_eq!(mib(&split), [0.046875, 2.0, 32.0, 384.0]);
        let near = [edge(1.5, 2.0, Some(2.0)), edge(256.0, 384.0, Some(480.0)), edge(384.0, 512.0, None)];
        assert_eq!(mib(&near), [1.5, 256.0, 384.0], "declared sizes that do not grow are not used");
    }

    #[test]
    fn a_line_is_found_and_one_point_costs_by_the_packet() {
        // 10 ns and 0.1 ns per byte of the frame with its FCS.
        let (fixed, slope) = line(&[(60.0, 16.4), (1514.0, 161.8)]);
        assert!((fixed - 10.0).abs() < 1e-9 && (slope - 0.1).abs() < 1e-9, "{fixed} {slope}");
        assert_eq!(line(&[(60.0, 16.0)]), (16.0, 0.0));
        assert_eq!(line(&[(60.0, 16.0), (1514.0, 12.0)]).1, 0.0);
    }
}
