//! Published figures, computed again by this crate's own models.
//!
//! Each file holds one publication: its citation, its *inputs* (samples, cycle tables, platforms)
//! and the computation. `data/published_figures.csv` holds what the documents print, the table or
//! section where they print it, and how each figure is judged. `docs/history/bibliography.md` lists
//! the publications.
//!
//! | status | rule |
//! |---|---|
//! | MATCH | agrees with the printed value to its printed digits, or within the stated tolerance |
//! | TRUNC | agrees after truncation or rounding |
//! | ROUNDED-IN-SOURCE | the document rounds the exact value; agrees within the stated tolerance |
//! | ERROR-IN-SOURCE | the printed value is wrong: the recomputed one must differ from it |
//! | DERIVED | the document prints no value; it follows from the document's formula |
//! | CODE | the document prints no value; it follows from the document's program |

pub mod cavium;
mod figure;
pub mod linc;
pub mod linkem;
pub mod netcope;
pub mod scion;

pub use figure::{Ours, Publication};

use figure::Computed;
use serde::Serialize;
use std::collections::BTreeMap;

/// The publications, in the order of the keys of their figures.
pub const PUBLICATIONS: [Publication; 5] =
    [cavium::PUBLICATION, linc::PUBLICATION, scion::PUBLICATION, netcope::PUBLICATION, linkem::PUBLICATION];

const FIGURES: &str = include_str!("../../data/published_figures.csv");
/// The value must also equal the recomputed one, to this relative precision or its last printed
/// digit.
const PRINTED_RELATIVE: f64 = 2e-5;

/// The rule by which a figure is judged.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, serde::Deserialize)]
#[serde(rename_all = "SCREAMING-KEBAB-CASE")]
pub enum Status {
    /// Agrees with the document.
    Match,
    /// The document truncates.
    Trunc,
    /// The document is wrong.
    ErrorInSource,
    /// The document rounds.
    RoundedInSource,
    /// Follows from the document's formula.
    Derived,
    /// Follows from the document's program.
    Code,
}

/// One published figure: the document's value and this crate's.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PublishedFigure {
    /// Stable key of the figure: `004-T5.1-64`.
    pub id: String,
    /// The publication, as [`Publication::short`].
    pub publication: String,
    /// The table, section or heading that prints it.
    pub place: String,
    /// What it is, with its unit.
    pub quantity: String,
    /// The value as the document prints it; empty if it prints none.
    pub doc_value: String,
    /// The value as this crate computes it.
    pub ours: Ours,
    /// How far the two may differ.
    pub tolerance: f64,
    /// The rule by which it is judged.
    pub status: Status,
    /// Whether it passes.
    pub pass: bool,
    /// A remark.
    pub note: String,
}

/// A row of `data/published_figures.csv`.
#[derive(serde::Deserialize)]
struct PrintedFigure {
    id: String,
    publication: String,
    place: String,
    quantity: String,
    doc_value: String,
    recomputed: String,
    tolerance: f64,
    status: Status,
    note: String,
}

/// Computes and judges every figure of `data/published_figures.csv`, in the order of the file.
pub fn results() -> Vec<PublishedFigure> {
    let keyed = |publication: Publication, figures: Computed| {
        figures.into_iter().map(move |(id, ours)| (format!("{}-{id}", publication.key), ours))
    };
    let mut computed: BTreeMap<String, Ours> = keyed(cavium::PUBLICATION, cavium::results())
        .chain(keyed(linc::PUBLICATION, linc::results()))
        .chain(keyed(scion::PUBLICATION, scion::results()))
        .chain(keyed(netcope::PUBLICATION, netcope::results()))
        .chain(keyed(linkem::PUBLICATION, linkem::results()))
        .collect();
    let mut reader = csv::Reader::from_reader(FIGURES.as_bytes());
    let figures =
        reader.deserialize::<PrintedFigure>().map(|figure| figure.expect("the file is part of this crate"));
    figures
        .map(|figure| {
            let ours = computed.remove(&figure.id).unwrap_or_else(|| panic!("{} is not computed", figure.id));
            judge(figure, ours)
        })
        .collect()
}

fn judge(figure: PrintedFigure, ours: Ours) -> PublishedFigure {
    let (values, slack) = match &ours {
        Ours::Number(x) => (vec![*x], 0.51),
        // This value is rounded for printing too, so the two may differ by a whole last digit.
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
    let agrees = match figure.status {
        Status::Match | Status::RoundedInSource => within,
        Status::Trunc => within || cut,
        Status::ErrorInSource => !within,
        Status::Derived | Status::Code => true,
    };
    PublishedFigure {
        id: figure.id,
        publication: figure.publication,
        place: figure.place,
        quantity: figure.quantity,
        doc_value: figure.doc_value,
        ours,
        tolerance: figure.tolerance,
        status: figure.status,
        pass: agrees && as_recomputed,
        note: figure.note,
    }
}

/// Reads the numbers of `9.987 / 0.13`, `135-165/515`, `204.2+/-7.5` or `2.2e-05`, each with its
/// number of printed decimals.
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
    use super::figure::number;
    use super::*;

    #[test]
    fn all_84_figures_pass_by_their_rules() {
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
            Status::RoundedInSource,
            Status::ErrorInSource,
            Status::Derived,
            Status::Code,
        ];
        assert_eq!(all.map(count), [63, 7, 3, 2, 6, 3]);
    }

    #[test]
    fn every_figure_names_its_publication_and_where_it_is_printed() {
        for figure in results() {
            let publication = PUBLICATIONS.iter().find(|p| p.short == figure.publication);
            let publication = publication.unwrap_or_else(|| panic!("{}: no such publication", figure.id));
            assert!(figure.id.starts_with(publication.key), "{}", figure.id);
            assert!(!figure.place.is_empty() && !figure.quantity.is_empty(), "{}", figure.id);
        }
    }

    #[test]
    fn a_wrong_figure_fails_by_every_rule() {
        let figure = |status: Status, doc: &str| PrintedFigure {
            id: "x".to_owned(),
            publication: String::new(),
            place: String::new(),
            quantity: String::new(),
            doc_value: doc.to_owned(),
            recomputed: "0.7578".to_owned(),
            tolerance: 0.005,
            status,
            note: String::new(),
        };
        use Status::{Code, Derived, ErrorInSource, Match, RoundedInSource, Trunc};
        for status in [Match, Trunc, RoundedInSource, Derived, Code] {
            assert!(!judge(figure(status, "0.75"), number(0.77)).pass, "{status:?}");
        }
        assert!(judge(figure(Trunc, "0.75"), number(0.7578)).pass);
        assert!(!judge(figure(Match, "0.75"), number(0.7578)).pass);
        assert!(
            !judge(figure(ErrorInSource, "0.01"), number(0.01)).pass,
            "the document's error must not pass"
        );
        assert!(judge(figure(ErrorInSource, "0.01"), number(0.7578)).pass);
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
