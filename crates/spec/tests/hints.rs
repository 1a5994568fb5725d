//! What is said about keys of other tools, lists of hosts, and files of other formats.

use fastpath_spec::parse;

fn said(text: &str) -> Vec<String> {
    parse(text).unwrap_err().iter().map(ToString::to_string).collect()
}

#[test]
fn keys_of_other_tools_have_what_to_write() {
    let link = |key: &str| format!("[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\n{key} = '1'\n");
    for (key, how) in [
        ("latency", "delay = \"25ms\""),
        ("bandwidth", "rate = \"10Mbit\""),
        ("bw", "rate = \"10Mbit\""),
        ("queue_size", "queue = \"50p\""),
        ("limit", "queue = \"50p\""),
        ("jitter_ms", "jitter = { law = \"normal\", sd = \"2ms\" }"),
    ] {
        assert_eq!(said(&link(key)), [format!("5:1: link has no key '{key}'; write {how}")]);
    }
    for loss in ["{ kind = 'burst', probability = '1%' }", "{ probability = '1%', consecutive = 3 }"] {
        let text = format!("[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\nloss = {loss}\n");
        let said = said(&text);
        assert!(
            said.len() == 1 && said[0].contains("write kind = \"runs\", passed = [97], lost = [3]"),
            "{said:?}"
        );
    }
    for (key, how) in [
        ("container", "image = \"IMAGE\" to start one, or attach = \"container:NAME\""),
        ("privateDirs", "private = [\"/var/run\"]"),
    ] {
        let host = said(&format!("[host.a]\n{key} = 'debian'\n"));
        assert_eq!(host[0], format!("2:1: host a has no key '{key}'; write {how}"));
    }
}

#[test]
fn a_list_of_hosts_and_a_yaml_file_are_said_once() {
    let hosts = "[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n";
    assert_eq!(said(hosts), ["1:1: host is a list of tables; write [host.a], [host.b] for each"]);
    let linked = "[[host]]\nname = 'a'\nmac = 'x'\n[[router]]\nname = 'r'\n[[link]]\nbetween = ['a', 'r']\n";
    assert_eq!(
        said(linked),
        [
            "1:1: host is a list of tables; write [host.a] for each",
            "3:7: 'x' is not a MAC address; write six bytes in hexadecimal, for example \"02:00:00:00:00:2a\"",
            "4:1: router is a list of tables; write [router.r] for each",
        ]
    );
    for yaml in ["name: lab\ntopology:\n  nodes:\n    a: {}\n", "# x\n---\nhost:\n - a\n", "- a\n- b: c\n"] {
        let said = said(yaml);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].contains("this is YAML, and a spec is TOML; write"), "{said:?}");
    }
}
