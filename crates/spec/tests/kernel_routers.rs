//! The keys of routing daemons.

#[test]
fn mistakes_in_the_keys_of_a_routing_daemon_are_answered_with_what_to_write() {
    let said = |router: &str| {
        let text = format!("[host.a]\n[router.r]\n{router}\n[[link]]\nbetween = ['a', 'r']");
        let mistakes = fastpath_spec::parse(&text).expect_err("a mistake");
        mistakes.iter().map(|mistake| format!("{}; {}", mistake.what, mistake.instead)).collect::<Vec<_>>()
    };
    let frr = |keys: &str| said(&format!("daemon = 'frr'\n{keys}"));
    let is = |found: Vec<String>, expected: &str| assert_eq!(found, [expected]);
    is(said("daemon = 'quagga'"), "'quagga' is not a routing daemon; write one of frr, bird");
    is(
        said("ospf = true"),
        "ospf is a key of a routing daemon, and router r has none; write daemon = \"frr\" or \"bird\"",
    );
    is(said("daemon = 'bird'\nisis = true"), "BIRD has no isis; write daemon = \"frr\"");
    is(
        said("daemon = 'frr'\nkind = 'engine'\nospf = true"),
        "a daemon runs in a namespace, and kind is \"engine\"; write kind = \"kernel\"",
    );
    is(frr(""), "the daemon has nothing to do; write ospf = true, or bgp, isis, pim");
    is(
        frr("ospf = { hello = '300ms' }"),
        "300ms is not a time that routing daemons take; write hello = \"1s\", whole seconds up to 65535",
    );
    is(
        frr("ospf = { hello = '10s', dead = '4s' }"),
        "ospf sends a hello every 10s, so with dead = \"4s\" its neighbors are lost in between; write dead = \"40s\", longer than hello",
    );
    is(
        frr("bgp = { asn = 1, hello = '3s', dead = '3s' }"),
        "bgp sends a hello every 3s, so with dead = \"3s\" its neighbors are lost in between; write dead = \"9s\", longer than hello",
    );
    assert_eq!(frr("pim = { dead = '1s' }").len(), 1);
    is(frr("ospf = { area = 'one' }"), "'one' is not an area; write \"0.0.0.0\"");
    is(frr("isis = { area = '49.1' }"), "'49.1' is not an area; write \"49.0001\"");
    is(frr("ospf = { costs = { r-x = 3 } }"), "r has no link 'r-x'; write one of a-r");
    is(frr("bgp = { asn = 0 }"), "asn = 0 is out of range; write a number from 1 to 4294967295");
    is(
        frr("config = 'none.conf'")
            .into_iter()
            .map(|text| text.rsplit(';').next().unwrap_or_default().to_owned())
            .collect(),
        " write the path of a configuration, relative to this file, or its lines",
    );
    is(
        frr("bgp = { peers = 3 }").into_iter().take(1).collect(),
        "bgp has no key 'peers'; write one of asn, unnumbered, hello, dead",
    );
}
