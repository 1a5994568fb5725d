//! How many cores a link needs (the whitepaper's chart): packets/s the wire can carry times the time a
//! packet costs one core.

use crate::Estimate;
use crate::model::{Model, ModelError};
use crate::regime::{FRAMING_BYTES, is_frame};
use serde::Serialize;
use std::collections::BTreeSet;

/// The Ethernet speeds asked for by default, Gbit/s.
pub const SPEEDS_GBIT: [f64; 7] = [10.0, 25.0, 40.0, 100.0, 200.0, 400.0, 800.0];
/// The frame sizes asked for by default, bytes with FCS (RFC 2544 §9.1).
pub const FRAMES_BYTES: [f64; 7] = [64.0, 128.0, 256.0, 512.0, 1024.0, 1280.0, 1518.0];

/// Ethernet's shortest frame, bytes with FCS (IEEE 802.3 §4.4.2).
const ETHERNET_LEAST: f64 = 64.0;

/// What is asked.
#[derive(Clone, PartialEq, Debug)]
pub struct Question {
    /// Link speeds, Gbit/s.
    pub speeds_gbit: Vec<f64>,
    /// Frame sizes, bytes with FCS.
    pub frames_bytes: Vec<f64>,
    /// Values of every column that is no frame size (`h`), one row of the answer each.
    pub steps: Vec<f64>,
    /// Bytes on the wire beside each frame; 20 on Ethernet.
    pub framing_bytes: f64,
}

impl Question {
    /// All speeds and sizes at these steps.
    pub fn chart(steps: &[f64]) -> Question {
        Question {
            speeds_gbit: SPEEDS_GBIT.to_vec(),
            frames_bytes: FRAMES_BYTES.to_vec(),
            steps: steps.to_vec(),
            framing_bytes: FRAMING_BYTES,
        }
    }
}

/// One row of the answer.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct CoreCount {
    /// Link speed, Gbit/s.
    pub gbit_per_s: f64,
    /// Frame size, bytes with FCS.
    pub frame_bytes: f64,
    /// The same as the model counts it.
    pub model_frame_bytes: f64,
    /// The same as line time.
    pub wire_bytes: f64,
    /// Steps per packet.
    pub steps: f64,
    /// Packets/s the wire carries at most.
    pub packets_per_s: f64,
    /// Time a packet costs one core, ns.
    pub ns_per_packet: Estimate,
    /// Cores busy at that rate.
    pub cores: Estimate,
    /// Whole cores that suffice at the upper end of the interval.
    pub whole_cores: u64,
}

/// Packets/s of `frame_bytes` (with FCS) that fit a wire of `gbit` with `framing_bytes` beside each.
pub fn wire_rate(gbit: f64, frame_bytes: f64, framing_bytes: f64) -> f64 {
    gbit * 1e9 / (8.0 * (frame_bytes + framing_bytes))
}

/// Answers `question` from `model`, whose y must be a time; terms may use a frame size and one other column.
///
/// # Errors
/// [`ModelError`] when the model's y is no time or its cost is not above zero.
pub fn cores(model: &Model, question: &Question) -> Result<Vec<CoreCount>, ModelError> {
    let unit = model.seconds_per_unit.ok_or(ModelError::NoTime)?;
    let mut rows = Vec::new();
    for &gbit_per_s in &question.speeds_gbit {
        for &frame_bytes in &question.frames_bytes {
            for &steps in &question.steps {
                let model_frame_bytes = in_model(model, frame_bytes);
                let at = |name: &str| Some(if is_frame(name) { model_frame_bytes } else { steps });
                let mean = model.predict(at)?.mean;
                if mean.value <= 0.0 {
                    return Err(ModelError::NotPositive { cost: mean.value });
                }
                let packets_per_s = wire_rate(gbit_per_s, frame_bytes, question.framing_bytes);
                let cores = mean.map(|t| t.max(0.0) * unit * packets_per_s);
                rows.push(CoreCount {
                    gbit_per_s,
                    frame_bytes,
                    model_frame_bytes,
                    wire_bytes: frame_bytes + question.framing_bytes,
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

/// A size with FCS as the model counts it.
fn in_model(model: &Model, frame_bytes: f64) -> f64 {
    frame_bytes - model.frame(frame_bytes).fcs.missing_bytes()
}

/// What the reader of the answer should know.
pub fn warnings(model: &Model, question: &Question) -> Vec<String> {
    let mut warnings: BTreeSet<String> = BTreeSet::new();
    for &frame_bytes in &question.frames_bytes {
        if frame_bytes < ETHERNET_LEAST {
            warnings.insert(format!(
                "a frame of {frame_bytes} bytes is shorter than Ethernet's shortest, {ETHERNET_LEAST} with FCS"
            ));
        }
        let frame = in_model(model, frame_bytes);
        for &steps in &question.steps {
            warnings.extend(model.extrapolations(|name| Some(if is_frame(name) { frame } else { steps })));
        }
    }
    warnings.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fcs::Fcs;
    use crate::model::Range;
    use crate::seeds::netcope;

    #[test]
    fn the_whitepaper_s_chart_comes_out_with_the_framing_right() {
        let model = netcope::model();
        let question = Question {
            speeds_gbit: vec![100.0],
            frames_bytes: vec![64.0],
            ..Question::chart(&[0.0, 10.0, 20.0, 50.0, 100.0])
        };
        let rows = cores(&model, &question).expect("a time");
        let ours: Vec<f64> = rows.iter().map(|r| (r.cores.value * 100.0).round() / 100.0).collect();
        assert_eq!(ours, [6.71, 12.76, 18.82, 36.99, 67.27]);
        assert_eq!(rows[0].whole_cores, 7);
        assert!((1e9 / rows[0].packets_per_s - 6.72).abs() < 1e-9);
    }

    #[test]
    fn every_speed_and_size_is_answered_and_scales_with_the_speed() {
        let rows = cores(&netcope::model(), &Question::chart(&[0.0])).expect("a time");
        assert_eq!(rows.len(), SPEEDS_GBIT.len() * FRAMES_BYTES.len());
        let at =
            |gbit: f64| rows.iter().find(|r| r.gbit_per_s == gbit && r.frame_bytes == 1518.0).expect("asked");
        assert!((at(800.0).cores.value / at(10.0).cores.value - 80.0).abs() < 1e-9);
    }

    #[test]
    fn a_model_of_sizes_in_memory_is_asked_four_bytes_less_and_the_wire_has_all() {
        let question =
            Question { speeds_gbit: vec![10.0], frames_bytes: vec![64.0], ..Question::chart(&[0.0]) };
        let with = netcope::model();
        let without = Model { fcs: Some(Fcs::Without), ..with.clone() };
        let [row, other] = [&with, &without].map(|model| cores(model, &question).expect("a time")[0]);
        assert_eq!((row.model_frame_bytes, other.model_frame_bytes), (64.0, 60.0));
        assert_eq!((row.wire_bytes, other.wire_bytes), (84.0, 84.0));
        assert_eq!(row.packets_per_s, other.packets_per_s);
        assert!((row.ns_per_packet.value - other.ns_per_packet.value - 4.0 * netcope::P_NS).abs() < 1e-9);
    }

    #[test]
    fn sizes_and_steps_beyond_what_was_fitted_are_told_once_each() {
        let range = |low, high| Range { low, high };
        let ranges = [("p".to_owned(), range(60.0, 512.0)), ("h".to_owned(), range(0.0, 20.0))];
        let model = Model { fcs: Some(Fcs::Without), ranges: ranges.into(), ..netcope::model() };
        let question = Question { frames_bytes: vec![64.0, 516.0], ..Question::chart(&[0.0, 20.0]) };
        assert_eq!(warnings(&model, &question), Vec::<String>::new());
        let question = Question { frames_bytes: vec![64.0, 1518.0], ..Question::chart(&[0.0, 50.0]) };
        let told = warnings(&model, &question);
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].starts_with("extrapolation: h = 50 lies outside 0 … 20"), "{told:?}");
        assert!(told[1].starts_with("extrapolation: p = 1514 lies outside 60 … 512"), "{told:?}");
    }

    #[test]
    fn a_model_that_is_no_time_is_refused() {
        let model = Model { seconds_per_unit: None, ..netcope::model() };
        assert_eq!(cores(&model, &Question::chart(&[0.0])), Err(ModelError::NoTime));
    }
}
