//! Finds the points that something other than the processor limits: a line rate, or a constant
//! packet rate such as a NIC's cap. A cost fitted through such points would describe the wire. The
//! rule is bm(L) = max(r(L), t(L)) of Hugly 2024, "Where might the time go"; here t comes from the
//! data.
//!
//! *Line rate*: rate × (frame + framing) × 8 is the largest of the table, and within 0.2 % of one
//! to four ports of a standard Ethernet speed, at two frame sizes or in three rows at least. With
//! encapsulation each frame has some more bytes on the wire: rows that only this explains are at
//! the line rate at three frame sizes, or at two where other rows or the author name the line.
//! Fewer are a hint. A row up to 2 % below it is at the line rate too if more cores bring it there
//! and hardly any more packets. *Packet rate*: more cores do not forward more packets, or
//! applications of different cost forward the same number of packets on the same number of cores. A
//! table may have several such caps. A cap of each queue of a NIC is one cap times the number of
//! queues.

use crate::column_unit::{ColumnUnit, Dimension};
use crate::fcs::{Fcs, FrameSize};
use crate::table::{SPREAD, Table, TableError};
use crate::terms::{Shape, Term};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

const ETHERNET_BPS: [f64; 11] = [1e8, 1e9, 2.5e9, 5e9, 10e9, 25e9, 40e9, 50e9, 100e9, 200e9, 400e9];
const PORTS_MAX: u32 = 4;
/// Encapsulations and the bytes they add to a frame on the wire.
const ENCAPSULATIONS: [(&str, f64); 9] = [
    ("IEEE 802.1Q, or sizes without the FCS", 4.0),
    ("IEEE 802.1ad", 8.0),
    ("IPv4 in IPv4", 20.0),
    ("GRE", 24.0),
    ("GTP-U", 36.0),
    ("IPv6 in IPv6", 40.0),
    ("NVGRE", 42.0),
    ("VXLAN", 50.0),
    ("VXLAN over IPv6", 70.0),
];
const LINE_TOLERANCE: f64 = 0.002;
/// Tolerance where one frame size alone shows an encapsulation: chance is near otherwise.
const LINE_EXACT: f64 = 0.0005;
/// How far below the line rate rows are that more cores bring to it.
const SATURATED_TOLERANCE: f64 = 0.02;
const CAP_TOLERANCE: f64 = 0.03;
/// Rates of different applications within this share of each other are one cap.
const SHARED_TOLERANCE: f64 = 0.002;
/// Most caps that are searched for.
const CAPS_MAX: usize = 8;
/// A plateau: doubling the cores adds less than this share of packets.
const PLATEAU_GAIN: f64 = 0.10;

/// Which column holds what, and known line rates. A `None` is guessed from the columns' names.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct CapHints {
    /// Column of frame sizes, bytes.
    pub frame: Option<String>,
    /// Whether frame sizes count the FCS; none means they do, as in published sizes.
    pub fcs: Option<Fcs>,
    /// Column of core (thread, worker) counts.
    pub cores: Option<String>,
    /// Bytes that each frame has on the wire in addition to preamble and gap, such as 8 for a
    /// second VLAN tag (IEEE 802.1ad) or 50 for VXLAN.
    pub overhead_bytes: f64,
    /// Known line rates in bit/s, all ports together. If empty, standard Ethernet speeds are tried.
    pub line_bps: Vec<f64>,
}

/// What limits a set of points.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// The processor. These points are fitted.
    Cpu,
    /// The wire.
    LineRate,
    /// A constant number of packets per second, such as a NIC's.
    PacketRate,
}

impl Limit {
    /// Returns the limit as JSON and text name it: `cpu`, `line-rate` or `packet-rate`.
    pub fn word(self) -> &'static str {
        match self {
            Limit::Cpu => "cpu",
            Limit::LineRate => "line-rate",
            Limit::PacketRate => "packet-rate",
        }
    }
}

/// A set of points with one limit.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Regime {
    /// The limit of these points.
    pub limit: Limit,
    /// bit/s on the wire for a line rate, packets/s for a packet rate; none for the processor.
    pub rate: Option<f64>,
    /// Number of points.
    pub points: usize,
    /// Lines of the points in the text.
    pub lines: Vec<u64>,
}

/// The limit of each row of a table and its rate; `None` if the processor is the limit.
#[derive(Clone, PartialEq, Debug)]
pub struct Split {
    limits: Vec<Option<(Limit, f64)>>,
    note: Option<String>,
}

impl Split {
    /// Returns the limits of the numbered rows.
    pub fn keep(&self, rows: &[usize]) -> Split {
        Split { limits: rows.iter().map(|&i| self.limits[i]).collect(), note: self.note.clone() }
    }

    /// Returns a remark on a line rate that some rows may be at.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// Returns the numbers of the rows that the processor limits.
    pub fn free(&self) -> Vec<usize> {
        (0..self.limits.len()).filter(|&i| self.limits[i].is_none()).collect()
    }

    /// Returns the regimes of `table`, [`Limit::Cpu`] first.
    pub fn regimes(&self, table: &Table) -> Vec<Regime> {
        let regime = |limit: Option<(Limit, f64)>| {
            let rows = || (0..self.limits.len()).filter(|&i| self.limits[i] == limit);
            Regime {
                limit: limit.map_or(Limit::Cpu, |(kind, _)| kind),
                rate: limit.map(|(_, rate)| rate),
                points: rows().count(),
                lines: rows().map(|i| table.line(i)).collect(),
            }
        };
        let mut capped: Vec<(Limit, f64)> = self.limits.iter().filter_map(|l| *l).collect();
        capped.sort_by(|a, b| (a.0 as u8).cmp(&(b.0 as u8)).then(a.1.total_cmp(&b.1)));
        capped.dedup();
        [None].into_iter().chain(capped.into_iter().map(Some)).map(regime).collect()
    }
}

/// Splits the rows of `table`. Returns `None` when `y` contains no packet rate, or no column holds
/// frame sizes.
///
/// # Errors
/// [`TableError`] when a hinted column is missing or the rate is not numeric.
pub fn split(table: &Table, y: &Term, hints: &CapHints) -> Result<Option<Split>, TableError> {
    let Some((rate_column, scale)) = rate_of(y) else { return Ok(None) };
    let frame_column = hints.frame.clone().or_else(|| guess_frame(table));
    let Some(frame_column) = frame_column else { return Ok(None) };
    let rates: Vec<f64> = table.numbers(rate_column)?.into_iter().map(|r| r * scale).collect();
    let frames = table.numbers_if_any(&frame_column)?;
    let lines: Vec<Option<f64>> = frames
        .iter()
        .map(|frame| {
            frame.map(|bytes| FrameSize::of_model(bytes, hints.fcs).wire_bytes + hints.overhead_bytes)
        })
        .collect();
    let mut limit: Vec<Option<(Limit, f64)>> = vec![None; table.len()];
    for (row, line) in line_limited(&rates, &lines, &hints.line_bps) {
        limit[row] = Some((Limit::LineRate, line));
    }
    let mut notes = Vec::new();
    if hints.overhead_bytes == 0.0 {
        encapsulated(&rates, &lines, &hints.line_bps, &mut limit, &mut notes);
    }
    packet_caps(table, rate_column, &rates, &lines, hints, &mut limit, &mut notes)?;
    let note = (!notes.is_empty()).then(|| notes.join("; "));
    Ok(Some(Split { limits: limit, note }))
}

/// Finds the rows that stop short of a line rate, and the packet rates at which the rows that are
/// free so far stop.
fn packet_caps(
    table: &Table,
    rate_column: &str,
    rates: &[f64],
    lines: &[Option<f64>],
    hints: &CapHints,
    limit: &mut [Option<(Limit, f64)>],
    notes: &mut Vec<String>,
) -> Result<(), TableError> {
    let Some(cores_column) = hints.cores.clone().or_else(|| guess_cores(table)) else { return Ok(()) };
    let cores = table.numbers_if_any(&cores_column)?;
    let groups = table.groups(&|name| name != rate_column && name != SPREAD && !is_cores(name));
    saturated(&groups, rates, &cores, lines, limit);
    let queues = match table.names().iter().find(|name| is_queues(name)) {
        Some(name) => table.numbers_if_any(name)?,
        None => Vec::new(),
    };
    let still_free = |limit: &[Option<(Limit, f64)>]| -> Vec<usize> {
        (0..table.len()).filter(|&i| limit[i].is_none()).collect()
    };
    if let Some((cap, rows)) = queue_cap(&still_free(limit), &groups, rates, &cores, &queues) {
        notes.push(format!(
            "{} points are at a cap of {:.2} Mpps for each queue of the NIC: more cores do not help them, more queues would",
            rows.len(),
            cap / 1e6
        ));
        for row in rows {
            limit[row] = Some((Limit::PacketRate, cap * queues[row].unwrap_or(1.0)));
        }
    }
    for _ in 0..CAPS_MAX {
        let free = still_free(limit);
        let found =
            packet_cap(&free, &groups, rates, &cores).or_else(|| shared_cap(&free, &groups, rates, &cores));
        let Some((cap, rows)) = found else { break };
        for row in rows {
            limit[row] = Some((Limit::PacketRate, cap));
        }
    }
    Ok(())
}

/// Adds the rows that stop just short of a line rate: more cores bring them to it and hardly any
/// more packets. A generator or a NIC leaves small gaps, so that a few cores fill the line less
/// exactly than many.
fn saturated(
    groups: &[usize],
    rates: &[f64],
    cores: &[Option<f64>],
    lines: &[Option<f64>],
    limit: &mut [Option<(Limit, f64)>],
) {
    let mut by_group: BTreeMap<usize, Vec<(f64, usize)>> = BTreeMap::new();
    for (row, cores) in cores.iter().enumerate() {
        by_group.entry(groups[row]).or_default().extend(cores.map(|cores| (cores, row)));
    }
    for mut rows in by_group.into_values() {
        rows.sort_by(|a, b| b.0.total_cmp(&a.0).then(rates[b.1].total_cmp(&rates[a.1])));
        for pair in rows.windows(2) {
            let ((many, fast), (few, slow)) = (pair[0], pair[1]);
            let (Some((Limit::LineRate, line)), None, Some(bytes)) = (limit[fast], limit[slow], lines[slow])
            else {
                continue;
            };
            let is_near = rates[slow] * 8.0 * bytes >= line * (1.0 - SATURATED_TOLERANCE);
            let gain = rates[fast] / rates[slow] - 1.0;
            if is_near && gain < PLATEAU_GAIN * (many / few - 1.0) {
                limit[slow] = Some((Limit::LineRate, line));
            }
        }
    }
}

/// Returns the packet rate of each queue at which more cores stop helping, and the rows at that
/// rate times their number of queues, of two numbers of queues at least.
fn queue_cap(
    free: &[usize],
    groups: &[usize],
    rates: &[f64],
    cores: &[Option<f64>],
    queues: &[Option<f64>],
) -> Option<(f64, Vec<usize>)> {
    let counted = |row: usize| queues.get(row).copied().flatten().filter(|queues| *queues >= 1.0);
    let free: Vec<usize> = free.iter().copied().filter(|row| counted(*row).is_some()).collect();
    let each: Vec<f64> = rates.iter().enumerate().map(|(row, r)| r / counted(row).unwrap_or(1.0)).collect();
    let (cap, rows) = packet_cap(&free, groups, &each, cores)?;
    let numbers: BTreeSet<u64> = rows.iter().filter_map(|row| counted(*row).map(f64::to_bits)).collect();
    (numbers.len() >= 2).then_some((cap, rows))
}

/// Returns the packet-rate column in `y`, and the packets/s in one of its units.
fn rate_of(y: &Term) -> Option<(&str, f64)> {
    y.factors().iter().filter(|factor| factor.shape == Shape::Plain).find_map(
        |f| match ColumnUnit::of_column(&f.column) {
            Some(ColumnUnit { dimension: Dimension::Rate, scale }) => Some((f.column.as_str(), scale)),
            _ => None,
        },
    )
}

/// Returns the column of frame sizes, if a name says so: `frame…`, `…size`, `…length`, `p`, or a
/// name in bytes.
pub(crate) fn guess_frame(table: &Table) -> Option<String> {
    let named = |test: &dyn Fn(&str) -> bool| table.names().iter().find(|n| test(&n.to_lowercase())).cloned();
    named(&|n| n.contains("frame")).or_else(|| named(&is_frame))
}

/// Returns whether a column's name says that it holds frame sizes.
pub(crate) fn is_frame(name: &str) -> bool {
    let lower = name.to_lowercase();
    let sized = ColumnUnit::of_column(&lower).is_some_and(|u| u.dimension == Dimension::Size);
    sized || lower == "p" || ["frame", "size", "length", "pktlen"].iter().any(|w| lower.contains(w))
}

fn guess_cores(table: &Table) -> Option<String> {
    let with = |word: &str| table.names().iter().find(|n| n.to_lowercase().contains(word)).cloned();
    with("core").or_else(|| with("thread")).or_else(|| with("worker"))
}

/// Returns whether a column's name says that it counts cores, threads or workers.
pub(crate) fn is_cores(name: &str) -> bool {
    let lower = name.to_lowercase();
    ["core", "thread", "worker"].iter().any(|w| lower.contains(w))
}

/// Returns whether a column's name says that it counts queues of a NIC.
fn is_queues(name: &str) -> bool {
    let lower = name.to_lowercase();
    lower.contains("queue") || lower.contains("rxq")
}

/// Returns the rows at a line rate, each with that rate in bit/s. `frames` are bytes of line time.
fn line_limited(rates: &[f64], frames: &[Option<f64>], known: &[f64]) -> Vec<(usize, f64)> {
    // A row of unknown size gets 0 and is at no line rate.
    let on_wire = |(r, f): (&f64, &Option<f64>)| f.map_or(0.0, |f| r * 8.0 * f);
    let wire: Vec<f64> = rates.iter().zip(frames).map(on_wire).collect();
    let near = |line: f64| -> Vec<(usize, f64)> {
        let rows = wire.iter().enumerate().filter(|(_, w)| (**w / line - 1.0).abs() <= LINE_TOLERANCE);
        rows.map(|(row, _)| (row, line)).collect()
    };
    if !known.is_empty() {
        let mut rows: Vec<(usize, f64)> = known.iter().flat_map(|&line| near(line)).collect();
        rows.sort_by_key(|(row, _)| *row);
        rows.dedup_by_key(|(row, _)| *row);
        return rows;
    }
    let top = wire.iter().copied().fold(0.0, f64::max);
    let standard =
        (1..=PORTS_MAX).flat_map(|ports| ETHERNET_BPS.iter().map(move |bps| bps * f64::from(ports)));
    let Some(line) = standard.into_iter().find(|line| (top / line - 1.0).abs() <= LINE_TOLERANCE) else {
        return Vec::new();
    };
    let rows = near(line);
    let sizes: BTreeSet<u64> = rows.iter().filter_map(|(row, _)| frames[*row].map(f64::to_bits)).collect();
    if sizes.len() >= 2 || rows.len() >= 3 { rows } else { Vec::new() }
}

/// Finds the rows that are at a line rate if each frame has some more bytes on the wire. Sets their
/// limit where that is sure, and notes it; otherwise notes what to give.
fn encapsulated(
    rates: &[f64],
    frames: &[Option<f64>],
    known: &[f64],
    limit: &mut [Option<(Limit, f64)>],
    notes: &mut Vec<String>,
) {
    let mut lines: Vec<f64> =
        limit.iter().flatten().map(|(_, line)| *line).chain(known.iter().copied()).collect();
    lines.sort_by(f64::total_cmp);
    lines.dedup();
    for _ in ENCAPSULATIONS {
        let candidates = ENCAPSULATIONS.iter().filter_map(|(name, extra)| {
            let larger: Vec<Option<f64>> =
                frames.iter().map(|frame| frame.map(|bytes| bytes + extra)).collect();
            let at_line = line_limited(rates, &larger, &lines);
            let sizes = |rows: &[(usize, f64)]| -> usize {
                rows.iter()
                    .filter_map(|(row, _)| frames[*row].map(f64::to_bits))
                    .collect::<BTreeSet<u64>>()
                    .len()
            };
            let new: Vec<(usize, f64)> =
                at_line.iter().copied().filter(|(row, _)| limit[*row].is_none()).collect();
            let is_exact = new.iter().all(|(row, line)| {
                larger[*row].is_some_and(|bytes| (rates[*row] * 8.0 * bytes / line - 1.0).abs() <= LINE_EXACT)
            });
            let is_hint = sizes(&new) >= 2
                || (!new.is_empty() && !lines.is_empty() && is_exact && sizes(&at_line) >= 2);
            let is_sure = sizes(&new) >= if lines.is_empty() { 3 } else { 2 };
            is_hint.then_some((*name, *extra, new, is_sure))
        });
        let Some((name, extra, rows, is_sure)) = candidates.max_by_key(|(_, _, rows, _)| rows.len()) else {
            return;
        };
        let gbit = rows[0].1 / 1e9;
        let (n, more) = (rows.len(), format!("{extra} more bytes on the wire ({name})"));
        if !is_sure {
            notes.push(format!(
                "{n} points are at a line rate of {gbit} Gbit/s if each frame has {more}: if so, give --overhead {extra}"
            ));
            return;
        }
        notes.push(format!(
            "{n} points are at a line rate of {gbit} Gbit/s, because each frame has {more}: if not, give --regimes off"
        ));
        for (row, line) in rows {
            limit[row] = Some((Limit::LineRate, line));
        }
    }
}

/// Returns the highest packet rate at which more cores stop helping, and the rows at that rate.
/// Faster rows are not at it.
fn packet_cap(
    free: &[usize],
    groups: &[usize],
    rates: &[f64],
    cores: &[Option<f64>],
) -> Option<(f64, Vec<usize>)> {
    let mut by_group: BTreeMap<usize, Vec<(f64, f64)>> = BTreeMap::new();
    for &row in free {
        if let Some(cores) = cores[row] {
            by_group.entry(groups[row]).or_default().push((cores, rates[row]));
        }
    }
    let mut plateau: Vec<f64> = Vec::new();
    // Pairs over twice the cores or more without any gain.
    let mut flat: Vec<(f64, f64)> = Vec::new();
    for rows in by_group.values_mut() {
        rows.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        for pair in rows.windows(2) {
            let ((few, slow), (many, fast)) = (pair[0], pair[1]);
            let more = many / few - 1.0;
            if more > 0.0 && fast / slow - 1.0 < PLATEAU_GAIN * more {
                plateau.extend([slow, fast]);
                if more >= 1.0 && (fast / slow - 1.0).abs() <= CAP_TOLERANCE {
                    flat.push((slow, fast));
                }
            }
        }
    }
    plateau.sort_by(f64::total_cmp);
    let top = *plateau.last()?;
    plateau.retain(|r| *r >= top * (1.0 - CAP_TOLERANCE));
    let flat_pair = flat.iter().any(|(slow, fast)| slow.max(*fast) >= top);
    if plateau.len() < 3 && !flat_pair {
        return None;
    }
    let cap = plateau[plateau.len() / 2];
    // What goes faster with more cores is not at the cap, even where it passes that rate.
    let mut fastest = vec![0.0f64; groups.iter().max().map_or(0, |group| group + 1)];
    for (&group, &rate) in groups.iter().zip(rates) {
        fastest[group] = fastest[group].max(rate);
    }
    let at_cap = |row: &usize| {
        rates[*row] >= cap * (1.0 - CAP_TOLERANCE)
            && rates[*row] <= top * (1.0 + CAP_TOLERANCE)
            && fastest[groups[*row]] <= top * (1.0 + CAP_TOLERANCE)
    };
    Some((cap, free.iter().copied().filter(at_cap).collect()))
}

/// Returns the highest packet rate that at least three applications share at one number of cores
/// although their costs differ, and the rows at that rate. Applications are rows that differ in a
/// column other than rate and cores. Their costs differ when their rates at a smaller number of
/// cores do.
fn shared_cap(
    free: &[usize],
    groups: &[usize],
    rates: &[f64],
    cores: &[Option<f64>],
) -> Option<(f64, Vec<usize>)> {
    let mut of_group: BTreeMap<usize, Vec<(f64, f64)>> = BTreeMap::new();
    let mut by_cores: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for &row in free {
        if let Some(cores) = cores[row] {
            of_group.entry(groups[row]).or_default().push((cores, rates[row]));
            by_cores.entry(cores.to_bits()).or_default().push(row);
        }
    }
    let mut best: Option<(f64, Vec<usize>)> = None;
    for (bits, mut rows) in by_cores {
        rows.sort_by(|&a, &b| rates[b].total_cmp(&rates[a]));
        // Clusters of rates, the highest first.
        let mut rest = &rows[..];
        while let Some(&top) = rest.first() {
            let end = rest.partition_point(|&row| rates[row] >= rates[top] * (1.0 - SHARED_TOLERANCE));
            let (cluster, lower) = rest.split_at(end);
            rest = lower;
            let sharing: BTreeSet<usize> = cluster.iter().map(|&row| groups[row]).collect();
            let with_fewer = sharing.iter().flat_map(|group| &of_group[group]);
            let with_fewer = with_fewer.filter(|(cores, _)| *cores < f64::from_bits(bits));
            let (least, most) =
                with_fewer.fold((f64::INFINITY, 0.0f64), |(a, b), (_, rate)| (a.min(*rate), b.max(*rate)));
            let differ = most / least - 1.0 > CAP_TOLERANCE;
            if sharing.len() >= 3 && differ && best.as_ref().is_none_or(|(cap, _)| rates[top] > *cap) {
                best = Some((rates[top], cluster.to_vec()));
            }
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn regimes(text: &str, y: &str) -> Vec<(Limit, Option<f64>, usize)> {
        let table = Table::from_csv(text).expect("a table");
        let (table, _) = table.without_words(&["frame_bytes"]).expect("numbers");
        let found = split(&table, &y.parse().expect("a term"), &CapHints::default()).expect("numeric");
        found.map_or(Vec::new(), |s| {
            s.regimes(&table).into_iter().map(|r| (r.limit, r.rate, r.points)).collect()
        })
    }

    #[test]
    fn rows_that_more_cores_bring_to_the_line_are_at_the_line() {
        // 2.5 Mpps for each core behind 10 Gbit/s, which few cores fill to 99 %.
        let mut text = "frame_bytes,cores,pps,spread_pct\n".to_owned();
        for bytes in [64u32, 128, 256] {
            let line = 10e9 / 8.0 / f64::from(bytes + 20);
            for cores in 1..=10u32 {
                let share = if f64::from(cores) * 2.5e6 > 1.5 * line { 0.9995 } else { 0.99 };
                let rate = (f64::from(cores) * 2.5e6).min(share * line);
                text += &format!("{bytes},{cores},{rate},0.{cores}\n");
            }
        }
        let found = regimes(&text, "cores/pps");
        // 14.88, 8.45 and 4.53 Mpps: 5, 3 and 1 rows are below them.
        assert_eq!(found, [(Limit::Cpu, None, 9), (Limit::LineRate, Some(10e9), 21)]);
    }

    #[test]
    fn the_published_vpp_rates_fall_into_line_rate_nic_cap_and_processor() {
        let found = regimes(include_str!("../data/published-vpp.csv"), "packets_per_second_both_directions");
        assert_eq!(
            found,
            [
                (Limit::Cpu, None, 6),
                (Limit::LineRate, Some(20e9), 28),
                (Limit::PacketRate, Some(23_295_237.5), 6),
            ]
        );
    }

    fn table_of(rows: &[(&str, u32, u32, f64)]) -> String {
        let mut text = "app,frame_bytes,cores,mpps\n".to_owned();
        for (app, bytes, cores, mpps) in rows {
            text += &format!("{app},{bytes},{cores},{mpps}\n");
        }
        text
    }

    #[test]
    fn a_cap_does_not_claim_faster_points() {
        let rows: Vec<(&str, u32, u32, f64)> = [(64, [12.0, 14.0, 35.0]), (1518, [4.0, 4.0, 4.0])]
            .into_iter()
            .flat_map(|(bytes, rates)| [1, 2, 4].into_iter().zip(rates).map(move |(c, r)| ("a", bytes, c, r)))
            .collect();
        let found = regimes(&table_of(&rows), "mpps");
        assert_eq!(found, [(Limit::Cpu, None, 3), (Limit::PacketRate, Some(4e6), 3)]);
    }

    #[test]
    fn a_rate_that_three_applications_share_is_a_cap() {
        let rows = [
            ("l2", 64, 1, 9.1),
            ("l2", 64, 2, 13.896),
            ("l3", 64, 1, 8.2),
            ("l3", 64, 2, 13.896),
            ("acl", 64, 1, 7.4),
            ("acl", 64, 2, 13.896),
        ];
        let found = regimes(&table_of(&rows), "mpps");
        assert_eq!(found, [(Limit::Cpu, None, 3), (Limit::PacketRate, Some(13.896e6), 3)]);
        // The same rates of one application measured in three runs are not a cap.
        let runs = ["r1", "r2", "r3"].map(|run| [(run, 64, 1, 9.1), (run, 64, 2, 18.2)]).concat();
        assert_eq!(regimes(&table_of(&runs), "mpps"), [(Limit::Cpu, None, 6)]);
    }

    #[test]
    fn a_plateau_between_two_numbers_of_cores_is_a_cap_at_each_frame_size() {
        let rows = [
            ("a", 64, 2, 21.0),
            ("a", 64, 4, 36.5),
            ("a", 64, 8, 36.6),
            ("a", 512, 2, 17.0),
            ("a", 512, 4, 21.1),
            ("a", 512, 8, 21.1),
        ];
        let found = regimes(&table_of(&rows), "mpps");
        let kinds: Vec<(Limit, usize)> = found.iter().map(|(limit, _, points)| (*limit, *points)).collect();
        assert_eq!(kinds, [(Limit::Cpu, 2), (Limit::PacketRate, 2), (Limit::PacketRate, 2)], "{found:?}");
    }

    #[test]
    fn a_processor_that_scales_has_no_caps() {
        let mut text = "frame_bytes,cores,mpps\n".to_owned();
        for cores in [1.0, 2.0, 4.0] {
            for frame in [64.0, 128.0, 256.0, 512.0] {
                text += &format!("{frame},{cores},{}\n", cores * 1e3 / (80.0 + 0.1 * frame));
            }
        }
        assert_eq!(regimes(&text, "mpps"), [(Limit::Cpu, None, 12)]);
    }

    #[test]
    fn a_line_rate_is_recognised_by_sizes_without_fcs_too() {
        let mut text = "p,fcs,mpps\n".to_owned();
        for p in [60.0, 124.0, 252.0, 508.0] {
            text += &format!("{p},without,{}\n", 10e3 / 8.0 / (p + 24.0));
        }
        let table = Table::from_csv(&text).expect("a table");
        let limits = |fcs| {
            let hints = CapHints { fcs, ..CapHints::default() };
            let found = split(&table, &"mpps".parse().expect("a term"), &hints).expect("numeric");
            found.expect("rates").regimes(&table).iter().map(|r| (r.limit, r.points)).collect::<Vec<_>>()
        };
        assert_eq!(limits(Some(Fcs::Without)), [(Limit::Cpu, 0), (Limit::LineRate, 4)]);
        // The four bytes that are missing show, whatever they are.
        assert_eq!(limits(None), [(Limit::Cpu, 0), (Limit::LineRate, 4)]);
    }

    #[test]
    fn a_line_reached_with_encapsulation_is_noted_and_recognised_when_given() {
        let mut text = "frame_bytes,mpps\n64,9.1\n128,6.0\n".to_owned();
        for bytes in [256.0, 512.0, 1024.0] {
            text += &format!("{bytes},{}\n", 10e3 / 8.0 / (bytes + 20.0 + 50.0));
        }
        let table = Table::from_csv(&text).expect("a table");
        let found = |overhead_bytes| {
            let hints = CapHints { overhead_bytes, ..CapHints::default() };
            split(&table, &"mpps".parse().expect("a term"), &hints).expect("numeric").expect("rates")
        };
        let note = found(0.0).note().expect("a note").to_owned();
        assert_eq!(
            note,
            "3 points are at a line rate of 10 Gbit/s, because each frame has 50 more bytes on the wire (VXLAN): if not, give --regimes off"
        );
        assert_eq!(
            (found(0.0).free(), found(50.0).free(), found(50.0).note()),
            (vec![0, 1], vec![0, 1], None)
        );
    }

    #[test]
    fn two_sizes_with_encapsulation_are_a_hint_and_sure_where_the_line_is_known() {
        let at = |bytes: f64, extra: f64| 10e3 / 8.0 / (bytes + 20.0 + extra);
        let split_of = |rows: &[(&str, f64, f64)]| {
            let mut text = "app,frame_bytes,cores,mpps\n".to_owned();
            for (app, bytes, mpps) in rows {
                text += &format!("{app},{bytes},1,{mpps}\n");
            }
            let table = Table::from_csv(&text).expect("a table");
            split(&table, &"mpps".parse().expect("a term"), &CapHints::default())
                .expect("numeric")
                .expect("rates")
        };
        let two =
            [("dot1ad", 64.0, 5.0), ("dot1ad", 512.0, at(512.0, 8.0)), ("dot1ad", 1518.0, at(1518.0, 8.0))];
        let alone = split_of(&two);
        assert_eq!(alone.free().len(), 3);
        let note = alone.note().expect("a hint");
        assert!(note.contains("(IEEE 802.1ad): if so, give --overhead 8"), "{note}");
        let plain = [("l2", 64.0, 6.0), ("l2", 512.0, at(512.0, 0.0)), ("l2", 1518.0, at(1518.0, 0.0))];
        let known = split_of(&[&plain[..], &two].concat());
        assert_eq!(known.free(), [0, 3], "{:?}", known.note());
        // Jumbo frames are at the line with and without 8 bytes; 1518 alone is a hint.
        let jumbo = [("dot1ad", 1518.0, at(1518.0, 8.0)), ("dot1ad", 9000.0, at(9000.0, 8.0))];
        let hinted = split_of(&[&plain[..], &jumbo].concat());
        assert_eq!(hinted.free(), [0, 3]);
        assert!(hinted.note().expect("a hint").contains("--overhead 8"), "{:?}", hinted.note());
    }

    #[test]
    fn costs_of_a_processor_near_a_line_are_not_encapsulation() {
        // A fast processor and a line of 10 Gbit/s: many random costs per packet and byte.
        let mut rng = fastpath_units::Rng::new(3);
        let mut sure = 0;
        for _ in 0..300 {
            let (fixed, byte) = (20.0 + 80.0 * rng.unit_f64(), 0.2 + 0.7 * rng.unit_f64());
            let mut text = "frame_bytes,cores,mpps\n".to_owned();
            for bytes in [64.0, 128.0, 256.0, 512.0, 1024.0, 1518.0, 9000.0] {
                let line = 10e3 / 8.0 / (bytes + 20.0);
                text += &format!("{bytes},1,{}\n", f64::min(1e3 / (fixed + byte * bytes), line));
            }
            let table = Table::from_csv(&text).expect("a table");
            let found = split(&table, &"mpps".parse().expect("a term"), &CapHints::default());
            let note = found.expect("numeric").expect("rates").note().map(str::to_owned);
            sure += usize::from(note.is_some_and(|note| note.contains("because")));
        }
        assert!(sure <= 3, "{sure} of 300");
    }

    #[test]
    fn a_cap_of_each_queue_is_seen_at_every_number_of_queues() {
        let mut text = "frame_bytes,queues,cores,mpps\n".to_owned();
        for queues in [1, 2, 4] {
            for cores in [1, 2, 4, 8] {
                let mpps = f64::min(9.0 * f64::from(cores), 12.0 * f64::from(queues));
                text += &format!("64,{queues},{cores},{mpps}\n");
            }
        }
        let table = Table::from_csv(&text).expect("a table");
        let found = split(&table, &"mpps".parse().expect("a term"), &CapHints::default());
        let found = found.expect("numeric").expect("rates");
        let caps: Vec<_> = found.regimes(&table).into_iter().map(|r| (r.rate, r.points)).collect();
        assert_eq!(caps, [(None, 6), (Some(12e6), 3), (Some(24e6), 2), (Some(48e6), 1)]);
        assert!(
            found.note().expect("a note").starts_with("6 points are at a cap of 12.00 Mpps for each queue")
        );
    }

    #[test]
    fn a_time_as_y_has_no_regimes() {
        assert_eq!(regimes("frame_bytes,t_ns\n64,1\n", "t_ns"), []);
    }
}
