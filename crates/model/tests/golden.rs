//! Fits and checks of a fixed corpus, held to golden numbers: a change of structure must not change
//! a result.
//!
//! `GOLDEN_WRITE=1 cargo test -p fastpath-model --test golden` rewrites the file. Numbers are
//! kept to 11 digits, because logarithms differ in the last bit between C libraries.

use fastpath_model::Table;
use fastpath_model::check::{check, half};
use fastpath_model::fit::{Fit, FitOptions, Method, Quantile, Regimes, Weighting, fit};
use fastpath_units::Rng;
use std::fmt::Write;

const VPP: &str = include_str!("../data/published-vpp.csv");
const NDR: &str = include_str!("../data/foreign/ndr.csv");
const GOLDEN: &str = include_str!("../data/golden-fits.txt");

/// T = 38.6 + 0.101 p + 4.07 h with a bend at 256 bytes, 0.5 % of noise, weights, and two classes.
fn grid(seed: u64, bend: f64) -> Table {
    let mut rng = Rng::new(seed);
    let mut text = "class,p,h,w,T_ns\n".to_owned();
    for p in [64.0, 128.0, 256.0, 512.0, 1024.0, 1518.0] {
        for h in [0.0, 5.0, 10.0, 20.0, 50.0] {
            let noise = 1.0 + 0.01 * (rng.unit_f64() - 0.5);
            let t = (38.6 + 0.101 * p - bend * f64::max(p - 256.0, 0.0) + 4.07 * h) * noise;
            let class = if h > 5.0 { "long" } else { "short" };
            let _ = writeln!(text, "{class},{p},{h},{},{t}", 1.0 + rng.unit_f64());
        }
    }
    Table::from_csv(&text).expect("a table")
}

/// A processor of 60 ns + 0.02 ns per byte behind 40 Gbit/s, and a row with a word.
fn behind_a_line() -> Table {
    let mut text = "frame_bytes,cores,mpps\n".to_owned();
    for (i, bytes) in
        [64, 96, 128, 160, 192, 224, 256, 288, 512, 768, 1024, 1280, 1518].into_iter().enumerate()
    {
        let cost_ns = (60.0 + 0.02 * f64::from(bytes)) * (1.0 + 0.001 * f64::from(i as u32 % 3));
        let _ = writeln!(text, "{bytes},1,{}", 1e3 / cost_ns.max(0.2 * f64::from(bytes + 20)));
    }
    text += "IMIX,1,9.5\njumbo,1,0.5\n";
    Table::from_csv(&text).expect("a table")
}

fn number(x: f64) -> String {
    if std::env::var_os("GOLDEN_EXACT").is_some() { format!("{x:?}") } else { format!("{x:.10e}") }
}

fn describe(found: &Fit) -> String {
    let mut text = format!("{} = {} n {} df {}", found.y, found.terms, found.n, found.degrees_of_freedom);
    for (term, c) in &found.coefficients {
        let _ = write!(text, "\n  {term} {} {} {}", number(c.value), number(c.low), number(c.high));
    }
    for (name, x) in [
        ("r2", found.r2),
        ("r2_adjusted", found.r2_adjusted),
        ("loo_median_pct", found.loo_median_pct),
        ("residual_sd", found.residual_sd),
        ("condition", found.condition),
        ("max_pct", found.residuals.max_pct),
        ("vif", found.vif.values().sum()),
        ("covariance", found.covariance.iter().flatten().sum()),
        (
            "points",
            found
                .points
                .iter()
                .map(|p| p.fitted * p.weight + p.residual_pct + p.loo_pct.unwrap_or(0.0))
                .sum(),
        ),
    ] {
        let _ = write!(text, "\n  {name} {}", number(x));
    }
    let _ = write!(
        text,
        "\n  seconds {:?} fcs {:?} ranges {:?}",
        found.seconds_per_unit, found.fcs, found.ranges
    );
    for regime in &found.regimes {
        let _ = write!(text, "\n  regime {:?} {:?} {:?}", regime.limit, regime.rate, regime.lines);
    }
    text
}

fn corpus() -> String {
    let base = FitOptions::default();
    let relative = FitOptions { weighting: Weighting::Relative, ..base.clone() };
    let options = [
        ("plain", base.clone()),
        ("relative", relative.clone()),
        ("weighted", FitOptions { weighting: Weighting::Column("w".to_owned()), ..base.clone() }),
        ("huber", FitOptions { method: Method::Huber, ..base.clone() }),
        ("normal", FitOptions { quantile: Quantile::Normal, level: 0.9, ..base.clone() }),
        ("only", FitOptions { only: vec![("class".to_owned(), "long".to_owned())], ..base.clone() }),
    ];
    let mut text = String::new();
    let mut add = |name: &str, result: Result<String, String>| {
        let _ = match result {
            Ok(found) => writeln!(text, "{name}: {found}"),
            Err(_) => writeln!(text, "{name}: refused"),
        };
    };
    let bent = grid(7, 0.08);
    for (name, options) in &options {
        for terms in ["const,p,h", "const,p,h,p*h", "auto:p,h"] {
            let found = fit(&bent, "T_ns", terms, options).map_err(|e| e.to_string());
            add(&format!("{name} {terms}"), found.as_ref().map(describe).map_err(Clone::clone));
            let halved = half(&bent, "T_ns", terms, options).map_err(|e| e.to_string());
            add(
                &format!("{name} {terms} half"),
                halved.map(|(found, check)| format!("{}\n  check {check:?}", describe(&found))),
            );
            if let Ok(found) = found {
                let checked = check(&found, &grid(8, 0.08), options).map_err(|e| e.to_string());
                add(&format!("{name} {terms} check"), checked.map(|check| format!("{check:?}")));
            }
        }
    }
    let y = "cores/packets_per_second_both_directions";
    for regimes in [Regimes::Auto, Regimes::Split, Regimes::Off] {
        let options = FitOptions { regimes, ..base.clone() };
        for terms in ["const", "const,frame_bytes", "auto:frame_bytes"] {
            let found = fit(&Table::from_csv(VPP).expect("a table"), y, terms, &options);
            add(&format!("vpp {regimes:?} {terms}"), found.map(|f| describe(&f)).map_err(|e| e.to_string()));
        }
        for terms in ["const,frame_bytes", "auto:frame_bytes"] {
            let table = behind_a_line();
            let found = fit(&table, "cores/mpps", terms, &options).map(|f| describe(&f));
            add(&format!("line {regimes:?} {terms}"), found.map_err(|e| e.to_string()));
            let halved = half(&table, "cores/mpps", terms, &options).map_err(|e| e.to_string());
            add(
                &format!("line {regimes:?} {terms} half"),
                halved.map(|(found, check)| format!("{}\n  check {check:?}", describe(&found))),
            );
        }
    }
    let ip4 = FitOptions { only: vec![("forwarding".to_owned(), "ip4".to_owned())], ..relative };
    let found = fit(&Table::from_csv(VPP).expect("a table"), y, "const", &ip4).map(|f| describe(&f));
    add("vpp ip4", found.map_err(|e| e.to_string()));
    let names = Table::from_csv(NDR).expect("a table").names().join("; ");
    add("ndr columns", Ok(names));
    text
}

#[test]
fn fits_and_checks_of_the_corpus_are_the_golden_ones() {
    let corpus = corpus();
    if let Some(file) = std::env::var_os("GOLDEN_WRITE") {
        let path = if file == "1" {
            concat!(env!("CARGO_MANIFEST_DIR"), "/data/golden-fits.txt").into()
        } else {
            file
        };
        std::fs::write(path, &corpus).expect("the golden file is written");
        return;
    }
    for (i, (ours, golden)) in corpus.lines().zip(GOLDEN.lines()).enumerate() {
        assert_eq!(ours, golden, "line {}", i + 1);
    }
    assert_eq!(corpus.lines().count(), GOLDEN.lines().count());
}
