//! Means over batches, and their 95 % intervals by Student's t.

use super::super::system::{Percentile, QueueFigures, QueuePart};
use super::layout::Layout;
use super::machine::{QueueTally, Tallies};
use crate::Estimate;
use crate::dist::t_quantile;
use fastpath_units::stats::quantile;

/// Number of batches.
pub(super) const BATCHES: usize = 32;
/// Correlation of neighbouring batches from which a run counts as too short: about two standard
/// errors of the correlation of independent batches.
const CORRELATED: f64 = 0.4;

/// One figure, batch by batch.
#[derive(Clone, Default)]
struct BatchSeries(Vec<f64>);

impl BatchSeries {
    fn push(&mut self, value: f64) {
        if value.is_finite() {
            self.0.push(value);
        }
    }

    fn estimate(&self) -> Option<Estimate> {
        let n = self.0.len();
        if n < BATCHES / 2 {
            return None;
        }
        let mean = self.0.iter().sum::<f64>() / n as f64;
        let variance = self.0.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1) as f64;
        let half = t_quantile(0.975, (n - 1) as f64) * (variance / n as f64).sqrt();
        Some(Estimate::around(mean, half).not_below_zero())
    }

    fn is_correlated(&self) -> bool {
        let n = self.0.len();
        let mean = self.0.iter().sum::<f64>() / n as f64;
        let squares: f64 = self.0.iter().map(|x| (x - mean).powi(2)).sum();
        let products: f64 = self.0.windows(2).map(|w| (w[0] - mean) * (w[1] - mean)).sum();
        squares > 0.0 && products / squares > CORRELATED
    }
}

#[derive(Clone, Default)]
struct PartSeries {
    throughput: BatchSeries,
    utilisation: BatchSeries,
    lost: BatchSeries,
    waits: BatchSeries,
    queue_len: BatchSeries,
    in_system: BatchSeries,
    wait: BatchSeries,
    sojourn: BatchSeries,
    /// The wait and the sojourn at each percentile.
    percentiles: Vec<(BatchSeries, BatchSeries)>,
}

/// The figures of all batches.
pub(super) struct Batches<'l> {
    layout: &'l Layout,
    percents: Vec<f64>,
    whole: PartSeries,
    parts: Vec<PartSeries>,
}

fn mean(samples: &[f64]) -> f64 {
    samples.iter().sum::<f64>() / samples.len() as f64
}

impl PartSeries {
    fn new(percents: &[f64]) -> PartSeries {
        PartSeries {
            percentiles: vec![(BatchSeries::default(), BatchSeries::default()); percents.len()],
            ..Self::default()
        }
    }

    /// Adds the times of a batch, and what passed in its `seconds`.
    fn add(&mut self, tally: &mut QueueTally, seconds: f64, percents: &[f64]) {
        self.throughput.push(tally.sojourns.len() as f64 / seconds);
        if tally.arrived > 0 {
            self.lost.push(tally.lost as f64 / tally.arrived as f64);
        }
        self.wait.push(mean(&tally.waits));
        self.sojourn.push(mean(&tally.sojourns));
        tally.waits.sort_by(f64::total_cmp);
        tally.sojourns.sort_by(f64::total_cmp);
        for (percent, (wait, sojourn)) in percents.iter().zip(&mut self.percentiles) {
            wait.push(quantile(&tally.waits, percent / 100.0));
            sojourn.push(quantile(&tally.sojourns, percent / 100.0));
        }
    }

    /// Adds the mean numbers of a batch.
    fn add_levels(&mut self, present: f64, served: f64, servers: Option<u32>) {
        self.in_system.push(present);
        self.queue_len.push((present - served).max(0.0));
        if let Some(servers) = servers {
            self.utilisation.push(served / f64::from(servers));
        }
    }

    fn figures(&self, percents: &[f64]) -> QueueFigures {
        let at = |(percent, (wait, sojourn)): (&f64, &(BatchSeries, BatchSeries))| Percentile {
            percent: *percent,
            wait_s: wait.estimate(),
            sojourn_s: sojourn.estimate(),
        };
        QueueFigures {
            throughput_per_s: self.throughput.estimate(),
            utilisation: self.utilisation.estimate(),
            lost: self.lost.estimate(),
            waits: self.waits.estimate(),
            queue_len: self.queue_len.estimate(),
            in_system: self.in_system.estimate(),
            wait_s: self.wait.estimate(),
            sojourn_s: self.sojourn.estimate(),
            percentiles: percents.iter().zip(&self.percentiles).map(at).collect(),
        }
    }
}

impl<'l> Batches<'l> {
    pub(super) fn new(layout: &'l Layout, percents: &[f64]) -> Batches<'l> {
        let one = PartSeries::new(percents);
        Batches { layout, percents: percents.to_vec(), whole: one.clone(), parts: vec![one; layout.parts()] }
    }

    pub(super) fn add(&mut self, tallies: &mut Tallies<'_>) {
        let seconds = tallies.seconds;
        let (mut present, mut served) = (0.0, 0.0);
        let is_classes = self.layout.classes() > 1;
        for (i, (tally, series)) in tallies.parts.iter_mut().zip(&mut self.parts).enumerate() {
            let servers = self.layout.stations[if is_classes { 0 } else { i }].servers;
            series.add(tally, seconds, &self.percents);
            series.add_levels(tally.present_s / seconds, tally.served_s / seconds, Some(servers));
            series.waits.push(tally.waited as f64 / tally.sojourns.len() as f64);
            present += tally.present_s / seconds;
            served += tally.served_s / seconds;
        }
        let one_station = (self.layout.stations.len() == 1).then(|| self.layout.stations[0].servers);
        self.whole.add(tallies.whole, seconds, &self.percents);
        self.whole.add_levels(present, served, one_station);
        if one_station.is_some() {
            self.whole.waits.push(tallies.whole.waited as f64 / tallies.whole.sojourns.len() as f64);
        }
    }

    /// Returns the figures of the whole and of the parts, and reasons to doubt them.
    pub(super) fn finish(&self) -> (QueueFigures, Vec<QueuePart>, Vec<String>) {
        let is_classes = self.layout.classes() > 1;
        let part = |(i, series): (usize, &PartSeries)| QueuePart {
            name: format!("{} {}", if is_classes { "class" } else { "station" }, i + 1),
            figures: series.figures(&self.percents),
        };
        let parts =
            if self.parts.len() > 1 { self.parts.iter().enumerate().map(part).collect() } else { Vec::new() };
        let mut warnings = Vec::new();
        if self.whole.sojourn.is_correlated() {
            warnings.push(
                "the run is short for this load: its batches depend on one another, so the true intervals are wider; simulate more customers".to_owned(),
            );
        }
        (self.whole.figures(&self.percents), parts, warnings)
    }
}
