//! Against tc itself: what iproute2 6.1 takes and refuses, and the values it sends to the kernel,
//! decoded from its netlink messages.

use super::*;

fn read(text: &str) -> Result<Arguments, ArgumentError> {
    parse(&text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
}

fn p(percent: f64) -> Probability {
    Probability::new(percent / 100.0).unwrap()
}

#[test]
fn what_tc_takes_is_taken() {
    for text in [
        "",
        "rate 10",
        "rate 1KiBps",
        "rate 10mbit -14",
        "rate 10Mibit 20 100 5",
        "rate 0",
        "limit 10k",
        "limit 0x10",
        "limit 10 delay 10ms limit 20",
        "loss 10",
        "loss random 5% 25%",
        "loss state 1%",
        "loss gemodel 1% 10% 70% 0.1%",
        "loss 1% ecn",
        "drop 1%",
        "delay 1e2ms",
        "delay .5ms",
        "delay 10ms 20ms 25",
        "delay 1ms delay 2ms",
        "latency 5ms",
        "del 1ms",
        "d 1ms",
        "dup 1%",
        "re 5% delay 1ms",
        "delay 1ms reorder 25% gap 5",
        "corrupt 0.1% 5",
        "slot 800us",
        "slot 800us 1ms packets 3 bytes 10k",
        "slot distribution normal 1ms 100us",
        "delay 10ms 1ms distribution paretonormal",
    ] {
        assert!(read(text).is_ok(), "{text}: {:?}", read(text));
    }
}

#[test]
fn what_tc_refuses_is_refused_with_what_to_write() {
    for (text, said) in [
        ("rate 1k", "rate: '1k' is not a rate: write for example rate 10mbit"),
        ("loss 101%", "loss: '101%' is not a percentage from 0 to 100: write for example loss 1%"),
        ("loss 1%2", "loss: '1%2' is not a percentage from 0 to 100: write for example loss 1%"),
        ("loss foo", "loss: 'foo' is not a model: write a percentage, random, state or gemodel"),
        ("loss .5%", "loss: '.5%' is not a model: write a percentage, random, state or gemodel"),
        ("loss", "'loss' needs a value: write for example loss 1%"),
        ("loss 1% loss 2%", "loss is given twice: write one of loss random, loss state, loss gemodel"),
        ("loss state 1% 2% 3% 4% 5% 6%", "what is '6%'?"),
        ("loss 1% extra", "what is 'extra'?"),
        ("delay", "'delay' needs a value: write for example delay 100ms"),
        ("delay -1ms", "delay: '-1ms' is not a time: write for example delay 100ms"),
        ("delay 1 m", "what is 'm'?"),
        ("delay 10ms 5ms 200%", "delay: '200%' is not a percentage"),
        ("delay 10ms distribution normal", "distribution is that of the jitter, and jitter is missing"),
        ("distribution normal", "distribution is that of the jitter, and jitter is missing"),
        ("r 1mbit", "reorder: '1mbit' is not a percentage"),
        ("reorder 25%", "reorder lets packets skip the delay, and delay is missing"),
        ("gap 5", "gap is the distance between reordered packets, and reorder is missing"),
        ("delay 1ms gap 5", "gap is the distance between reordered packets, and reorder is missing"),
        ("ecn", "ecn marks packets instead of losing them, and loss is missing"),
        ("slot distribution pareto 1ms", "'slot' needs a value"),
        ("slot 1ms 800us", "slot: '800us' is not a time no shorter than the first"),
        ("rate", "'rate' needs a value: write for example rate 10mbit"),
    ] {
        let error = read(text).expect_err(text).to_string();
        assert!(error.starts_with(said), "{text}: {error}");
    }
}

#[test]
fn values_are_those_tc_sends_to_the_kernel() {
    let all = read(
        "delay 100ms 10ms 25% distribution pareto loss gemodel 1% 10% 70% 0.1% reorder 25% 50% gap 5 seed 9",
    );
    let arguments = Arguments {
        delay: Duration::from_ms(100),
        jitter: Duration::from_ms(10),
        delay_correlation: p(25.0),
        distribution: Some(Distribution::Pareto),
        loss: Some(LossModel::GilbertElliott { p: p(1.0), r: p(10.0), bad: p(70.0), good: p(0.1) }),
        reorder: Chance { probability: p(25.0), correlation: p(50.0) },
        gap: 5,
        seed: Some(9),
        ..Arguments::default()
    };
    assert_eq!(all, Ok(arguments));
    let rate = read("rate 10mbit -14 48 5 limit 10k").unwrap();
    assert_eq!((rate.rate, rate.limit), (Rate::from_bps(10_000_000), 10240));
    assert_eq!((rate.packet_overhead, rate.cell_size, rate.cell_overhead), (-14, 48, 5));
    let state = |text| read(text).unwrap().loss.unwrap();
    let alone = LossModel::State { p13: p(1.0), p31: p(99.0), p32: p(0.0), p23: p(100.0), p14: p(0.0) };
    assert_eq!(state("loss state 1%"), alone);
    let all = LossModel::State { p13: p(1.0), p31: p(12.0), p32: p(3.0), p23: p(80.0), p14: p(4.0) };
    assert_eq!(state("loss state 1% 12% 3% 80% 4%"), all);
    let (us, ms) = (Duration::from_us, Duration::from_ms);
    let slot = read("slot 800us 1ms packets 3 bytes 10k").unwrap().slot;
    assert_eq!(
        slot,
        Some(SlotArguments { wait: SlotWait::Between(us(800), ms(1)), packets: 3, bytes: 10240 })
    );
    let slot = read("slot distribution normal 1ms 100us").unwrap().slot.unwrap();
    assert_eq!(slot.wait, SlotWait::By(Distribution::Normal, ms(1), us(100)));
    assert_eq!(read("delay 1ms reorder 5").unwrap().gap, 1);
}

#[test]
fn a_distribution_may_be_a_table() {
    let read = |words: &str, file: &str| {
        let tables =
            |name: &str| if name == "mine" { Ok(file.to_owned()) } else { Err("no such file".to_owned()) };
        parse_with(&words.split_whitespace().map(str::to_owned).collect::<Vec<_>>(), &tables)
    };
    let words = "delay 10ms 1ms distribution mine";
    let arguments = read(words, "# experiment\n 8192 -8192\n0\n").unwrap();
    assert_eq!(arguments.distribution, Some(Distribution::Table([-8192, 0, 8192].into())));
    let law = arguments.pipe().jitter.unwrap().law;
    assert_eq!(law, fastpath_link::JitterLaw::Table([-1_000_000_000, 0, 1_000_000_000].into()));
    for (words, file, said) in [
        ("delay 1ms 1ms distribution other", "", "distribution other: no such file: write uniform"),
        (words, "1 x", "distribution mine: 'x' is not a 16-bit number"),
        (words, "40000", "distribution mine: '40000' is not a 16-bit number"),
        (words, "# none", "distribution mine: a table has from 1 to 16384 numbers"),
    ] {
        let error = read(words, file).unwrap_err().to_string();
        assert!(error.starts_with(said), "{error}");
    }
    assert!(parse(&words.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).is_err());
}

proptest::proptest! {
    #[test]
    fn random_words_are_read_or_refused(words in proptest::collection::vec("(delay|loss|rate|slot|state|gemodel|[0-9]{1,3}(ms|%|mbit|)|\\PC{0,4})", 0..8)) {
        let _ = parse(&words);
    }
}
