//! The published figures, recomputed. Each document's module holds its *inputs* (samples, cycle
//! tables, platform records) and works the figures out with this crate's own models;
//! `data/seed_figures.csv` holds what the documents print and how each figure is to be judged.
//!
//! The rules: a MATCH agrees with the printed value to its printed digits or the stated tolerance;
//! TRUNC accepts truncation or rounding; SEED-ROUND is the document's own rounding of the exact
//! value; for a SEED-ERROR the recomputed value must come out, not the printed one; DERIVED and
//! CODE print nothing to agree with, the value follows from the document's formula or program.

pub mod cavium;
pub mod linc;
pub mod linkem;
pub mod netcope;
pub mod scion;

use serde::Serialize;
use std::collections::BTreeMap;

const FIGURES: &str = include_str!("../../data/seed_figures.csv");
/// Our value also has to be the recomputed one, to this relative precision or its last printed
/// digit.
const PRINTED_RELATIVE: f64 = 2e-5;

/// How a figure is judged.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "SCREAMING-KEBAB-CASE")]
pub enum Status {
    /// Agrees with the document.
    Match,
    /// The document truncates.
    Trunc,
    /// The document is wrong.
    SeedError,
    /// The document rounds.
    SeedRound,
    /// Follows from the document's formula.
    Derived,
    /// Follows from the document's program.
    Code,
}

/// A figure of ours: a number, or several in the document's notation.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum Ours {
    /// A number.
    Number(f64),
    /// Several numbers, like `9.987 / 0.1300`.
    Text(String),
}

pub(crate) fn number(value: f64) -> Ours {
    Ours::Number(value)
}

/// One figure: the document's and ours.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SeedResult {
    /// Identifier of the figure.
    pub id: String,
    /// What it is, with its unit.
    pub quantity: String,
    /// As the document prints it; empty if it does not.
    pub doc_value: String,
    /// As this crate computes it.
    pub ours: Ours,
    /// How far the two may differ.
    pub tolerance: f64,
    /// How it is judged.
    pub status: Status,
    /// Whether it passes.
    pub pass: bool,
    /// What is to be known about it.
    pub note: String,
}

#[derive(serde::Deserialize)]
struct Figure {
    id: String,
    quantity: String,
    doc_value: String,
    recomputed: String,
    tolerance: f64,
    status: String,
    note: String,
}

/// Every figure of `data/seed_figures.csv` in its order, recomputed and judged.
pub fn results() -> Vec<SeedResult> {
    let mut computed: BTreeMap<String, Ours> =
        [scion::results(), netcope::results(), cavium::results(), linkem::results(), linc::results()]
            .into_iter()
            .flatten()
            .collect();
    let mut reader = csv::Reader::from_reader(FIGURES.as_bytes());
    let figures =
        reader.deserialize::<Figure>().map(|figure| figure.expect("the file is part of this crate"));
    figures
        .map(|figure| {
            let ours = computed.remove(&figure.id).unwrap_or_else(|| panic!("{} is not computed", figure.id));
            judge(figure, ours)
        })
        .collect()
}

fn judge(figure: Figure, ours: Ours) -> SeedResult {
    let status = match figure.status.as_str() {
        "MATCH" => Status::Match,
        "TRUNC" => Status::Trunc,
        "SEED-ERROR" => Status::SeedError,
        "SEED-ROUND" => Status::SeedRound,
        "DERIVED" => Status::Derived,
        "CODE" => Status::Code,
        other => panic!("{}: unknown status {other}", figure.id),
    };
    let (values, slack) = match &ours {
        Ours::Number(x) => (vec![*x], 0.51),
        // Ours is rounded for printing too, so the two may differ by a whole last digit.
        Ours::Text(text) => (numbers_of(text).into_iter().map(|(x, _)| x).collect(), 1.01),
    };
    let recomputed = numbers_of(&figure.recomputed);
    let as_recomputed = recomputed.len() == values.len()
        && recomputed.iter().zip(&values).all(|((theirs, digits), ours)| {
            let last_digit = 10f64.powi(-digits);
            let rounding = if *digits > 0 { slack * last_digit } else { 0.0 };
            (theirs - ours).abs() <= rounding.max(PRINTED_RELATIVE * theirs.abs())
        });
    let printed = numbers_of(&figure.doc_value);
    let within = printed.len() == values.len()
        && printed.iter().zip(&values).all(|((doc, digits), ours)| {
            (doc - ours).abs() <= figure.tolerance.max(0.5 * 10f64.powi(-digits)) + 1e-12
        });
    let cut = printed.len() == values.len()
        && printed.iter().zip(&values).all(|((doc, digits), ours)| {
            let unit = 10f64.powi(*digits);
            (doc - (ours * unit).trunc() / unit).abs() < 1e-9
                || (doc - (ours * unit).round() / unit).abs() < 1e-9
        });
    let agrees = match status {
        Status::Match | Status::SeedRound => within,
        Status::Trunc => within || cut,
        Status::SeedError => !within,
        Status::Derived | Status::Code => true,
    };
    SeedResult {
        id: figure.id,
        quantity: figure.quantity,
        doc_value: figure.doc_value,
        ours,
        tolerance: figure.tolerance,
        status,
        pass: agrees && as_recomputed,
        note: figure.note,
    }
}

/// The numbers of `9.987 / 0.13`, `135-165/515`, `204.2+/-7.5` or `2.2e-05`, each with its printed
/// decimals.
fn numbers_of(text: &str) -> Vec<(f64, i32)> {
    let parts: Vec<String> = match text.parse::<f64>() {
        Ok(_) => vec![text.to_owned()],
        Err(_) => text.split(['/', '+', '-', ' ']).filter(|p| !p.is_empty()).map(str::to_owned).collect(),
    };
    let decimals = |part: &str| {
        let (mantissa, exponent) = part.split_once('e').unwrap_or((part, "0"));
        let places = mantissa.split_once('.').map_or(0, |(_, tail)| tail.len() as i32);
        places - exponent.parse::<i32>().unwrap_or(0)
    };
    parts.iter().filter_map(|part| Some((part.parse().ok()?, decimals(part)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_84_figures_come_out_by_their_rules() {
        let results = results();
        let failed: Vec<String> = results
            .iter()
            .filter(|r| !r.pass)
            .map(|r| {
                format!("{}: document {}, ours {:?}, tolerance {}", r.id, r.doc_value, r.ours, r.tolerance)
            })
            .collect();
        assert!(failed.is_empty(), "{}", failed.join("\n"));
        let count = |status| results.iter().filter(|r| r.status == status).count();
        let all = [
            Status::Match,
            Status::Trunc,
            Status::SeedRound,
            Status::SeedError,
            Status::Derived,
            Status::Code,
        ];
        assert_eq!(all.map(count), [63, 7, 3, 2, 6, 3]);
    }

    #[test]
    fn a_wrong_figure_fails_by_every_rule() {
        let figure = |status: &str, doc: &str| Figure {
            id: "x".to_owned(),
            quantity: String::new(),
            doc_value: doc.to_owned(),
            recomputed: "0.7578".to_owned(),
            tolerance: 0.005,
            status: status.to_owned(),
            note: String::new(),
        };
        for status in ["MATCH", "TRUNC", "SEED-ROUND", "DERIVED", "CODE"] {
            assert!(!judge(figure(status, "0.75"), number(0.77)).pass, "{status}");
        }
        assert!(judge(figure("TRUNC", "0.75"), number(0.7578)).pass);
        assert!(!judge(figure("MATCH", "0.75"), number(0.7578)).pass);
        assert!(
            !judge(figure("SEED-ERROR", "0.01"), number(0.01)).pass,
            "the document's error must not come out"
        );
        assert!(judge(figure("SEED-ERROR", "0.01"), number(0.7578)).pass);
    }

    #[test]
    fn printed_notations_are_read() {
        let values = |text| numbers_of(text).into_iter().map(|(x, _)| x).collect::<Vec<_>>();
        assert_eq!(values("135-165/515/650-680"), [135.0, 165.0, 515.0, 650.0, 680.0]);
        assert_eq!(values("204.190+/-7.547"), [204.19, 7.547]);
        assert_eq!(numbers_of("2.126e-06"), [(2.126e-6, 9)]);
        assert_eq!(numbers_of("60.006 / 0.01"), [(60.006, 3), (0.01, 2)]);
    }
}
