//! "LINC fast path", the journal of work on a faster back end for the LINC OpenFlow switch
//! (January 2014, author not named). `docs/history/fast-path-journal.md` answers its open
//! questions.
//!
//! Recomputed: the ping latencies of three experiments (µs, both directions of ten runs), and the
//! costs of encapsulation and decapsulation by least squares.

use super::figure::{Computed, Ours, Publication, number};
use crate::Estimate;
use crate::fit::{FitOptions, Quantile, fit};
use crate::latency::mean_interval;
use crate::table::Table;

/// The document.
pub const PUBLICATION: Publication = Publication {
    short: "LINC journal 2014",
    citation: "\"LINC fast path\", journal of work on a faster back end for the LINC switch, January 2014, author not named",
    key: "001",
};

/// "LINC switch baseline latency": latency (to, from) of each run, µs.
pub const LINC_US: [(f64, f64); 10] = [
    (189.1, 218.5),
    (192.1, 215.7),
    (178.5, 223.7),
    (197.5, 210.7),
    (196.8, 209.4),
    (184.7, 209.1),
    (185.7, 224.3),
    (208.8, 219.7),
    (205.7, 227.8),
    (165.7, 220.3),
];
/// "nullx baseline latency (data as lists)", µs.
pub const NULLX_LIST_US: [(f64, f64); 10] = [
    (5.92, 6.85),
    (4.49, 10.21),
    (5.89, 10.14),
    (5.72, 9.59),
    (5.77, 10.02),
    (5.55, 9.71),
    (5.83, 9.53),
    (5.63, 10.05),
    (7.07, 8.61),
    (6.06, 7.80),
];
/// "nullx baseline latency (data as binary)", µs.
pub const NULLX_BINARY_US: [(f64, f64); 10] = [
    (2.92, 6.90),
    (5.05, 9.36),
    (3.22, 4.34),
    (3.68, 5.71),
    (4.35, 4.81),
    (3.95, 5.49),
    (3.38, 5.18),
    (3.98, 5.45),
    (3.73, 5.29),
    (2.91, 4.40),
];
/// "Packet decapsulation/encapsulation": operations per packet and the latency of a packet, µs.
pub const ENCAP_CSV: &str =
    "decap,encap,PL_us\n10,10,332.5\n5,15,441.4\n15,5,210.0\n5,5,170.9\n5,10,307.0\n10,5,198.4\n";

/// Formats `mean+/-half-width` as the journal does: normal quantile, standard deviation with n − 1.
fn interval(samples: impl Iterator<Item = f64>) -> Ours {
    let samples: Vec<f64> = samples.collect();
    let Estimate { value, high, .. } =
        mean_interval(&samples, Quantile::Normal, 0.95).expect("ten runs or twenty, all finite");
    Ours::Text(format!("{value:.3}+/-{:.3}", high - value))
}

pub(super) fn results() -> Computed {
    let table = Table::from_csv(ENCAP_CSV).expect("the table is written above");
    let found =
        fit(&table, "PL_us", "const,decap,encap", &FitOptions::default()).expect("six points, three terms");
    let mut all = vec![
        ("decap".to_owned(), number(found.coefficients["decap"].value)),
        ("encap".to_owned(), number(found.coefficients["encap"].value)),
    ];
    for (name, runs) in [("LINC", LINC_US), ("nullx-list", NULLX_LIST_US), ("nullx-bin", NULLX_BINARY_US)] {
        all.push((format!("{name}-all"), interval(runs.iter().flat_map(|r| [r.0, r.1]))));
        all.push((format!("{name}-to"), interval(runs.iter().map(|r| r.0))));
        all.push((format!("{name}-from"), interval(runs.iter().map(|r| r.1))));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_regression_has_the_expected_intercept_and_r2() {
        let table = Table::from_csv(ENCAP_CSV).expect("the table is written above");
        let found = fit(&table, "PL_us", "const,decap,encap", &FitOptions::default()).expect("a fit");
        assert!((found.coefficients["const"].value - 17.1).abs() < 0.05, "{:?}", found.coefficients);
        assert!((found.r2 - 0.99879).abs() < 5e-6, "{}", found.r2);
    }
}
