//! Every word of an experiment file has an effect, or is named: one word is changed, misspelled or
//! removed, and what would run is another experiment, or there is a mistake.
//!
//! `FASTPATH_MUTATIONS=100000 cargo test -p fastpath-experiment every_word` makes more changes than
//! the tests do.

use super::inputs::{Contents, Inputs};
use super::load;
use fastpath_spec::Description;
use fastpath_text::mutation::keyed::{WordChange, changed, words};
use fastpath_units::Rng;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

const NET: &str = "[host.a]\n[host.b]\n[group.cell]\nstart = '9s'\n[[link]]\nbetween = ['a', 'b']\nrate = '9Mbit'\n\
    group = 'cell'\ntrace = 'lte.csv'\n[[traffic]]\nname = 'call'\nfrom = 'a'\nto = 'b'\nkind = 'constant'\nrate = '2Mbit'\n";

const LAB: &str = "name = 'queues'
spec = 'net.toml'
seeds = [3, 5]
attempts = 7
tolerance = '9ms'
late_share = 0.4
audit = true
[matrix]
'link.a-b.rate' = ['8Mbit', '16Mbit']
'link.a-b.a_to_b.loss' = ['1%', '2%']
control = ['cubic', 'reno']
[[step]]
name = 'server'
run = ['iperf3', '-s']
on = 'b'
background = true
[[step]]
name = 'transfer'
run = 'iperf3 -c b -C {control} --cport {seed} ${HOME}'
on = 'a'
limit = '30s'
may_fail = true
[[step]]
name = 'change'
set = { 'a-b.rate' = '4Mbit', 'a-b.loss' = '3%' }
[[step]]
name = 'go'
start = 'cell'
[[step]]
name = 'still'
wait = '1s'
[[step]]
name = 'log'
collect = '/var/log/{control}-{run}'
on = 'b'
[metric.goodput]
of = 'transfer'
json = 'end.bits'
scale = 1e-6
unit = 'Mbit/s'
reduce = 'mean'
[metric.rtt]
of = 'server'
pattern = 'time=([0-9.]+)'
reduce = 'p99'
[metric.dropped]
link = 'a-b'
from = 'a'
value = 'dropped'
[metric.lost]
flow = 'call'
value = 'lost'
[[expect]]
metric = 'p50(goodput)'
at_least = '1Mbit/s'
at_most = '9Mbit/s'
where = { control = 'reno', 'link.a-b.rate' = '8Mbit' }
";

const REPLAY: &str = "name = 'y'
seeds = 4
[matrix]
spec = ['net.toml', 'other.toml']
'link.a-b.trace' = ['lte.csv', 'dsl.csv']
[replay]
in = { a = 'in.pcap', b = 'back.pcap' }
out = ['b']
until = '4s'
[metric.slow]
delay = true
unit = 'ms'
reduce = 'max'
scale = 2.0
[metric.full]
frames = 'queue-full'
[metric.queued]
link = 'a-b'
from = 'a'
value = 'queued_bytes'
reduce = 'mean'
[metric.arrived]
flow = 'call'
value = 'delay.p99_ms'
[[expect]]
metric = 'slow'
at_most = '7ms'
";

/// Changes that make no difference, with the reason.
const EQUIVALENT: [(&str, &str); 0] = [];

struct Bench(PathBuf);

impl Bench {
    fn new() -> Bench {
        let path = std::env::temp_dir().join(format!("fastpath-every-word-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a new directory");
        for (name, text) in [
            ("net.toml", NET.to_owned()),
            ("other.toml", NET.replace("'9s'", "'8s'")),
            ("lte.csv", "time_s,delay (ms)\n0,1\n60,2\n".to_owned()),
            ("dsl.csv", "time_s,delay (ms)\n0,3\n60,4\n".to_owned()),
            ("in.pcap", "a capture".to_owned()),
            ("back.pcap", "another capture".to_owned()),
        ] {
            fs::write(path.join(name), text).expect("written");
        }
        Bench(path)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What would run; `None`: the file has mistakes.
fn what_runs(path: &Path) -> Option<Vec<Value>> {
    let plan = load(path).ok()?;
    let mut all = vec![plan.json()];
    // The checksum of the file is not what runs.
    all[0].as_object_mut().expect("an object").remove("configuration");
    let contents = Contents::default();
    for run in 0..plan.runs() {
        let network = plan.network(run).expect("it was checked").spec;
        let inputs = Inputs::of(&plan, run, &network, &contents).expect("files are there");
        all.push(serde_json::to_value(&inputs.values).expect("plain data"));
        all.push(serde_json::to_value(plan.place(run)).expect("plain data"));
        // Every seed has the same networks.
        if run < plan.conditions() {
            let description = fastpath_spec::describe(&network.topology);
            all.push(Description { engine: network.engine, ..description }.to_json());
        }
    }
    Some(all)
}

#[test]
fn every_word_of_an_experiment_has_an_effect_or_is_a_mistake() {
    let bench = Bench::new();
    let path = bench.0.join("x.toml");
    let count =
        std::env::var("FASTPATH_MUTATIONS").ok().and_then(|text| text.parse().ok()).unwrap_or(600_u64);
    let mut rng = Rng::new(33);
    let mut silent = std::collections::BTreeSet::new();
    for text in [LAB, REPLAY] {
        fs::write(&path, text).expect("written");
        let unchanged = what_runs(&path).unwrap_or_else(|| panic!("{}", load(&path).unwrap_err()));
        let words = words(text);
        // Every change of every word at least once.
        let rounds = count.div_ceil(2).div_ceil(words.len() as u64 * WordChange::ALL.len() as u64);
        for (word, change) in
            (0..rounds).flat_map(|_| &words).flat_map(|word| WordChange::ALL.map(|how| (word, how)))
        {
            let Some(new) = changed(text, &words, word, change, &mut rng) else { continue };
            fs::write(&path, &new).expect("written");
            let is_listed = EQUIVALENT.iter().any(|(known, _)| *known == word.path);
            if !is_listed && what_runs(&path).as_ref() == Some(&unchanged) {
                let lines = new.lines().zip(text.lines()).find(|(new, old)| new != old);
                silent.insert(format!("{} {change:?}: {lines:?}", word.path));
            }
        }
    }
    assert!(silent.is_empty(), "{silent:#?}");
}
