//! Tests `fastpath model` and `fastpath evaluate models` as scripts use them: arguments in, JSON
//! and exit codes out.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The exact costs of Netcope 2017: T = 38.6 + 0.101·p + 4.07·h ns.
fn netcope_grid() -> String {
    let mut text = "p,h,cores,T_ns\n".to_owned();
    for p in [64, 128, 256, 512, 1024, 1518] {
        for h in [0, 10, 50] {
            // A ripple of 0.1 %, so that intervals have a width.
            let ripple = 1.0 + 0.001 * f64::from((p * 7 + h * 3) % 5 - 2);
            let t = (38.6 + 0.101 * f64::from(p) + 4.07 * f64::from(h)) * ripple;
            text += &format!("{p},{h},1,{t}\n");
        }
    }
    text
}

fn directory() -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("model");
    fs::create_dir_all(&directory).unwrap();
    directory
}

fn file(name: &str, content: &str) -> String {
    fs::write(directory().join(name), content).unwrap();
    name.to_owned()
}

fn fastpath(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fastpath")).args(words).current_dir(directory()).output().unwrap()
}

fn json(words: &[&str]) -> Value {
    let output = fastpath(words);
    assert_eq!(output.status.code(), Some(0), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

/// Runs a command that must be refused; returns its single line of output.
fn refusal(words: &[&str]) -> String {
    let output = fastpath(words);
    assert_eq!(output.status.code(), Some(2), "{words:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.starts_with("fastpath: ") && output.stdout.is_empty(), "{said}");
    said
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

fn assert_interval(value: &Value, truth: f64) {
    let [low, middle, high] = ["low", "value", "high"].map(|key| number(&value[key]));
    assert!(low <= middle && middle <= high, "{value}");
    assert!(low <= truth && truth <= high, "{value} and {truth}");
}

const FIT: [&str; 4] = ["--y", "T_ns", "--terms", "const,p,h"];

#[test]
fn a_fit_prints_the_keys_that_scripts_rely_on() {
    let table = file("grid.csv", &netcope_grid());
    let found = json(&[&["model", "fit", &table][..], &FIT, &["--json"]].concat());
    for (term, truth) in [("const", 38.6), ("p", 0.101), ("h", 4.07)] {
        assert_interval(&found["coefficients"][term], truth);
    }
    assert!(number(&found["r2"]) > 0.9999);
    for key in ["within_0_5_pct", "within_1_pct", "within_3_pct", "max_pct"] {
        assert!(found["residuals"][key].is_number(), "{key}");
    }
    assert!(number(&found["loo_median_pct"]) < 0.5);
    assert!(found["warnings"].is_array());
}

#[test]
fn half_of_a_grid_predicts_the_other_half() {
    let table = file("half.csv", &netcope_grid());
    let found = json(&[&["model", "fit", &table][..], &FIT, &["--half", "--json"]].concat());
    assert_eq!(found["n"], 9);
    assert_eq!(found["check"]["n"], 9);
    assert!(number(&found["check"]["median_pct"]) <= 1.0, "{}", found["check"]);
}

#[test]
fn a_check_that_misses_exits_with_1_and_one_of_noisy_points_with_2() {
    let wrong: String = netcope_grid().lines().enumerate().fold(String::new(), |text, (i, line)| {
        // A step that no term explains.
        let is_far = i > 0 && line.starts_with("512");
        let line = if is_far { line.replace(",1,", ",1,9") } else { line.to_owned() };
        text + &line + "\n"
    });
    let table = file("misses.csv", &wrong);
    let output = fastpath(&[&["model", "fit", &table][..], &FIT, &["--half", "--json"]].concat());
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["check"]["verdict"], "misses");
    let noisy = wrong.replace("T_ns", "T_ns,spread_pct").replace('\n', ",40\n").replace("pct,40", "pct");
    let table = file("noisy.csv", &noisy);
    let output = fastpath(&[&["model", "fit", &table][..], &FIT, &["--half", "--json"]].concat());
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("too noisy to tell"));
}

#[test]
fn extrapolation_is_reported_in_text_and_json() {
    let table = file("far.csv", &netcope_grid());
    let words = ["model", "predict", &table, "--point", "p=9000,h=10"];
    let found = json(&[&words[..], &FIT, &["--json"]].concat());
    let warnings = found["predictions"][0]["warnings"].to_string();
    assert!(warnings.contains("p = 9000 lies outside 64 … 1518"), "{warnings}");
    let said = String::from_utf8(fastpath(&[&words[..], &FIT].concat()).stdout).unwrap();
    assert!(said.contains("note: extrapolation: p = 9000"), "{said}");
    let inside = json(&[&words[..4], &["p=1000,h=10", "--json"], &FIT].concat());
    assert_eq!(inside["predictions"][0]["warnings"].as_array().map(Vec::len), Some(0), "{inside}");
}

#[test]
fn a_saved_fit_predicts_points_throughput_and_cores() {
    let table = file("saved.csv", &netcope_grid());
    let output = fastpath(&[&["model", "fit", &table][..], &FIT, &["--json"]].concat());
    let saved = String::from_utf8(output.stdout).unwrap();
    let fit = file("saved.json", &saved);
    let found = json(&[
        "model",
        "predict",
        &fit,
        "--point",
        "p=64,h=10",
        "--point",
        "p=1518,h=0",
        "--cores",
        "8",
        "--line",
        "100Gbit",
        "--json",
    ]);
    let [small, large] = [0, 1].map(|i| &found["predictions"][i]);
    assert_interval(&small["y"], 85.764);
    assert_interval(&small["ns_per_packet"], 85.764);
    assert_eq!(small["limit"], "cpu");
    assert_eq!(large["limit"], "line-rate");
    assert!((number(&large["throughput_pps"]["value"]) - 8_127_438.0).abs() < 1.0);
    let cores =
        json(&["model", "cores", &fit, "--speeds", "100", "--frames", "64", "--steps", "0,100", "--json"]);
    assert_interval(&cores["rows"][0]["cores"], 6.706);
    assert_interval(&cores["rows"][1]["cores"], 67.27);
    let other = refusal(&["model", "predict", &fit, "--point", "p=64,h=10", "--y-unit", "us"]);
    assert!(other.contains("saved.json: y = `T_ns` has another unit"), "{other}");
    let bare = file("bare.json", &saved.replace("1e-9", "null").replace("T_ns", "T"));
    let words = ["model", "predict", &bare, "--point", "p=64,h=10", "--json"];
    assert!(json(&words)["predictions"][0].get("throughput_pps").is_none());
    let known = json(&[&words[..], &["--y-unit", "ns"]].concat());
    assert_interval(&known["predictions"][0]["ns_per_packet"], 85.764);
}

#[test]
fn cores_are_computed_at_given_values_of_columns_other_than_steps() {
    let constants = "const=38.6,p=0.101,h=4.07,cores=1000";
    let words = ["model", "cores", "--constants", constants, "--speeds", "100", "--frames", "64"];
    let said = refusal(&words);
    assert!(
        said.contains("several columns could be the steps (cores, h)") && said.contains("--point"),
        "{said}"
    );
    let found = json(&[&words[..], &["--steps", "10", "--point", "cores=1", "--json"]].concat());
    let ns = number(&found["rows"][0]["ns_per_packet"]["value"]);
    assert!((ns - 1085.764).abs() < 1e-9 && found["at"]["cores"] == 1.0, "{found}");
    let told = fastpath(&[&words[..], &["--steps", "10", "--point", "cores=1"]].concat()).stdout;
    assert!(String::from_utf8(told).unwrap().contains(", cores = 1\n"));
}

#[test]
fn test_rows_are_selected_and_an_empty_selection_is_refused() {
    let table = file("selected.csv", &netcope_grid());
    let words = ["model", "fit", &table, "--test", &table, "--where", "cores=1"];
    assert_eq!(json(&[&words[..], &FIT, &["--json"]].concat())["check"]["n"], 18);
    let other = file("none.csv", &netcope_grid().replace(",1,", ",2,"));
    let said =
        refusal(&[&["model", "fit", &table, "--test", &other, "--where", "cores=1"][..], &FIT].concat());
    assert!(said.contains("none.csv: no row left where `cores` equals `1`"), "{said}");
    let unit = refusal(&[&["model", "fit", &table, "--y-unit", "us"][..], &FIT].concat());
    assert!(unit.contains("`T_ns` has another unit"), "{unit}");
}

#[test]
fn another_platform_is_predicted_with_an_interval_around_the_declared_scaling() {
    let table = file("transfer.csv", &netcope_grid());
    let machines = file("machines.csv", "platform,score,copy_gbit_per_s\nhere,30000,100\nthere,15000,200\n");
    let (from, to) = (format!("{machines}:here"), format!("{machines}:there"));
    let words =
        ["model", "predict", &table, "--point", "p=1000,h=10", "--from", &from, "--to", &to, "--json"];
    let found = json(&[&words[..], &FIT].concat());
    assert_interval(&found["predictions"][0]["ns_per_packet"], 2.0 * (38.6 + 40.7) + 0.5 * 101.0);
    // y is also that of the other platform, here in µs.
    let thousand = |line: &str| match line.rsplit_once(',') {
        Some((rest, ns)) => {
            ns.parse::<f64>().map_or(format!("{rest},T_us\n"), |ns| format!("{rest},{}\n", ns / 1e3))
        }
        None => String::new(),
    };
    let table = file("transfer-us.csv", &netcope_grid().lines().map(thousand).collect::<String>());
    let words =
        ["model", "predict", &table, "--point", "p=1000,h=10", "--from", &from, "--to", &to, "--json"];
    let in_us = json(&[&words[..], &["--y", "T_us", "--terms", "const,p,h"]].concat());
    let there = &in_us["predictions"][0];
    assert_interval(&there["y"], (2.0 * (38.6 + 40.7) + 0.5 * 101.0) / 1e3);
    assert!(
        (number(&there["y"]["value"]) * 1e3 / number(&there["ns_per_packet"]["value"]) - 1.0).abs() < 1e-9
    );
    assert!(there.get("y_mean").is_none(), "{there}");
    let table = file("transfer.csv", &netcope_grid());
    let words =
        ["model", "predict", &table, "--point", "p=1000,h=10", "--from", &from, "--to", &to, "--json"];
    let unknown = format!("{machines}:unknown");
    assert!(refusal(&[&words[..8], &[&unknown], &FIT].concat()).contains("have: here, there"));
}

#[test]
fn without_a_model_cores_are_those_of_netcope_2017() {
    let found = json(&[
        "model",
        "cores",
        "--speeds",
        "100Gbit",
        "--size",
        "64",
        "--steps",
        "0,10,20,50,100",
        "--json",
    ]);
    for (row, cores) in [6.71, 12.76, 18.82, 36.99, 67.27].into_iter().enumerate() {
        assert!((number(&found["rows"][row]["cores"]["value"]) - cores).abs() < 0.006);
    }
}

#[test]
fn the_index_has_three_named_variants_and_needs_enough_platforms() {
    for (variant, apu2) in [("plain", 14.94), ("tuned", 28.05)] {
        let found = json(&["model", "index", "--variant", variant, "--json"]);
        assert_eq!(found["variant"], variant);
        assert!((number(&found["platforms"][0]["index"]) - apu2).abs() < 0.006, "{found}");
        assert!(found["index"]["low"].is_number());
        assert_eq!(found["m"]["low"], found["m"]["high"], "a given value has no interval");
    }
    let two = "platform,coremark,copy_mib_per_s,rate_pps\nAPU2,3044,248,45377\nCI,28659,8102,736357\n";
    let two = file("two.csv", two);
    let fitted =
        json(&["model", "index", &two, "--variant", "fit-m", "--to", &format!("{two}:CI"), "--json"]);
    for name in ["m", "index", "predicted_pps"] {
        assert!(fitted[name]["value"].is_number() && fitted[name]["low"].is_null(), "{name}: {fitted}");
    }
    assert_eq!(fitted["n_s"]["high"], 0.0);
    let small = "platform,coremark,copy_mib_per_s,rate_pps,packet_size\nAPU2,3044,248,45377,64\n";
    let small = file("small.csv", small);
    let said = refusal(&["model", "index", &two, "--variant", "fit-m", "--to", &small]);
    assert!(
        said.contains(
            "`APU2` has packets of 64 bytes, and the index is for packets of 172: write --length 64"
        )
    );
    let one = file("one.csv", "platform,coremark,copy_mib_per_s,rate_pps\nAPU2,3044,248,45377\n");
    assert!(
        refusal(&["model", "index", &one, "--variant", "fit-m"]).contains("1 platform(s) for 2 unknowns")
    );
}

#[test]
fn budgets_give_the_calibrated_share_of_joglekar_2004() {
    let words =
        ["model", "budget", "--stages", "290:470", "--hidden", "0.62", "--offered", "595238", "--json"];
    let found = json(&words);
    assert!((number(&found["share_of_offered"]["value"]) - 0.83).abs() < 0.005, "{found}");
    assert!((number(&found["arrival_cycles"]["value"]) - 468.6).abs() < 0.01);
    let range = json(&["model", "budget", "--stages", "135..165:515", "--json"]);
    assert!(number(&range["arrival_cycles"]["low"]) < number(&range["arrival_cycles"]["high"]));
}

#[test]
fn the_best_assignment_beats_the_mapping_of_joglekar_2004() {
    let found = json(&["model", "assign", "--json"]);
    assert!(number(&found["gain"]["low"]) > 1.0, "{found}");
    let tasks =
        file("tasks.csv", "name,compute,memory,code,state\na,10,20,30,private\nb,10,20,99999,shared\n");
    assert!(refusal(&["model", "assign", &tasks]).contains("`b` takes 99999 instructions"));
}

#[test]
fn every_published_figure_is_reproduced() {
    let found = json(&["evaluate", "models", "--json"]);
    let results = found["results"].as_array().unwrap();
    assert_eq!(results.len(), 84);
    for result in results {
        assert!(result["id"].is_string() && !result["ours"].is_null() && result["pass"] == true, "{result}");
    }
}

#[test]
fn published_rates_are_fitted_without_rows_limited_by_the_wire() {
    let csv = include_str!("../../model/data/published-vpp.csv");
    let table = file("vpp.csv", csv);
    let found = json(&[
        "model",
        "fit",
        &table,
        "--y",
        "cores/packets_per_second_both_directions",
        "--terms",
        "const",
        "--json",
    ]);
    let limits: Vec<&str> =
        found["regimes"].as_array().unwrap().iter().filter_map(|r| r["limit"].as_str()).collect();
    assert!(limits.contains(&"line-rate") && limits.contains(&"packet-rate"), "{limits:?}");
}

#[test]
fn wrong_input_gets_one_clear_error() {
    let cases = [
        ("p,T_ns\n1,2\n2,-3\n3,4\n", "-3 is negative"),
        ("p,T_ns\n1,2\n2,NaN\n3,4\n", "`NaN` is not a finite number"),
        ("p,T_ns\n1,2us\n2,3ns\n3,4us\n", "units are mixed"),
        ("p,T_ns\n1,2\n2,3\n", "2 points are too few to fit 2 terms"),
        ("p,T_ns\n5,2\n5,3\n5,4\n", "`p` cannot be separated from"),
        ("p,T_ns\n1,2,3\n", "line 2: 3 cells where the header names 2 columns"),
        ("q,T_ns\n1,2\n", "no column `p`"),
        ("", "the table is empty"),
    ];
    for (text, reason) in cases {
        let table = file("wrong.csv", text);
        let said = refusal(&["model", "fit", &table, "--y", "T_ns", "--terms", "const,p", "--json"]);
        assert!(said.contains("wrong.csv") && said.contains(reason), "{said}");
    }
    assert!(refusal(&["model", "fit", "nowhere.csv", "--y", "a", "--terms", "b"]).contains("nowhere.csv"));
    assert!(refusal(&["model", "predict", "--point", "p=1"]).contains("no model"));
}

/// Returns the grid as another tool would write it, with its delimiter, column names and number
/// format.
fn foreign(delimiter: &str, [p, h, t]: [&str; 3], number: impl Fn(f64) -> String) -> String {
    let mut text = [p, h, t].join(delimiter) + "\n";
    for line in netcope_grid().lines().skip(1) {
        let cells: Vec<f64> = line.split(',').map(|cell| cell.parse().unwrap()).collect();
        text += &([number(cells[0]), number(cells[1]), number(cells[3])].join(delimiter) + "\n");
    }
    text
}

#[test]
fn tables_in_other_formats_give_the_same_coefficients() {
    let plain = |x: f64| x.to_string();
    let names = ["p", "h", "T_ns"];
    let usual = foreign(",", names, plain);
    let comma = |x: f64| x.to_string().replace('.', ",");
    // ns with thousands separators, as `1,234.5`.
    let thousands = |x: f64| {
        let (whole, part) = ((x / 1000.0) as u32, x % 1000.0);
        if whole > 0 { format!("\"{whole},{part:07.3}\"") } else { format!("\"{x:.3}\"") }
    };
    let ps = |x: f64| if x.fract() == 0.0 { x.to_string() } else { thousands(x * 1000.0) };
    let units = ["Frame size [B]", "Steps", "Time per packet (ns)"];
    let spaced: String = usual.lines().map(|line| format!("  {}\n", line.replace(',', "    "))).collect();
    let utf_16: Vec<u8> = "\u{feff}"
        .chars()
        .chain(foreign("\t", names, plain).chars())
        .flat_map(|c| (c as u16).to_le_bytes())
        .collect();
    let latin_1: Vec<u8> =
        foreign(
            ";",
            ["p", "h", "T [\u{b5}s]"],
            |x| if x.fract() == 0.0 { plain(x) } else { comma(x / 1000.0) },
        )
        .chars()
        .map(|c| c as u8)
        .collect();
    let shapes: Vec<(&str, Vec<u8>, [&str; 3], f64)> = vec![
        ("semicolons and decimal commas", foreign(";", names, comma).into(), names, 1.0),
        ("byte order mark and CR LF", format!("\u{feff}{}", usual.replace('\n', "\r\n")).into(), names, 1.0),
        ("old line ends", usual.replace('\n', "\r").into(), names, 1.0),
        (
            "comments and blank lines",
            usual.replace("\n64,10", "\n# warm from here on\n\n64,10").into(),
            names,
            1.0,
        ),
        ("units in names", foreign(",", units, plain).into(), units, 1.0),
        (
            "all quoted",
            foreign(",", ["\"p\"", "\"h\"", "\"T_ns\""], |x| format!("\"{x}\"")).into(),
            names,
            1.0,
        ),
        ("separators of thousands", foreign(",", ["p", "h", "T_ps"], ps).into(), ["p", "h", "T_ps"], 1000.0),
        (
            "units in cells",
            foreign("\t", ["p", "h", "T"], |x| if x.fract() == 0.0 { plain(x) } else { format!("{x} ns") })
                .into(),
            ["p", "h", "T"],
            1.0,
        ),
        ("columns of spaces", spaced.clone().into(), names, 1.0),
        ("gnuplot's header", spaced.replacen("  p", "# of the lab\n# p", 1).into(), names, 1.0),
        (
            "a row of units",
            usual.replacen('\n', "\n[B],,[ns]\n", 1).replacen(",,", ",[steps],", 1).into(),
            names,
            1.0,
        ),
        (
            "blank rows, blank columns, blank fields",
            usual
                .replacen("T_ns", "T_ns,remark,", 1)
                .replace("\n", ",,\n")
                .replacen(",,\n", "\n", 1)
                .into_bytes(),
            names,
            1.0,
        ),
        ("UTF-16", utf_16, names, 1.0),
        ("Latin-1", latin_1, ["p", "h", "T [\u{b5}s]"], 0.001),
    ];
    for (shape, bytes, [p, h, t], scale) in shapes {
        fs::write(directory().join("foreign.csv"), bytes).unwrap();
        let terms = format!("const,{p},{h}");
        let found = json(&["model", "fit", "foreign.csv", "--y", t, "--terms", &terms, "--json"]);
        for (term, truth) in [("const", 38.6), (p, 0.101), (h, 4.07)] {
            let value = number(&found["coefficients"][term]["value"]);
            assert!((value / truth / scale - 1.0).abs() < 0.01, "{shape}: {term} {value}");
        }
        assert_eq!(found["n"], 18, "{shape}");
    }
}

#[test]
fn impossible_numbers_are_refused_wherever_they_are_given() {
    let table = file("cannot.csv", &netcope_grid());
    let fit = |y: &str, terms: &str, text: &str| {
        let table = file("cannot-be.csv", text);
        refusal(&["model", "fit", &table, "--y", y, "--terms", terms])
    };
    assert!(
        fit("t_ns", "const,w_us", "w_us,t_ns\n1,2\n2,3\n3,5\n")
            .contains("units are mixed, `t_ns` and `w_us`")
    );
    assert!(fit("t", "const,p", "p,t\n1,2\n2,0\n3,5\n").contains("y = 0"));
    assert!(fit("t", "const,p", "p,t\n1,2\n2,inf\n3,5\n").contains("`inf` is not a finite number"));
    assert!(
        fit("t", "const,p,q", "p,q,t\n1,2,3\n2,4,5\n3,6,7\n4,8,11\n")
            .contains("`q` cannot be separated from `p`")
    );
    assert!(
        fit("t", "const,p", "p;t\n1;1,234\n2;2,345\n3;3,456\n")
            .contains("may separate thousands or decimals")
    );
    for (at, reason) in [
        ("p=NaN,h=1", "`p=NaN`: give a finite number"),
        ("p=64,h", "`h`: write COLUMN=VALUE"),
        ("p=64", "term `h` needs a value"),
        ("p=-64,h=1", "`p` = -64 is negative"),
    ] {
        let output = fastpath(&[&["model", "predict", &table, "--point", at][..], &FIT].concat());
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && said.contains(reason), "{at}: {said}");
    }
}

#[test]
fn text_output_has_a_table_and_the_reasons() {
    let table = file("people.csv", &netcope_grid());
    let output = fastpath(&[&["model", "fit", &table][..], &FIT].concat());
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(
        said.contains("R²") && said.contains("leave one out") && said.contains("largest residuals"),
        "{said}"
    );
}

#[test]
fn every_published_figure_names_a_publication_of_the_bibliography() {
    let bibliography = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/history/bibliography.md");
    let bibliography = fs::read_to_string(bibliography).unwrap();
    let found = json(&["evaluate", "models", "--json"]);
    let figures = found["results"].as_array().unwrap();
    assert_eq!(figures.len(), 84);
    for figure in figures {
        let publication = figure["publication"].as_str().unwrap();
        let row = format!("| {publication} | {} |", &figure["id"].as_str().unwrap()[..3]);
        assert!(bibliography.contains(&row), "{row}");
        assert!(!figure["place"].as_str().unwrap().is_empty(), "{figure}");
    }
}

#[test]
fn queues_are_solved_by_command_and_simulated_on_demand() {
    let load = ["--arrivals", "800kpps", "--service", "1us"];
    let found = json(&[&["model", "queue", "mm1"][..], &load, &["--json"]].concat());
    let total = &found["formula"]["total"];
    assert_eq!(found["name"], "M/M/1");
    assert!((number(&total["sojourn_s"]["value"]) - 5e-6).abs() < 1e-15, "{total}");
    assert!((number(&total["percentiles"][2]["sojourn_s"]["value"]) - 5e-6 * 100f64.ln()).abs() < 1e-12);
    assert!(found["simulation"].is_null());
    // 800 000 frames/s of 1250 bytes are 8 Gbit/s.
    let bits = ["--arrivals", "8Gbit", "--service", "10Gbit", "--size", "1250B"];
    let same = json(&[&["model", "queue", "mm1"][..], &bits, &["--json"]].concat());
    assert!((number(&same["formula"]["total"]["wait_s"]["value"]) - 4e-6).abs() < 1e-15);
    let simulate = ["--simulate", "3", "--simulated", "200000", "--json"];
    let both = json(&[&["model", "queue", "md1"][..], &load, &simulate].concat());
    let [exact, simulated] = ["formula", "simulation"].map(|by| &both[by]["total"]["wait_s"]);
    assert!((number(&exact["value"]) - 2e-6).abs() < 1e-15);
    assert_interval(simulated, number(&exact["value"]));
}

#[test]
fn every_kind_of_queue_prints_a_table() {
    for words in [
        "mmc --arrivals 3Mpps --service 1us --servers 4",
        "mg1 --arrivals 700kpps --service 1us --services hyper:4",
        "gm1 --arrivals 800kpps --service 1us --gaps constant",
        "ggc --arrivals 7/ms --service 500us --servers 4 --gaps erlang:2 --services cv2:0.5",
        "mm1k --arrivals 1.2Mpps --service 1us --places 64",
        "mmck --arrivals 5/s --service 1s --servers 10 --places 10",
        "mg1k --arrivals 700kpps --service 1us --services constant --places 9",
        "repair --sources 64 --think 1ms --service 20us --servers 2",
        "priority --class 200kpps,1us,constant --class 500kpps,1us",
        "tandem --arrivals 200kpps --station 4us --station 8us*2",
        "closed --customers 64 --station 4us --station 2us*2 --think 100us",
    ] {
        let all: Vec<&str> = ["model", "queue"].into_iter().chain(words.split(' ')).collect();
        let output = fastpath(&all);
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{words}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(said.contains("mean sojourn") && said.contains("throughput"), "{words}: {said}");
    }
}

#[test]
fn queues_without_a_steady_state_or_a_formula_say_what_to_write() {
    let refused =
        |words: &str| refusal(&["model", "queue"].into_iter().chain(words.split(' ')).collect::<Vec<_>>());
    for (words, part) in [
        ("mm1 --arrivals 1Mpps --service 1us", "load 1.0000 is not below 1"),
        ("mm1 --arrivals 8Gbit --service 1us", "--arrivals: a rate of bits needs the size"),
        ("mm1 --arrivals 1kpps --service 1us --size 64B", "--size 64B: no rate is in bits"),
        ("tandem --arrivals 200kpps --station 1us --station 8us", "station 2: load 1.6"),
        ("mmck --arrivals 5/s --service 1s --servers 4 --places 3", "write at least 4"),
        ("priority --servers 2 --class 1kpps,1us --class 1kpps,2us", "simulate it with --simulate SEED"),
        ("mg1 --arrivals 1kpps --service 1us --services cv2:2 --simulate 1", "states no distribution"),
        ("gm1 --arrivals 1kpps --service 1us --gaps cv2:2 --simulate 1", "states no distribution"),
    ] {
        let said = refused(words);
        assert!(said.contains(part), "{words}: {said}");
    }
}
