//! Tests of [`crate::fit`]: known truth, refusals, published data.

use crate::column_unit::ColumnUnit;
use crate::fit::{Fit, FitError, FitOptions, Method, Quantile, Regimes, Weighting, fit};
use crate::regime::Limit;
use crate::table::Table;
use crate::testing::normal;
use fastpath_units::Rng;
use proptest::prelude::*;

const VPP: &str = include_str!("../../data/published-vpp.csv");

fn fitted(text: &str, y: &str, terms: &str) -> Result<Fit, FitError> {
    fit(&Table::from_csv(text).expect("a table"), y, terms, &FitOptions::default())
}

/// Points of T = 38.6 + 0.101 p + 4.07 h with normal noise of standard deviation `sd`.
fn netcope(rng: &mut Rng, sd: f64) -> Table {
    let (mut p, mut h, mut t) = (Vec::new(), Vec::new(), Vec::new());
    for size in [64.0, 256.0, 1024.0, 1518.0] {
        for steps in [0.0, 10.0, 50.0] {
            p.push(size);
            h.push(steps);
            t.push(38.6 + 0.101 * size + 4.07 * steps + sd * normal(rng));
        }
    }
    Table::from_columns(&[("p", &p), ("h", &h), ("T_ns", &t)]).expect("columns")
}

#[test]
fn intervals_cover_the_truth_at_their_nominal_rate_over_ten_thousand_fits() {
    // 10 000 trials at 95 %: σ = 0.218 %, so ±0.85 % is 3.9 σ, wrong once in 10 000 runs per
    // coefficient.
    const FITS: u32 = 10_000;
    let mut rng = Rng::new(2024);
    let truth = [("const", 38.6), ("p", 0.101), ("h", 4.07)];
    let mut covered = [0u32; 4];
    for _ in 0..FITS {
        let fit = fit(&netcope(&mut rng, 2.0), "T_ns", "const,p,h", &FitOptions::default()).expect("a fit");
        for (count, (name, value)) in covered.iter_mut().zip(truth) {
            *count += u32::from(fit.coefficients[name].covers(value));
        }
        // A fresh measurement at a fresh point lies in the prediction interval as often.
        let at = |name: &str| Some(if name == "p" { 512.0 } else { 20.0 });
        let next = 38.6 + 0.101 * 512.0 + 4.07 * 20.0 + 2.0 * normal(&mut rng);
        covered[3] += u32::from(fit.model().predict(at).expect("both columns").single.covers(next));
    }
    for (i, count) in covered.iter().enumerate() {
        let rate = f64::from(*count) / f64::from(FITS);
        assert!((rate - 0.95).abs() < 0.0085, "interval {i} covers {rate}");
    }
}

#[test]
fn the_normal_quantile_is_offered_and_is_too_narrow_for_few_points() {
    let table = netcope(&mut Rng::new(1), 2.0);
    let t = fit(&table, "T_ns", "const,p,h", &FitOptions::default()).expect("a fit");
    let options = FitOptions { quantile: Quantile::Normal, ..FitOptions::default() };
    let z = fit(&table, "T_ns", "const,p,h", &options).expect("a fit");
    let width = |f: &Fit| f.coefficients["p"].high - f.coefficients["p"].low;
    // Student's t at 9 degrees of freedom is 2.262, the normal's 1.960.
    assert!((width(&t) / width(&z) - 2.2622 / 1.9600).abs() < 1e-4);
}

#[test]
fn anscombe_longley_style_reference_values_come_out() {
    // Anscombe (1973), set I: b0 3.0001, b1 0.5001, R² 0.6665, s.e. 1.1247 and 0.1179, residual
    // s.d. 1.2366.
    let text =
        "x,y\n10,8.04\n8,6.95\n13,7.58\n9,8.81\n11,8.33\n14,9.96\n6,7.24\n4,4.26\n12,10.84\n7,4.82\n5,5.68\n";
    let fit = fitted(text, "y", "const,x").expect("a fit");
    let close = |a: f64, b: f64| assert!((a - b).abs() < 6e-5, "{a} {b}");
    close(fit.coefficients["const"].value, 3.00009);
    close(fit.coefficients["x"].value, 0.50009);
    close(fit.r2, 0.66654);
    close(fit.r2_adjusted, 0.62949);
    close(fit.residual_sd, 1.23660);
    close(fit.covariance[0][0].sqrt(), 1.12475);
    close(fit.covariance[1][1].sqrt(), 0.11791);
}

#[test]
fn leave_one_out_by_the_hat_matrix_equals_fitting_without_each_point() {
    let table = netcope(&mut Rng::new(3), 3.0);
    let all = fit(&table, "T_ns", "const,p,h", &FitOptions::default()).expect("a fit");
    let (p, h) = (table.numbers("p").expect("p"), table.numbers("h").expect("h"));
    for (i, point) in all.points.iter().enumerate() {
        let rest: Vec<usize> = (0..table.len()).filter(|&j| j != i).collect();
        let without = fit(&table.keep(&rest), "T_ns", "const,p,h", &FitOptions::default()).expect("a fit");
        let at = |name: &str| Some(if name == "p" { p[i] } else { h[i] });
        let predicted = without.model().predict(at).expect("both columns").mean.value;
        let error = 100.0 * (point.measured - predicted) / point.measured;
        assert!((error - point.loo_pct.expect("no point is alone")).abs() < 1e-8);
    }
}

#[test]
fn too_few_points_and_dependent_terms_are_refused_with_the_reason() {
    let error = |text: &str, terms: &str| fitted(text, "T_ns", terms).unwrap_err().to_string();
    assert_eq!(
        error("p,T_ns\n64,1\n128,2\n", "const,p"),
        "2 points are too few to fit 2 terms with an error bar: measure 3 or more, or omit terms"
    );
    assert_eq!(
        error("p,h,T_ns\n1,2,3\n2,4,5\n3,6,6\n4,8,9\n", "const,p,h"),
        "term `h` cannot be separated from `p` in these 4 points: vary it on its own, or omit it"
    );
    assert_eq!(
        error("p,T_ns\n64,3\n64,5\n64,6\n", "const,p"),
        "term `p` cannot be separated from `const` in these 3 points: vary it on its own, or omit it"
    );
    assert_eq!(
        error("p,h,T_ns\n1,0,3\n2,0,5\n3,0,6\n4,0,9\n", "const,p,h"),
        "term `h` is 0 in every point: measure with another value, or omit it"
    );
    assert!(error("p,T_ns\n1,0\n2,2\n3,3\n", "p").starts_with("line 2: y = 0, but a cost is above zero"));
    assert!(error("p,T_ns\n1,-1\n2,2\n3,3\n", "p").starts_with("line 2, column `T_ns`: -1 is negative"));
    assert!(error("p,T_ns\n1,nan\n2,2\n3,3\n", "p").contains("`nan` is not a finite number"));
    assert!(error("p_us,T_ns\n1,1\n2,2\n3,3\n", "p_us").contains("units are mixed"));
    let level = FitOptions { level: 95.0, ..FitOptions::default() };
    assert!(fit(&netcope(&mut Rng::new(1), 1.0), "T_ns", "p", &level).is_err());
}

#[test]
fn a_column_named_like_a_quotient_is_a_column() {
    let fit = fitted("cores,packets/s\n1,10\n2,21\n3,29\n4,41\n", "packets/s", "const,cores").expect("a fit");
    assert!((fit.coefficients["cores"].value - 10.1).abs() < 1e-9, "{:?}", fit.coefficients);
}

#[test]
fn a_square_is_a_term_like_any_other() {
    let fit = fitted("h,T_ns\n0,1\n1,4.1\n2,8.9\n3,16\n4,25.1\n", "T_ns", "const,h,h*h").expect("a fit");
    assert!((fit.coefficients["h*h"].value - 1.0).abs() < 0.05, "{:?}", fit.coefficients);
}

#[test]
fn near_collinear_terms_are_fitted_with_a_warning() {
    let text = "p,h,T_ns\n1,1.01,3.1\n2,2.0,5.2\n3,3.02,6.1\n4,3.99,9.0\n5,5.0,11.2\n6,6.01,12.8\n";
    let fit = fitted(text, "T_ns", "const,p,h").expect("just solvable");
    assert!(fit.vif["p"] > 1000.0);
    assert!(fit.warnings.iter().any(|w| w.starts_with("collinear")), "{:?}", fit.warnings);
    let clean = fit_of(&netcope(&mut Rng::new(1), 1.0), FitOptions::default());
    assert!(clean.warnings.is_empty(), "{:?}", clean.warnings);
}

fn fit_of(table: &Table, options: FitOptions) -> Fit {
    fit(table, "T_ns", "const,p,h", &options).expect("a fit")
}

#[test]
fn a_point_disturbed_tenfold_moves_least_squares_but_not_huber() {
    let mut text = "p,h,T_ns\n".to_owned();
    for p in [64.0, 128.0, 512.0, 1024.0, 1518.0] {
        for h in [0.0, 10.0, 20.0, 40.0] {
            let wiggle = if (p as u64 / 64 + h as u64 / 10).is_multiple_of(2) { 0.1 } else { -0.1 };
            let t = 38.6 + 0.101 * p + 4.07 * h + wiggle;
            text += &format!("{p},{h},{}\n", if p == 512.0 && h == 20.0 { t * 10.0 } else { t });
        }
    }
    let table = Table::from_csv(&text).expect("a table");
    let plain = fit_of(&table, FitOptions::default());
    let robust = fit_of(&table, FitOptions { method: Method::Huber, ..FitOptions::default() });
    assert!((plain.coefficients["const"].value - 38.6).abs() > 20.0);
    assert!((robust.coefficients["const"].value - 38.6).abs() < 0.3, "{:?}", robust.coefficients);
    assert!(robust.coefficients["const"].covers(38.6) && robust.coefficients["h"].covers(4.07));
    assert!(robust.warnings.iter().any(|w| w.contains("1 outlying points")), "{:?}", robust.warnings);
    // A grid's columns do not inflate each other, whatever its points count.
    assert_eq!(robust.vif, plain.vif);
    assert!(robust.vif.values().all(|vif| (vif - 1.0).abs() < 1e-9), "{:?}", robust.vif);
}

#[test]
fn a_unit_that_contradicts_the_columns_is_refused() {
    let given = |y: &str, text: &str, unit: &str| {
        let y_unit = ColumnUnit::parse(unit);
        assert!(y_unit.is_some(), "{unit}");
        let options = FitOptions { y_unit, ..FitOptions::default() };
        fit(&Table::from_csv(text).expect("a table"), y, "const,p", &options).map(|fit| fit.seconds_per_unit)
    };
    let times = |name: &str, unit: &str| format!("p,{name}\n1,2{unit}\n2,3{unit}\n3,5{unit}\n");
    for (name, cells, unit) in [("T_ns", "", "us"), ("T_ns", "", "cycles"), ("T", "ns", "us")] {
        let error = given(name, &times(name, cells), unit).unwrap_err();
        assert!(matches!(error, FitError::OtherUnit { .. }), "{name} {cells} {unit}: {error}");
    }
    let rates = "p,cores,mpps\n1,1,2\n2,1,3\n3,1,5\n";
    assert!(matches!(given("cores/mpps", rates, "ns"), Err(FitError::OtherUnit { .. })));
    assert_eq!(given("cores/mpps", rates, "us"), Ok(Some(1e-6)));
    assert_eq!(given("T_ns", &times("T_ns", ""), "ns"), Ok(Some(1e-9)));
    assert_eq!(given("T", &times("T", ""), "us"), Ok(Some(1e-6)));
}

#[test]
fn a_saved_fit_takes_the_unit_it_lacks_and_no_other_than_it_has() {
    let fitted = |name: &str| {
        let table = Table::from_csv(&format!("p,{name}\n1,2\n2,3\n3,5\n")).expect("a table");
        fit(&table, name, "const,p", &FitOptions::default()).expect("a fit")
    };
    let unit = |text: &str| ColumnUnit::parse(text).expect("a unit");
    let with =
        |name: &str, text: &str| fitted(name).with_unit(unit(text), None).map(|fit| fit.seconds_per_unit);
    assert_eq!(with("T", "us"), Ok(Some(1e-6)));
    assert_eq!(with("T", "cycles"), Ok(None));
    assert_eq!(with("T_ns", "ns"), Ok(Some(1e-9)));
    assert_eq!(with("T_cycles", "cycles"), Ok(None));
    for (name, other) in [("T_ns", "us"), ("T_ns", "cycles"), ("T_cycles", "ns")] {
        assert!(matches!(with(name, other), Err(FitError::OtherUnit { .. })), "{name} {other}");
    }
}

#[test]
fn a_fit_that_explains_nothing_says_so_first() {
    let text = "p,jumble,T_ns\n64,a,900\n128,b,10\n256,c,700\n512,d,12\n1024,e,950\n1518,f,11\n";
    let poor = fitted(text, "T_ns", "const,p").expect("a fit");
    assert!(poor.is_poor() && poor.r2 < 0.1, "{}", poor.r2);
    assert!(poor.warnings[0].starts_with("poor fit: the terms explain"), "{:?}", poor.warnings);
    assert!(!fit_of(&netcope(&mut Rng::new(1), 1.0), FitOptions::default()).is_poor());
    // R² of a constant alone is 0, which is correct.
    let constant = fitted("p,T_ns\n64,10\n128,10.2\n256,9.9\n", "T_ns", "const").expect("a fit");
    assert!(!constant.is_poor() && constant.r2 < 1e-9, "{:?}", constant.warnings);
}

#[test]
fn a_clock_converts_cycles_to_time() {
    let table =
        |name: &str| Table::from_csv(&format!("p,{name}\n64,200\n512,300\n1518,500\n")).expect("a table");
    let unit = ColumnUnit::parse("cycles");
    let fitted = |name: &str, y_unit, clock_hz| {
        let options = FitOptions { y_unit, clock_hz, ..FitOptions::default() };
        fit(&table(name), name, "const,p", &options).expect("a fit")
    };
    assert_eq!(fitted("T_cycles", None, None).seconds_per_unit, None);
    assert_eq!(fitted("T_cycles", None, Some(2e9)).seconds_per_unit, Some(0.5e-9));
    assert_eq!(fitted("T", unit, Some(2e9)).seconds_per_unit, Some(0.5e-9));
    assert_eq!(fitted("T_ns", None, Some(2e9)).seconds_per_unit, Some(1e-9), "a time needs no clock");
    let saved = fitted("T", unit, None);
    assert_eq!(saved.seconds_per_unit, None);
    let saved = saved.with_unit(unit.expect("a unit"), Some(4e9)).expect("the same unit");
    assert_eq!(saved.seconds_per_unit, Some(0.25e-9));
    assert_eq!(fitted("T_cycles", None, None).with_clock(4e9).seconds_per_unit, Some(0.25e-9));
    let saved = serde_json::to_string(&fitted("T", unit, None)).expect("serialisable");
    let read: Fit = serde_json::from_str(&saved).expect("a fit");
    assert_eq!(read.with_clock(4e9).seconds_per_unit, Some(0.25e-9), "a saved fit keeps its unit");
}

#[test]
fn huber_intervals_cover_under_normal_errors() {
    // 2000 trials; the asymptotic covariance with 12 points and 9 degrees of freedom is allowed 92
    // … 97 %.
    let mut rng = Rng::new(5);
    let options = FitOptions { method: Method::Huber, ..FitOptions::default() };
    let covered = (0..2000)
        .filter(|_| fit_of(&netcope(&mut rng, 2.0), options.clone()).coefficients["h"].covers(4.07))
        .count();
    assert!((1840..=1940).contains(&covered), "{covered} of 2000");
}

#[test]
fn weights_count_a_point_as_often_as_repeating_it() {
    let once = "p,h,T_ns,w\n1,0,3,1\n2,1,5,3\n3,0,6,2\n4,2,9,1\n5,1,8,1\n";
    let repeated = "p,h,T_ns\n1,0,3\n2,1,5\n2,1,5\n2,1,5\n3,0,6\n3,0,6\n4,2,9\n5,1,8\n";
    let options = FitOptions { weighting: Weighting::Column("w".to_owned()), ..FitOptions::default() };
    let weighted = fit_of(&Table::from_csv(once).expect("a table"), options);
    let plain = fit_of(&Table::from_csv(repeated).expect("a table"), FitOptions::default());
    for name in ["const", "p", "h"] {
        assert!((weighted.coefficients[name].value - plain.coefficients[name].value).abs() < 1e-12, "{name}");
    }
}

#[test]
fn the_published_vpp_data_is_fitted_where_the_processor_is_the_limit() {
    let table = Table::from_csv(VPP).expect("a table");
    let only = |text: &str| {
        let only = vec![("forwarding".to_owned(), text.to_owned())];
        FitOptions { only, ..FitOptions::default() }
    };
    let y = "cores/packets_per_second_both_directions";
    assert!(fit(&table, y, "const", &only("ip6")).is_err());
    let fit = fit(&table, y, "const", &only("ip4")).expect("a fit");
    // One core forwards 9.67 Mpps (103.4 ns), two 20.52 (97.4 ns).
    let cost = fit.coefficients["const"].map(|s| s * 1e9);
    assert!((cost.value - 100.44).abs() < 0.01 && cost.covers(97.45) && cost.covers(103.42), "{cost:?}");
    assert_eq!(fit.seconds_per_unit, Some(1.0));
    let regimes: Vec<(Limit, usize)> = fit.regimes.iter().map(|r| (r.limit, r.points)).collect();
    assert_eq!(fit.regimes[0].lines, [22, 23, 28, 29]);
    assert_eq!(regimes, [(Limit::Cpu, 4), (Limit::LineRate, 14), (Limit::PacketRate, 2)]);
    assert!(
        fit.warnings.iter().any(|w| w.contains("14 at a line rate of 20 Gbit/s, 2 at a cap of")),
        "{:?}",
        fit.warnings
    );
}

#[test]
fn capped_points_alone_do_not_determine_the_cost_per_byte() {
    let table = Table::from_csv(VPP).expect("a table");
    let (y, terms) = ("cores/packets_per_second_both_directions", "const,frame_bytes");
    let split = FitOptions { regimes: Regimes::Split, ..FitOptions::default() };
    let error = fit(&table, y, terms, &split).unwrap_err().to_string();
    assert_eq!(
        error,
        "of 40 points only 6 are limited by the processor, the others by a line rate or a packet-rate cap; without those: \
         term `frame_bytes` cannot be separated from `const` in these 6 points: vary it on its own, or omit it"
    );
    let auto = fit(&table, y, terms, &FitOptions::default()).expect("all points");
    assert_eq!(auto.n, 40);
    assert!(
        auto.warnings.iter().any(|w| w.contains("describe the caps, not the processor")),
        "{:?}",
        auto.warnings
    );
}

#[test]
fn the_json_is_the_one_scripts_rely_on() {
    let fit = fit_of(&netcope(&mut Rng::new(1), 1.0), FitOptions::default());
    let json = serde_json::to_value(&fit).expect("serialisable");
    for name in ["const", "p", "h"] {
        for part in ["value", "low", "high"] {
            assert!(json["coefficients"][name][part].is_f64(), "{name}.{part}");
        }
    }
    for part in ["within_0_5_pct", "within_1_pct", "within_3_pct", "max_pct"] {
        assert!(json["residuals"][part].is_f64(), "{part}");
    }
    assert!(json["r2"].is_f64() && json["loo_median_pct"].is_f64() && json["warnings"].is_array());
    let back: Fit = serde_json::from_value(json).expect("readable");
    assert_eq!(back.model().coefficients, fit.model().coefficients);
}

proptest! {
    #[test]
    fn the_order_of_the_rows_changes_not_one_bit(seed in 0u64..1000, turn in 1usize..12) {
        let table = netcope(&mut Rng::new(seed), 2.0);
        let turned: Vec<usize> = (0..12).map(|i| (i * 5 + turn) % 12).collect();
        let a = fit_of(&table, FitOptions::default());
        let b = fit_of(&table.keep(&turned), FitOptions::default());
        prop_assert_eq!(a, b);
    }

    #[test]
    fn scaling_a_column_scales_its_coefficient(seed in 0u64..1000, scale in 0.001f64..1000.0) {
        let table = netcope(&mut Rng::new(seed), 2.0);
        let p: Vec<f64> = table.numbers("p").expect("p").iter().map(|p| p * scale).collect();
        let (h, t) = (table.numbers("h").expect("h"), table.numbers("T_ns").expect("T"));
        let scaled = Table::from_columns(&[("p", &p), ("h", &h), ("T_ns", &t)]).expect("columns");
        let (a, b) = (fit_of(&table, FitOptions::default()), fit_of(&scaled, FitOptions::default()));
        let (a, b) = (a.coefficients["p"], b.coefficients["p"].map(|x| x * scale));
        prop_assert!((a.value - b.value).abs() < 1e-9 && (a.low - b.low).abs() < 1e-9);
    }
}

/// Tables in the shapes in which testers and papers publish theirs, and what statsmodels finds in
/// them (data/foreign/golden.py).
#[test]
fn tables_of_other_tools_give_the_coefficients_and_intervals_that_statsmodels_gives() {
    let files = [
        ("ndr.csv", include_str!("../../data/foreign/ndr.csv")),
        ("testpmd.csv", include_str!("../../data/foreign/testpmd.csv")),
        ("runtime.txt", include_str!("../../data/foreign/runtime.txt")),
        ("gbit.csv", include_str!("../../data/foreign/gbit.csv")),
        ("steps.md", include_str!("../../data/foreign/steps.md")),
        ("apostrophes.csv", include_str!("../../data/foreign/apostrophes.csv")),
        ("names.csv", include_str!("../../data/foreign/names.csv")),
    ];
    let mut compared = 0;
    for line in include_str!("../../data/foreign/golden.csv").lines().skip(1) {
        let cells: Vec<&str> = line.split(';').collect();
        let [file, y, terms, term, numbers @ ..] = &cells[..] else { panic!("{line}") };
        let text = files.iter().find(|(name, _)| name == file).expect("a file").1;
        let options = FitOptions { regimes: Regimes::Off, ..FitOptions::default() };
        let found = fit(&Table::from_csv(text).expect("a table"), y, terms, &options).expect("a fit");
        let position = terms.split(',').position(|name| name == *term).expect("a term");
        let name = found.terms.iter().nth(position).expect("as many terms").text();
        let ours = found.coefficients[name];
        for (ours, theirs) in [ours.value, ours.low, ours.high].into_iter().zip(numbers) {
            let theirs: f64 = theirs.parse().expect("a number");
            assert!((ours / theirs - 1.0).abs() < 1e-6, "{file} {term}: {ours} {theirs}");
        }
        compared += 1;
    }
    assert_eq!(compared, 15);
}

#[test]
fn a_bit_rate_with_its_frame_size_is_a_time_and_a_bare_rate_is_warned_of() {
    let mut text = "Frame size (B),Throughput (Gbit/s),Cores\n".to_owned();
    for (size, cores) in [(64.0, 1.0), (256.0, 2.0), (1024.0, 1.0), (1518.0, 4.0)] {
        text += &format!("{size},{},{cores}\n", cores * 8.0 * size / (50.0 + 0.1 * size));
    }
    let found =
        fitted(&text, "Cores*Frame size (B)/Throughput (Gbit/s)", "const,Frame size (B)").expect("a fit");
    let ns = found.coefficients["const"].value * found.seconds_per_unit.expect("a time") * 1e9;
    assert!((ns - 50.0).abs() < 1e-6, "{ns}");
    let bare = fitted(&text, "Throughput (Gbit/s)", "const,Cores").expect("a fit");
    assert!(bare.warnings.iter().any(|w| w.starts_with("y is a rate; costs add up")), "{:?}", bare.warnings);
}
