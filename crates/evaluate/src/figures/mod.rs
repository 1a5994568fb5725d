//! The tables and figures of the evaluation, one file each. A file owns the ids of its results,
//! titles, axes, what it needs, the published values it is compared with, and how it measures.
//!
//! To add one: its file, with `FIGURES` and `MEASUREMENTS`, and its name in the list below.

use crate::{Effort, MeasurementError, RunContext};
use fastpath_report::{Axis, EvaluatedFigure, FigureGroup, Scale};

/// Declares the modules, and collects what they have in their order.
macro_rules! figure_files {
    ($($file:ident),* $(,)?) => {
        $(mod $file;)*
        /// All tables and figures, in the order of a report.
        pub(crate) const FIGURES: &[&[Figure]] = &[$($file::FIGURES),*];
        /// All measurements, in the order in which they run.
        pub(crate) const MEASUREMENTS: &[&[Measurement]] = &[$($file::MEASUREMENTS),*];
    };
}

figure_files! {
    bandwidth,
    delay,
    loss,
    forwarding,
    multiplex,
    lateness,
    overload,
    overhead,
    kernel_path,
    user_path,
}

/// A table or figure: what its results have in common.
pub(crate) struct Figure {
    /// The beginning of the ids of its results, up to the first slash.
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    /// Where the original values come from.
    pub(crate) original: &'static str,
    /// The quantity, with its unit, of the second part of an id that is a number.
    pub(crate) x: Option<(&'static str, Scale)>,
    /// The quantity on the y axis; without it there is no chart.
    pub(crate) y: Option<(&'static str, Scale)>,
    /// A note on the unit; empty for none.
    pub(crate) note: &'static str,
    /// The meanings of the other parts of ids.
    pub(crate) variants: &'static [(&'static str, &'static str)],
}

impl Figure {
    pub(crate) fn describe(&self) -> FigureGroup {
        let axis = |axis: Option<(&str, Scale)>| axis.map(|(label, scale)| Axis::new(label, scale));
        FigureGroup {
            id: self.id.to_owned(),
            title: self.title.to_owned(),
            original: self.original.to_owned(),
            x: axis(self.x),
            y: axis(self.y),
            note: self.note.to_owned(),
            variants: self.variants.iter().map(|(part, text)| ((*part).into(), (*text).into())).collect(),
        }
    }
}

/// Results that are measured together.
pub(crate) struct Measurement {
    /// The name of the measurement, for the progress bar.
    pub(crate) step: &'static str,
    pub(crate) needs: Needs,
    /// The ids of the results.
    pub(crate) ids: fn(Effort) -> Vec<String>,
    /// How long it takes, quick and full.
    pub(crate) seconds: [f64; 2],
    /// The additional time where rattan is installed.
    pub(crate) rattan_seconds: [f64; 2],
    pub(crate) run: fn(&RunContext<'_>) -> Result<Vec<EvaluatedFigure>, MeasurementError>,
}

/// What a measurement needs of the system.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    Nothing,
    Namespaces,
}

/// The measurements, in the order in which they run.
pub(crate) fn measurements() -> impl Iterator<Item = &'static Measurement> {
    MEASUREMENTS.iter().copied().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_result_has_an_id_of_its_own_and_belongs_to_a_figure_and_every_figure_has_results() {
        let figures: Vec<&str> = FIGURES.iter().copied().flatten().map(|figure| figure.id).collect();
        let ids: Vec<String> = measurements().flat_map(|one| (one.ids)(Effort::Full)).collect();
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
        let used: BTreeSet<&str> = ids.iter().filter_map(|id| id.split('/').next()).collect();
        assert_eq!(used, figures.iter().copied().collect());
        assert_eq!(used.len(), figures.len());
    }
}
