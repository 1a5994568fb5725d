//! Tests of the reader of experiment files: what is wrong is named with its place.

use super::*;

/// Returns the mistakes in a file, as they print.
fn mistakes(text: &str) -> Vec<String> {
    let mut remarks = Remarks::new(text);
    experiment(text, Path::new("x.toml"), &mut remarks);
    remarks.finish().err().iter().flatten().map(ToString::to_string).collect()
}

const LAB: &str = "spec = 'net.toml'
seeds = 2
[matrix]
'link.a-b.rate' = ['8Mbit', '16Mbit']
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
set = { 'a-b.delay' = '40ms' }
[[step]]
start = 'cell'
[[step]]
wait = '1s'
[metric.goodput]
of = 'transfer'
json = 'end.bits'
scale = 1e-6
unit = 'Mbit/s'
[metric.rtt]
of = 'transfer'
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
where = { control = 'reno' }
";

#[test]
fn what_has_no_effect_in_virtual_time_is_a_mistake() {
    for (from, to, said) in [
        ("[matrix]", "attempts = 2\n[matrix]", "attempts has no effect in virtual time"),
        ("[matrix]", "late_share = 0.5\n[matrix]", "late_share has no effect"),
        ("[matrix]", "keep_packets = true\n[matrix]", "keep_packets has no effect but in labs in virtual"),
        ("[matrix]", "audit = true\n[matrix]", "audit has no effect in virtual time"),
        ("[matrix]", "time = 'real'\n[matrix]", "time has no effect beside [replay]"),
        ("[matrix]", "[matrix]\n'engine.tolerance' = ['1ms', '2ms']", "engine.tolerance has no effect"),
        ("out = ['b']", "out = ['b', 'b']", "out has b twice"),
    ] {
        let file = REPLAY.replacen(from, to, 1);
        assert_ne!(file, REPLAY, "{from}");
        let found = mistakes(&file);
        assert!(found.iter().any(|mistake| mistake.contains(said)), "{to}: {found:?}");
    }
}

const REPLAY: &str = "spec = 'net.toml'
[matrix]
'link.a-b.rate' = ['8Mbit', '16Mbit']
[replay]
in = { a = 'in.pcap' }
out = ['b']
until = '30s'
[metric.full]
frames = 'queue-full'
[metric.delay]
delay = true
unit = 'ms'
[metric.queue]
link = 'a-b'
value = 'queueing_delay_ms'
[[expect]]
metric = 'full'
at_most = 0
";

#[test]
fn files_without_mistakes_are_read() {
    assert_eq!([mistakes(LAB), mistakes(REPLAY)], [vec![], vec![]] as [Vec<String>; 2]);
    let mut remarks = Remarks::new(LAB);
    let (plan, are_networks_known) = experiment(LAB, Path::new("dir/x.toml"), &mut remarks).unwrap();
    assert!(are_networks_known);
    assert_eq!((plan.name.as_str(), plan.runs(), plan.seeds.as_slice()), ("x", 8, &[1, 2][..]));
    let names: Vec<&str> = plan.metrics.iter().map(|metric| metric.name.as_str()).collect();
    assert_eq!(names, ["dropped", "goodput", "lost", "rtt"]);
    assert_eq!(plan.fill("{control} {seed} {run} {{run}}", 5), "cubic 2 5 {run}");
}

/// The text that is replaced, what stands there instead, and a mistake of the result.
type Case<'t> = (&'t str, &'t str, &'t str);

fn check(text: &str, cases: &[Case]) {
    for (from, to, expected) in cases {
        assert_eq!(text.matches(from).count(), 1, "{from}");
        let said = mistakes(&text.replace(from, to));
        assert!(said.iter().any(|said| said.contains(expected)), "{to}: {said:#?}");
    }
}

#[test]
fn misspelled_keys_are_named_at_each_level() {
    check(
        LAB,
        &[
            ("seeds = 2", "seedz = 3", "2:1: the experiment has no key 'seedz'; write seeds"),
            ("may_fail", "may_fall", "16:1: step transfer has no key 'may_fall'; write may_fail"),
            ("scale", "scael", "26:1: metric goodput has no key 'scael'; write scale"),
            ("at_least", "at_lest", "41:1: expect has no key 'at_lest'; write at_least"),
            ("run = ['iperf3'", "rnu = ['iperf3'", "8:1: step server has no key 'rnu'; write run"),
        ],
    );
    check(REPLAY, &[("until", "untill", "7:1: replay has no key 'untill'; write until")]);
}

#[test]
fn values_of_a_wrong_kind_or_out_of_range_are_named() {
    check(
        LAB,
        &[
            ("seeds = 2", "seeds = 'two'", "2:9: seeds is text, not a whole number"),
            ("seeds = 2", "seeds = [1, 1]", "2:13: the seed 1 is given twice"),
            ("seeds = 2", "seeds = []", "2:9: seeds has no seed"),
            ("seeds = 2", "seeds = 1_000_000", "4000000 runs; the limit is 1000000"),
            (
                "seeds = 2",
                "attempts = 0",
                "2:12: attempts = 0 is out of range; write a number from 1 to 1000",
            ),
            ("seeds = 2", "late_share = 1.5", "late_share = 1.5 is not a share"),
            ("seeds = 2", "time = 'virtal'", "2:8: 'virtal' is not a kind of time; write \"virtual\""),
            ("seeds = 2", "time = 'virtual'\nattempts = 2", "3:12: attempts has no effect in virtual time"),
            ("seeds = 2", "tolerance = '10mz'", "2:13: '10mz' is not a duration"),
            ("'30s'", "30", "limit is a whole number, not text; write limit = \"30s\""),
            ("wait = '1s'", "wait = 'long'", "'long' is not a duration"),
            ("background = true", "background = 1", "background is a whole number, not true or false"),
            ("scale = 1e-6", "scale = 0", "26:9: scale = 0 makes every number 0"),
            ("scale = 1e-6", "scale = inf", "scale = inf is not a number"),
            ("['cubic', 'reno']", "[]", "control has no value; write a list"),
            ("['cubic', 'reno']", "'cubic'", "control is text, not a list of values"),
            ("['cubic', 'reno']", "['cubic', 'cubic']", "5:21: control has cubic twice"),
            ("['cubic', 'reno']", "['cubic', nan]", "a number that is not finite"),
            (
                "'link.a-b.rate'",
                "link.a-b.rate",
                "4:1: link is a table, not a list; write the name of a value in quotes",
            ),
            ("control = [", "seed = [", "seed is not the name of an axis"),
            ("control = [", "'co ntrol' = [", "co ntrol is not the name of an axis"),
            ("spec = 'net.toml'", "", "the experiment has no network; write spec"),
            ("[matrix]", "[matrix]\nspec = ['a.toml']", "spec is also an axis"),
        ],
    );
}

#[test]
fn words_in_braces_are_axes_and_axes_are_used() {
    check(
        LAB,
        &[
            (
                "{control}",
                "{contrl}",
                "13:7: nothing defines the word {contrl}; write control, or {{contrl}}",
            ),
            ("-C {control}", "-C cubic", "5:1: nothing uses the axis control; write {control} in a command"),
            ("wait = '1s'", "collect = '/var/log/{sed}'", "nothing defines the word {sed}; write seed"),
        ],
    );
    check(REPLAY, &[("[matrix]", "[matrix]\nword = ['x']", "3:1: nothing uses the axis word")]);
    assert_eq!(mistakes(&LAB.replace("-C {control}", "-C {control} {{print}} {a,b}")), [] as [String; 0]);
}

#[test]
fn steps_do_one_thing_that_has_an_effect() {
    check(
        LAB,
        &[
            (
                "wait = '1s'",
                "wait = '1s'\nstart = 'x'",
                "step 5 has wait and start; write exactly one of run",
            ),
            ("wait = '1s'", "name = 'x'", "step x does nothing; write exactly one of run"),
            (
                "wait = '1s'",
                "wait = '1s'\non = 'a'",
                "on has no effect beside wait; write it beside run or collect",
            ),
            (
                "background = true",
                "background = true\nlimit = '3s'",
                "limit has no effect on a command in the background",
            ),
            ("name = 'transfer'", "name = 'server'", "another step has the name server"),
            ("name = 'transfer'", "name = '../x'", "'../x' cannot be the name of a file"),
            ("['iperf3', '-s']", "[]", "run has no command"),
            ("'a-b.delay'", "'a-b.deqlay'", "18:9: a link has no value 'deqlay'; write delay"),
            ("'40ms'", "'50mx'", "18:23: '50mx' is not a duration"),
            ("'a-b.delay'", "delay", "delay does not name a value of a link"),
            ("{ 'a-b.delay' = '40ms' }", "{ }", "set changes nothing"),
            ("seeds = 2", "[replay]", "steps need a lab"),
        ],
    );
    assert!(mistakes("spec = 'x.toml'\n")[0].contains("the experiment does nothing"));
}

#[test]
fn metrics_have_one_source_with_a_known_value() {
    check(
        LAB,
        &[
            (
                "of = 'transfer'\njson",
                "of = 'transfr'\njson",
                "no step 'transfr' runs a command; write transfer",
            ),
            (
                "of = 'transfer'\njson",
                "of = '4'\njson",
                "no step '4' runs a command; write one of server, transfer",
            ),
            ("json = 'end.bits'", "", "does not say which numbers of the output it takes"),
            ("'time=([0-9.]+)'", "'time=[0-9.]+'", "the pattern does not have one group"),
            ("'time=([0-9.]+)'", "'time=('", "the pattern is wrong"),
            ("'p99'", "'p500'", "'p500' does not make one number of many"),
            ("'p99'", "'meen'", "'meen' does not make one number of many; write mean"),
            (
                "value = 'dropped'",
                "value = 'droped'",
                "35:9: 'droped' is not a value of a link; write \"dropped\"",
            ),
            (
                "value = 'dropped'",
                "value = 'queue-ful'",
                "'queue-ful' is not a value of a link; write \"queue-full\"",
            ),
            ("value = 'dropped'", "", "metric dropped has no value of the link"),
            ("value = 'lost'", "value = 'lots'", "38:9: a flow has no value 'lots'; write lost"),
            (
                "value = 'lost'",
                "value = 'delay.p9_ms'",
                "a flow has no value 'delay.p9_ms'; write delay.p99_ms",
            ),
            ("flow = 'call'", "flow = 'call'\nfrom = 'a'", "from has no effect beside flow"),
            ("flow = 'call'", "flow = 'call'\nlink = 'a-b'", "metric lost has link and flow"),
            ("flow = 'call'", "frames = 'delivered'", "frames is of virtual time"),
        ],
    );
    check(
        REPLAY,
        &[
            (
                "'queue-full'",
                "'queue-ful'",
                "9:10: 'queue-ful' is not an end of frames; write \"queue-full\"",
            ),
            ("delay = true", "delay = false", "delay = false is not a source"),
            ("delay = true", "delay = true\nframes = 'delivered'", "write exactly one of frames"),
            ("delay = true", "of = 'transfer'", "of is of a lab"),
        ],
    );
}

#[test]
fn expectations_are_about_metrics_and_conditions_that_exist() {
    check(
        LAB,
        &[
            ("p50(goodput)", "p50(godput)", "there is no metric 'godput'; write goodput"),
            ("p50(goodput)", "p5x(goodput)", "'p5x' does not make one number of many"),
            ("'1Mbit/s'", "'1ms'", "\"1ms\" is not in Mbit/s"),
            ("at_least = '1Mbit/s'", "", "expect has no bound"),
            ("at_least = '1Mbit/s'", "at_least = 2\nat_most = 1", "no number is at most 1 and at least 2"),
            ("control = 'reno'", "contrl = 'reno'", "where: contrl does not vary; write control"),
            ("control = 'reno'", "control = 'rneo'", "where: control is never rneo; write reno"),
        ],
    );
    // A metric with a mistake is not reported as missing too.
    let said = mistakes(&LAB.replace("json = 'end.bits'", "jsn = 'end.bits'"));
    assert!(said.iter().all(|said| !said.contains("there is no metric")), "{said:?}");
}

#[test]
fn every_mistake_is_named_at_once_and_syntax_errors_too() {
    let text = LAB.replace("seeds = 2", "seedz = 2").replace("'40ms'", "'40mz'").replace("'p99'", "'q99'");
    assert_eq!(mistakes(&text).len(), 3, "{:?}", mistakes(&text));
    assert!(mistakes("spec = net.toml")[0].starts_with("1:8: this is not TOML"));
    assert!(mistakes("spec: net.toml\n")[0].starts_with("1:1: this is YAML, and an experiment is TOML"));
}
