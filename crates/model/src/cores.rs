//! How many cores a link needs: the packets/s that the wire carries times the time that a packet
//! costs one core. This is the chart of Netcope 2017.

use crate::Estimate;
use crate::fcs::FRAMING_BYTES;
use crate::model::{Model, ModelError};
use crate::regime::is_frame;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use thiserror::Error;

/// The default link speeds, Gbit/s.
pub const SPEEDS_GBIT: [f64; 7] = [10.0, 25.0, 40.0, 100.0, 200.0, 400.0, 800.0];
/// The default frame sizes, bytes with FCS (RFC 2544 §9.1).
pub const FRAMES_BYTES: [f64; 7] = [64.0, 128.0, 256.0, 512.0, 1024.0, 1280.0, 1518.0];

/// Ethernet's shortest frame, bytes with FCS (IEEE 802.3 §4.4.2).
const ETHERNET_MIN: f64 = 64.0;

/// The combinations of speed, frame size and steps to compute.
#[derive(Clone, PartialEq, Debug)]
pub struct CoresQuery {
    /// Link speeds, Gbit/s.
    pub speeds_gbit: Vec<f64>,
    /// Frame sizes, bytes with FCS.
    pub frames_bytes: Vec<f64>,
    /// Values of the column that is neither a frame size nor in `at` (`h`); the result has a row
    /// for each.
    pub steps: Vec<f64>,
    /// Values of the other columns.
    pub at: Vec<(String, f64)>,
    /// Bytes on the wire in addition to each frame; 20 on Ethernet.
    pub framing_bytes: f64,
}

impl CoresQuery {
    /// Returns the query for all default speeds and sizes at these steps.
    pub fn chart(steps: &[f64]) -> CoresQuery {
        CoresQuery {
            speeds_gbit: SPEEDS_GBIT.to_vec(),
            frames_bytes: FRAMES_BYTES.to_vec(),
            steps: steps.to_vec(),
            at: Vec::new(),
            framing_bytes: FRAMING_BYTES,
        }
    }

    /// Returns the value of a column.
    fn value(&self, name: &str, model_frame_bytes: f64, steps: f64) -> f64 {
        match self.at.iter().find(|(given, _)| given == name) {
            Some((_, value)) => *value,
            None if is_frame(name) => model_frame_bytes,
            None => steps,
        }
    }

    /// Refuses numbers out of range, and a model with a column that has no value here.
    fn check(&self, model: &Model) -> Result<(), CoresError> {
        for (what, values, least) in
            [("--size", &self.frames_bytes, f64::MIN_POSITIVE), ("--steps", &self.steps, 0.0)]
        {
            if let Some(&value) = values.iter().find(|value| !(value.is_finite() && **value >= least)) {
                return Err(CoresError::Range { what, value });
            }
        }
        if !(self.framing_bytes.is_finite() && self.framing_bytes >= 0.0) {
            return Err(CoresError::Framing { bytes: self.framing_bytes });
        }
        let columns = model.terms.columns();
        if let Some((name, _)) = self.at.iter().find(|(name, _)| !columns.contains(name.as_str())) {
            let have = columns.into_iter().collect::<Vec<_>>().join(", ");
            return Err(CoresError::NoColumn { name: name.clone(), have });
        }
        let is_given = |name: &str| self.at.iter().any(|(given, _)| given == name);
        let steps: Vec<&str> =
            columns.iter().copied().filter(|name| !is_frame(name) && !is_given(name)).collect();
        if steps.len() > 1 {
            return Err(CoresError::Unclear { columns: steps.join(", ") });
        }
        Ok(())
    }
}

/// Why there is no result.
#[derive(Clone, PartialEq, Debug, Error)]
#[non_exhaustive]
pub enum CoresError {
    /// The model gives no value.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// More than one column could be the steps.
    #[error(
        "several columns could be the steps ({columns}): give all but one a value (--point COLUMN=VALUE, such as cores=1)"
    )]
    Unclear {
        /// The columns.
        columns: String,
    },
    /// A frame size or number of steps that cannot be.
    #[error("{what} {value}: must be a finite number, not negative")]
    Range {
        /// The option.
        what: &'static str,
        /// Its value.
        value: f64,
    },
    /// Bytes on the wire that cannot be.
    #[error("--framing {bytes}: must not be negative")]
    Framing {
        /// The bytes.
        bytes: f64,
    },
    /// A value for a column that the model does not have.
    #[error("--point {name}: the model has no such column (have: {have})")]
    NoColumn {
        /// The name.
        name: String,
        /// The model's columns.
        have: String,
    },
}

/// One row of the result.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct CoreCount {
    /// Link speed, Gbit/s.
    pub gbit_per_s: f64,
    /// Frame size, bytes with FCS.
    pub frame_bytes: f64,
    /// Frame size as the model counts it, bytes.
    pub model_frame_bytes: f64,
    /// Frame size on the wire, bytes.
    pub wire_bytes: f64,
    /// Steps per packet.
    pub steps: f64,
    /// Most packets/s that the wire carries.
    pub packets_per_s: f64,
    /// Time that a packet costs one core, ns.
    pub ns_per_packet: Estimate,
    /// Cores busy at that rate.
    pub cores: Estimate,
    /// Whole cores that suffice at the upper end of the interval.
    pub whole_cores: u64,
}

/// Returns the packets/s of `frame_bytes` (with FCS) and `framing_bytes` that a wire of `gbit`
/// carries.
pub fn wire_rate(gbit: f64, frame_bytes: f64, framing_bytes: f64) -> f64 {
    gbit * 1e9 / (8.0 * (frame_bytes + framing_bytes))
}

/// Computes the cores that each combination of `query` needs. y of `model` must be a time. Its
/// terms may use a frame size, one other column, and the columns that `query` gives a value.
///
/// # Errors
/// [`CoresError`] when the model's y is not a time, its cost is not above zero, or a column has no
/// value.
pub fn cores(model: &Model, query: &CoresQuery) -> Result<Vec<CoreCount>, CoresError> {
    query.check(model)?;
    let unit = model.seconds_per_unit.ok_or(ModelError::NoTime)?;
    let mut rows = Vec::new();
    for &gbit_per_s in &query.speeds_gbit {
        for &frame_bytes in &query.frames_bytes {
            for &steps in &query.steps {
                let model_frame_bytes = in_model(model, frame_bytes);
                let mean = model.predict(|name| Some(query.value(name, model_frame_bytes, steps)))?.mean;
                if mean.value <= 0.0 {
                    return Err(ModelError::NotPositive { cost: mean.value }.into());
                }
                let packets_per_s = wire_rate(gbit_per_s, frame_bytes, query.framing_bytes);
                let cores = mean.map(|t| t.max(0.0) * unit * packets_per_s);
                rows.push(CoreCount {
                    gbit_per_s,
                    frame_bytes,
                    model_frame_bytes,
                    wire_bytes: frame_bytes + query.framing_bytes,
                    steps,
                    packets_per_s,
                    ns_per_packet: mean.map(|t| t * unit * 1e9),
                    cores,
                    whole_cores: cores.high.ceil() as u64,
                });
            }
        }
    }
    Ok(rows)
}

/// Converts a size with FCS to a size as the model counts it.
fn in_model(model: &Model, frame_bytes: f64) -> f64 {
    frame_bytes - model.frame(frame_bytes).fcs.missing_bytes()
}

/// Lists reasons to doubt the result.
pub fn warnings(model: &Model, query: &CoresQuery) -> Vec<String> {
    let mut warnings: BTreeSet<String> = BTreeSet::new();
    for &frame_bytes in &query.frames_bytes {
        if frame_bytes < ETHERNET_MIN {
            warnings.insert(format!(
                "a frame of {frame_bytes} bytes is shorter than Ethernet's shortest, {ETHERNET_MIN} with FCS"
            ));
        }
        let frame = in_model(model, frame_bytes);
        for &steps in &query.steps {
            warnings.extend(model.extrapolations(|name| Some(query.value(name, frame, steps))));
        }
    }
    warnings.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fcs::Fcs;
    use crate::model::Range;
    use crate::publications::netcope;

    #[test]
    fn netcope_2017_chart_comes_out_with_framing() {
        let model = netcope::model();
        let query = CoresQuery {
            speeds_gbit: vec![100.0],
            frames_bytes: vec![64.0],
            ..CoresQuery::chart(&[0.0, 10.0, 20.0, 50.0, 100.0])
        };
        let rows = cores(&model, &query).expect("a time");
        let ours: Vec<f64> = rows.iter().map(|r| (r.cores.value * 100.0).round() / 100.0).collect();
        assert_eq!(ours, [6.71, 12.76, 18.82, 36.99, 67.27]);
        assert_eq!(rows[0].whole_cores, 7);
        assert!((1e9 / rows[0].packets_per_s - 6.72).abs() < 1e-9);
    }

    #[test]
    fn every_speed_and_size_is_answered_and_scales_with_the_speed() {
        let rows = cores(&netcope::model(), &CoresQuery::chart(&[0.0])).expect("a time");
        assert_eq!(rows.len(), SPEEDS_GBIT.len() * FRAMES_BYTES.len());
        let at =
            |gbit: f64| rows.iter().find(|r| r.gbit_per_s == gbit && r.frame_bytes == 1518.0).expect("a row");
        assert!((at(800.0).cores.value / at(10.0).cores.value - 80.0).abs() < 1e-9);
    }

    #[test]
    fn a_model_of_sizes_without_fcs_gets_four_bytes_less_and_the_wire_gets_all() {
        let query =
            CoresQuery { speeds_gbit: vec![10.0], frames_bytes: vec![64.0], ..CoresQuery::chart(&[0.0]) };
        let with = netcope::model();
        let without = Model { fcs: Some(Fcs::Without), ..with.clone() };
        let [row, other] = [&with, &without].map(|model| cores(model, &query).expect("a time")[0]);
        assert_eq!((row.model_frame_bytes, other.model_frame_bytes), (64.0, 60.0));
        assert_eq!((row.wire_bytes, other.wire_bytes), (84.0, 84.0));
        assert_eq!(row.packets_per_s, other.packets_per_s);
        assert!((row.ns_per_packet.value - other.ns_per_packet.value - 4.0 * netcope::P_NS).abs() < 1e-9);
    }

    #[test]
    fn sizes_and_steps_beyond_what_was_fitted_are_warned_of_once_each() {
        let range = |low, high| Range { low, high };
        let ranges = [("p".to_owned(), range(60.0, 512.0)), ("h".to_owned(), range(0.0, 20.0))];
        let model = Model { fcs: Some(Fcs::Without), ranges: ranges.into(), ..netcope::model() };
        let query = CoresQuery { frames_bytes: vec![64.0, 516.0], ..CoresQuery::chart(&[0.0, 20.0]) };
        assert_eq!(warnings(&model, &query), Vec::<String>::new());
        let query = CoresQuery { frames_bytes: vec![64.0, 1518.0], ..CoresQuery::chart(&[0.0, 50.0]) };
        let found = warnings(&model, &query);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("extrapolation: h = 50 lies outside 0 … 20"), "{found:?}");
        assert!(found[1].starts_with("extrapolation: p = 1514 lies outside 60 … 512"), "{found:?}");
    }

    #[test]
    fn a_model_whose_y_is_no_time_is_refused() {
        let model = Model { seconds_per_unit: None, ..netcope::model() };
        assert_eq!(cores(&model, &CoresQuery::chart(&[0.0])), Err(ModelError::NoTime.into()));
    }

    #[test]
    fn steps_are_one_column_and_the_others_get_values_of_their_own() {
        let terms = "const,p,h,cores".parse().expect("terms");
        let model = Model::from_constants(terms, &[38.6, 0.101, 4.07, 1000.0], 1e-9).expect("constants");
        let query = CoresQuery { frames_bytes: vec![64.0], ..CoresQuery::chart(&[10.0]) };
        let error = cores(&model, &query).unwrap_err().to_string();
        assert!(error.starts_with("several columns could be the steps (cores, h)"), "{error}");
        let given = CoresQuery { at: vec![("cores".to_owned(), 2.0)], ..query.clone() };
        let ns = cores(&model, &given).expect("a time")[0].ns_per_packet.value;
        assert!((ns - (38.6 + 6.464 + 40.7 + 2000.0)).abs() < 1e-9, "{ns}");
        let wrong = CoresQuery { at: vec![("core".to_owned(), 2.0)], ..query };
        let error = cores(&model, &wrong).unwrap_err().to_string();
        assert_eq!(error, "--point core: the model has no such column (have: cores, h, p)");
    }
}
