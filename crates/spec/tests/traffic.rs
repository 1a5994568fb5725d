//! Traffic of a description: what is read, what it resolves to, and what is said of mistakes.

use fastpath_spec::{Description, NO_FILES, Topology, describe, parse, resolve};
use fastpath_traffic::{
    ArrivalModel, CongestionControl, PeriodLaw, TransferModel, TransferProtocol, VOICE, Workload,
};
use fastpath_units::{Bytes, Duration, Time};

const NETWORK: &str = "[host.a]\n[host.b]\n[router.r]\n\
    [[link]]\nbetween = ['a', 'r']\nrate = '100Mbit'\n\
    [[link]]\nbetween = ['r', 'b']\nname = 'access'\nrate = '10Mbit'\nb_to_r = { rate = '1Mbit', overhead = 24 }\n";

fn read(traffic: &str) -> Topology {
    let text = format!("{NETWORK}{traffic}");
    parse(&text).unwrap_or_else(|mistakes| panic!("{}", mistakes[0])).0
}

fn mistake(traffic: &str) -> String {
    let mistakes = parse(&format!("{NETWORK}{traffic}")).expect_err("a mistake");
    mistakes
        .iter()
        .map(|mistake| format!("{}; {}", mistake.what, mistake.instead))
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn every_kind_is_read_and_described() {
    let topology = read(
        "[[traffic]]\nfrom = 'a'\nto = 'b'\nrate = '2Mbit'\nsize = 500\nstart = '1s'\nstop = '3s'\ndscp = 46\n\
         [[traffic]]\nfrom = 'b'\nto = 'a'\nkind = 'poisson'\nrate = '300kbit'\nport = 9\n\
         [[traffic]]\nfrom = 'a'\nto = 'b'\nkind = 'on-off'\nrate = '1Mbit'\non = '500ms'\noff = { law = 'pareto', mean = '2s' }\n\
         [[traffic]]\nfrom = 'a'\nto = 'b'\nname = 'call'\nkind = 'voice'\n",
    );
    let names: Vec<&str> = topology.traffic.iter().map(|traffic| traffic.name.as_str()).collect();
    assert_eq!(names, ["a-b", "b-a", "a-b-2", "call"]);
    let first = &topology.traffic[0];
    assert_eq!(
        (first.start, first.stop),
        (Time::ZERO + Duration::from_secs(1), Some(Time::ZERO + Duration::from_secs(3)))
    );
    assert_eq!((first.model.size, first.port, first.dscp), (500, 5001, 46));
    assert_eq!(first.model.arrivals, ArrivalModel::Constant("2Mbit".parse().unwrap()));
    let [_, second, third, call] = &topology.traffic[..] else { panic!("four") };
    assert_eq!((second.port, third.port, second.model.size), (9, 5003, 1000));
    let off = PeriodLaw::Pareto { mean: Duration::from_secs(2), shape: 1.5 };
    let on = PeriodLaw::Exponential(Duration::from_ms(500));
    assert_eq!(third.model.arrivals, ArrivalModel::OnOff { rate: "1Mbit".parse().unwrap(), on, off });
    assert_eq!(call.model, VOICE);
    // The description of the topology resolves to it.
    let text = describe(&topology).to_json().to_string();
    let mut description = Description::from_json(&text, NO_FILES).unwrap();
    // A call is described by its values.
    assert_eq!(description.traffic[3].rate.unwrap().as_bps(), 68_800);
    assert_eq!(resolve(&description, NO_FILES).unwrap().0, topology);
    description.traffic.clear();
    assert!(resolve(&description, NO_FILES).unwrap().0.traffic.is_empty());
}

#[test]
fn a_transfer_over_quic_has_the_keys_of_tcp() {
    let keys =
        "size = '2MB'\nflows = 3\ncongestion = 'reno'\necn = true\nstart = '1s'\nport = 443\ndscp = 10";
    let topology = read(&format!("[[traffic]]\nfrom = 'a'\nto = 'b'\nkind = 'quic'\n{keys}\n"));
    let [one] = &topology.transfers[..] else { panic!("one") };
    let model = TransferModel {
        protocol: TransferProtocol::Quic,
        flows: 3,
        workload: Workload::Bulk(Some(Bytes(2_000_000))),
        congestion: CongestionControl::Reno,
        ecn: true,
    };
    assert_eq!((&one.model, one.port, one.dscp, one.model.kind()), (&model, 443, 10, "quic"));
    let described = describe(&topology).to_json().to_string();
    assert!(described.contains("\"kind\":\"quic\""), "{described}");
    let description = Description::from_json(&described, NO_FILES).unwrap();
    assert_eq!(resolve(&description, NO_FILES).unwrap().0, topology);
    // A path of QUIC carries datagrams of 1200 bytes.
    let small = |family: &str, mtu: u32| {
        format!(
            "{family}[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\nmtu = {mtu}\n[[traffic]]\nfrom = 'a'\nto = 'b'\nkind = 'quic'\n"
        )
    };
    for (family, least) in [("", 1228), ("family = 'v4'\n", 1228)] {
        assert!(parse(&small(family, least)).is_ok());
        let mistakes = parse(&small(family, least - 1)).expect_err("it is refused");
        let mistakes: Vec<String> =
            mistakes.iter().map(|one| format!("{}; {}", one.what, one.instead)).collect();
        let said = format!(
            "QUIC needs an MTU of {least}, and a link of a has {}; write mtu = {least} or more at that link, or kind = \"tcp\"",
            least - 1
        );
        assert!(mistakes.contains(&said), "{mistakes:?}");
    }
}

#[test]
fn a_load_counts_all_bytes_on_the_link() {
    let rate = |text: &str| match read(text).traffic[0].model.arrivals {
        ArrivalModel::Constant(rate) | ArrivalModel::Poisson(rate) | ArrivalModel::OnOff { rate, .. } => {
            rate.as_bps() as f64
        }
    };
    // 1000 bytes of payload are 1042 with the headers of UDP, IPv4 and Ethernet.
    let down = rate("[[traffic]]\nfrom = 'a'\nto = 'b'\nload = '80% of access'\n");
    assert!((down - 8e6 * 1000.0 / 1042.0).abs() < 1.0, "{down}");
    // The other direction has its own rate and overhead.
    let up = rate("[[traffic]]\nfrom = 'b'\nto = 'a'\nload = '50 % of access'\n");
    assert!((up - 0.5e6 * 1000.0 / 1066.0).abs() < 1.0, "{up}");
    // The slowest link on the way is access.
    assert_eq!(rate("[[traffic]]\nfrom = 'a'\nto = 'b'\nload = '80% of bottleneck'\n"), down);
    // Half of the time on: twice the rate.
    let on_off =
        "kind = 'on-off'\non = { law = 'constant', mean = '1s' }\noff = { law = 'constant', mean = '1s' }";
    let bursts = rate(&format!("[[traffic]]\nfrom = 'a'\nto = 'b'\n{on_off}\nload = '10% of a-r'\n"));
    assert!((bursts / (20e6 * 1000.0 / 1042.0) - 1.0).abs() < 1e-3, "{bursts}");
}

#[test]
fn loads_above_a_link_are_said_once() {
    let warnings = |traffic: &str| -> Vec<String> {
        let (_, warnings) = parse(&format!("{NETWORK}{traffic}")).expect("no mistake");
        warnings.iter().map(ToString::to_string).filter(|warning| warning.contains("traffic")).collect()
    };
    let six = "[[traffic]]\nfrom = 'a'\nto = 'b'\nrate = '6Mbit'\nstop = '2s'\n";
    assert_eq!(warnings(six), [""; 0]);
    let later = format!("{six}{}", six.replace("stop = '2s'", "start = '2s'"));
    assert_eq!(warnings(&later), [""; 0], "one after the other");
    let at_once = format!("{six}{}", six.replace("stop = '2s'", "start = '1s'"));
    let said = "traffic offers 12.504Mbit to access from 1s, headers included, and its rate is 10Mbit: packets are lost";
    let said_at = warnings(&at_once);
    assert!(
        said_at.len() == 1 && said_at[0].starts_with("17:1: ") && said_at[0].ends_with(said),
        "{said_at:?}"
    );
    let full = "[[traffic]]\nfrom = 'a'\nto = 'b'\nload = '100% of access'\n";
    assert_eq!(warnings(full), [""; 0], "a full link");
}

#[test]
fn mistakes_say_what_to_write() {
    let with = |rest: &str| mistake(&format!("[[traffic]]\nfrom = 'a'\nto = 'b'\n{rest}\n"));
    for (said, part) in [
        (with(""), "traffic has no rate; write rate = \"2Mbit\", or load = \"80% of a-b\""),
        (with("rate = '1Mbit'\nload = '1% of access'"), "rate and load are both given"),
        (with("load = '80% of acces'"), "there is no link 'acces'; write \"80% of access\""),
        (with("size = 15\nrate = '1Mbit'"), "write a number from 16 to 65507"),
        (
            mistake(
                "[[traffic]]\nfrom = 'a'\nto = 'b'\nrate = '1Mbit'\nport = 9\n[[traffic]]\nfrom = 'a'\nto = 'b'\nrate = '1Mbit'\nport = 9\n",
            ),
            "b receives a-b at port 9 too; write another port",
        ),
        (with("load = '0% of access'"), "is not a load"),
        (with("load = '120% of access'"), "for more than 100 %, write rate"),
        (with("rate = '1Mbit'\nsize = 1473"), "does not fit into the MTU of its sender; write at most 1472"),
        (with("rate = '1Mbit'\nkind = 'on-of'"), "'on-of' is not a kind of traffic; write \"on-off\""),
        (with("rate = '1Mbit'\nkind = 'on-off'\non = '1s'"), "on-off traffic has no off"),
        (
            with(
                "rate = '1Mbit'\nkind = 'on-off'\non = '1s'\noff = { law = 'pareto', mean = '1s', shape = 1 }",
            ),
            "no finite mean; write shape = 1.5",
        ),
        (with("kind = 'voice'\nrate = '1Mbit'"), "voice has a rate and a size of its own"),
        (with("rate = '1Mbit'\nstart = '2s'\nstop = '1s'"), "stops before it starts"),
        (with("rate = '1Mbit'\ndscp = 64"), "write a number from 0 to 63"),
        (mistake("[[traffic]]\nfrom = 'a'\nto = 'r'\nrate = '1Mbit'\n"), "r is not a host"),
        (mistake("[[traffic]]\nfrom = 'a'\nto = 'a'\nrate = '1Mbit'\n"), "goes to the host that sends it"),
        (mistake("[[traffic]]\nfrom = 'x'\nrate = '1Mbit'\n"), "there is no host 'x'"),
        (mistake("[[traffic]]\nfrom = 'a'\nrate = '1Mbit'\n"), "traffic has no to; write to = \"b\""),
        (mistake("[traffic]\nfrom = 'a'\n"), "write [[traffic]]"),
    ] {
        assert!(said.contains(part), "{part:?} in {said:?}");
    }
}

#[test]
fn mistakes_in_traffic_over_tcp_and_quic_say_what_to_write() {
    let with = |keys: &str| mistake(&format!("[[traffic]]\nfrom = 'a'\nto = 'b'\n{keys}\n"));
    for (said, part) in [
        (with("kind = 'tcp'\nrate = '1Mbit'"), "traffic has no key 'rate'"),
        (with("kind = 'tcp'\nsize = '0B'"), "size is 0; write size = \"30kB\""),
        (with("kind = 'tcp'\ncongestion = 'bbr'"), "'bbr' is not a congestion control"),
        (with("kind = 'tcp'\nflows = 0"), "write a number from 1 to 10000"),
        (with("kind = 'quic'\nrate = '1Mbit'"), "traffic has no key 'rate'"),
        (with("kind = 'quic'\nsize = '0B'"), "size is 0; write size = \"30kB\""),
        (with("kind = 'quic'\ncongestion = 'bbr'"), "'bbr' is not a congestion control"),
        (with("kind = 'quic'\nrequests = 2"), "traffic has no key 'requests'"),
        (with("kind = 'quick'"), "'quick' is not a kind of traffic; write \"quic\""),
        (with("kind = 'request'"), "requests have no size of answers; write size = \"30kB\""),
        (with("kind = 'request'\nsize = { law = 'pareto', mean = '1kB', shape = 1 }"), "no finite mean"),
        (
            with("kind = 'request'\nsize = { law = 'constant', mean = '1kB', shape = 2 }"),
            "shape is of a Pareto law",
        ),
        (with("kind = 'request'\nsize = { values = ['1kB'], file = 'x' }"), "has values and a file"),
        (with("kind = 'request'\nsize = { values = ['1kB'], mean = '1kB' }"), "has no key 'mean'"),
        (with("kind = 'request'\nsize = { values = [] }"), "is not a list of amounts"),
        (with("kind = 'request'\nsize = { file = 'x' }"), "x cannot be read"),
        (with("kind = 'request'\nsize = '1kB'\nthink = '0s'"), "think is 0"),
        (with("rate = '1Mbit'\nflows = 2"), "traffic has no key 'flows'"),
        (with("rate = '1Mbit'\nkind = 'on-off'\non = '1s'\noff = { values = ['1s'] }"), "off has no mean"),
    ] {
        assert!(said.contains(part), "{part:?} in {said:?}");
    }
}
