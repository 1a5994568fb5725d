//! The model of TCP beside the kernel's: the same connections over the same links, both in virtual
//! time.

use crate::place::{Place, text};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;

const QUEUES: [(&str, &str); 4] = [
    ("drop-tail", "{ kind = 'drop-tail', limit = '50p' }"),
    ("codel", "'codel'"),
    ("fq-codel", "'fq-codel'"),
    ("dualpi2", "'dualpi2'"),
];
const CONTROLS: [&str; 2] = ["reno", "cubic"];
/// One-way delays, ms. A loss more or less is chance of one of them.
const DELAYS: [u32; 3] = [18, 20, 22];
/// What is compared, and how far the model may be from the kernel: a share, and a number.
const METRICS: [(&str, f64, f64); 3] = [("goodput", 0.03, 0.0), ("resent", 0.1, 2.0), ("queued", 0.1, 0.3)];

/// The sums of the metrics of a run over the delays, by queue and control.
fn sums(place: &Place, file: &str, head: &str) -> BTreeMap<String, [f64; 3]> {
    let networks: Vec<String> = networks().map(|(name, _)| format!("'{name}'")).collect();
    let experiment = format!(
        "{head}\n[matrix]\nspec = [{}]\n[metric.goodput]\ntransfer = 'down'\nvalue = 'goodput_bps'\n\
         [metric.resent]\ntransfer = 'down'\nvalue = 'retransmitted'\n\
         [metric.queued]\nlink = 'a-b'\nfrom = 'a'\nvalue = 'queueing_delay_ms'\n",
        networks.join(", ")
    );
    fs::write(place.path.join(file), experiment).unwrap();
    let done = place.run(&["experiment", file, "--json"]);
    assert!(done.status.success(), "{}", text(&done));
    let found: Value = serde_json::from_slice(&done.stdout).expect("JSON");
    let mut sums: BTreeMap<String, [f64; 3]> = BTreeMap::new();
    for (run, (name, _)) in found["runs"].as_array().unwrap().iter().zip(self::networks()) {
        let sum = sums.entry(name.rsplit_once('-').unwrap().0.to_owned()).or_default();
        for (sum, (metric, ..)) in sum.iter_mut().zip(METRICS) {
            *sum += run["values"][metric].as_f64().unwrap_or_else(|| panic!("{name} has a {metric}: {run}"));
        }
    }
    sums
}

/// The networks, each with one transfer of 20 s.
fn networks() -> impl Iterator<Item = (String, String)> {
    let places = QUEUES.iter().flat_map(|queue| CONTROLS.map(|control| (queue, control)));
    places.flat_map(|((name, queue), control)| {
        DELAYS.map(|delay| {
            let text = format!(
                "[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\nrate = '10Mbit'\ndelay = '{delay}ms'\n\
                 queue = {queue}\n[[traffic]]\nname = 'down'\nfrom = 'a'\nto = 'b'\nkind = 'tcp'\n\
                 congestion = '{control}'\nstop = '20s'\n"
            );
            (format!("{name}-{control}-{delay}.toml"), text)
        })
    })
}

#[test]
fn the_model_of_tcp_does_what_the_kernel_does() {
    let Some(place) = Place::new("the model of TCP") else { return };
    for (name, network) in networks() {
        fs::write(place.path.join(name), network).unwrap();
    }
    let model = sums(&place, "model.toml", "[replay]\nuntil = '20s'");
    let wait = "time = 'virtual'\n[[step]]\nname = 'wait'\nrun = 'sleep 20'";
    let kernel = sums(&place, "kernel.toml", wait);
    let (mut table, mut far) = (String::new(), 0);
    for ((name, model), (_, kernel)) in model.iter().zip(&kernel) {
        write!(table, "{name:<16}").unwrap();
        for (index, (metric, share, number)) in METRICS.iter().enumerate() {
            let [model, kernel] = [model[index], kernel[index]].map(|sum| sum / DELAYS.len() as f64);
            let is_far = (model - kernel).abs() > (share * kernel).max(*number);
            far += u32::from(is_far);
            write!(table, "  {metric} {model:.2} | {kernel:.2}{}", if is_far { " FAR" } else { "" }).unwrap();
        }
        writeln!(table).unwrap();
    }
    println!("model | kernel\n{table}");
    assert!(far == 0 && model.len() == 8, "\n{table}");
}
