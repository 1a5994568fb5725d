//! Tests `fastpath shell` and `fastpath netem` on the real kernel, in a separate network namespace
//! (unshare(1)).

use std::process::{Command, Output};

/// Runs a script in a new network namespace, with `$F` set to the program. Returns `None` and
/// reports a skip if that is not permitted.
fn alone(test: &str, script: &str) -> Option<Output> {
    let needed = ["iperf3", "ping", "curl"].iter().find(|program| script.contains(**program));
    let check = format!("test -w /dev/net/tun && command -v {}", needed.unwrap_or(&"sh"));
    let permitted = Command::new("unshare").args(["-n", "sh", "-c", &check]).output();
    if !permitted.is_ok_and(|output| output.status.success()) {
        let line = format!("SKIPPED: {test}: no network namespaces, TAPs, iperf3, ping or curl here\n");
        eprint!("{line}");
        if let Some(log) = std::env::var_os("FASTPATH_SKIP_LOG") {
            use std::io::Write;
            let file = std::fs::OpenOptions::new().create(true).append(true).open(log);
            file.and_then(|mut file| file.write_all(line.as_bytes())).unwrap();
        }
        return None;
    }
    let mut command = Command::new("unshare");
    command.args(["-n", "sh", "-c", script]).env("F", env!("CARGO_BIN_EXE_fastpath"));
    Some(command.output().unwrap())
}

#[test]
fn shells_nest_and_return_the_exit_code_of_the_program() {
    let script = "$F shell --delay 1ms -- $F shell --rate 10Mbit -- sh -c 'cat /proc/net/route; exit 7'";
    let Some(output) = alone("shells_nest", script) else { return };
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    let routes = String::from_utf8(output.stdout).unwrap();
    // The default route goes to 100.68.64.1, the far end of the inner link. /proc prints addresses
    // in little-endian byte order.
    assert!(routes.contains("eth0\t00000000\t01404464"), "{routes}");
}

#[test]
fn a_shell_shows_its_own_interfaces_in_sys() {
    let script = "$F shell --delay 1ms -- sh -c 'ls /sys/class/net; $F shell -- ls /sys/class/net'";
    let Some(output) = alone("a_shell_shows_its_own_interfaces", script) else { return };
    let names = String::from_utf8(output.stdout.clone()).unwrap();
    // Inside the outer shell, and inside the inner one, whose outer end is in the outer shell.
    let names: Vec<&str> = names.split_whitespace().collect();
    assert_eq!(names, ["eth0", "lo", "eth0", "lo"], "{output:?}");
}

#[test]
fn a_killed_shell_leaves_no_program() {
    // A duration that no other process sleeps.
    let sleep = format!("sleep 1000.{}", std::process::id());
    let script = format!(
        "$F shell -- sh -c 'setsid env -i {sleep} & {sleep} & wait' & shell=$!
        until [ $(pgrep -fxc '{sleep}') = 2 ]; do kill -0 $shell || exit 9; done
        kill -9 $shell; wait $shell
        tries=0
        while pgrep -fx '{sleep}' && [ $tries -lt 600 ]; do tries=$((tries + 1)); sleep .05; done
        echo == found; pgrep -fxc '{sleep}'; echo == left; ip -o link | grep -c fp-shell"
    );
    let Some(output) = alone("a_killed_shell_leaves_no_program", &script) else { return };
    let said = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!((part(&said, "found").trim(), part(&said, "left").trim()), ("0", "0"), "{output:?}");
}

#[test]
fn netem_refuses_arguments_that_tc_refuses_and_missing_interfaces() {
    let script = "$F netem dev lo delay 1ms bogus; echo $?; $F netem dev nope0 delay 1ms; echo $?";
    let Some(output) = alone("netem_refuses", script) else { return };
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("what is 'bogus'?") && said.contains("port nope0: no such interface"), "{said}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "2\n2\n");
}

#[test]
fn netem_without_rights_gives_one_reason() {
    let script = "setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all --inh-caps=-all \
                  $F netem dev lo delay 1ms; echo $?";
    let Some(output) = alone("netem_without_rights", script) else { return };
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("port lo: not permitted"), "{said}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "2\n");
}

/// Returns the minimum round trip of a ping summary, milliseconds, and the number of answers.
fn pings(summary: &str) -> (f64, u32) {
    let least = summary
        .lines()
        .find_map(|line| line.strip_prefix("rtt min/avg/max/mdev = ")?.split('/').next()?.parse().ok());
    let received =
        summary.lines().find_map(|line| line.split(", ").nth(1)?.strip_suffix(" received")?.parse().ok());
    (least.unwrap_or(f64::NAN), received.unwrap_or(0))
}

/// Returns the text between two marks of a script's output.
fn part<'t>(text: &'t str, mark: &str) -> &'t str {
    let rest = text.split_once(&format!("== {mark}\n")).unwrap_or_else(|| panic!("no {mark}: {text}")).1;
    rest.split("== ").next().unwrap()
}

/// Sets up two namespaces with a veth pair: v0 in this one, v1 in the other. `on ARGUMENTS` starts
/// netem on v0 and waits until it runs.
const PAIR: &str = "
    sysctl -qw net.ipv6.conf.default.disable_ipv6=1
    unshare -n sleep 60 & peer=$!
    trap 'kill $peer $netem 2>/dev/null' EXIT
    until [ \"$(readlink /proc/$peer/ns/net)\" != \"$(readlink /proc/$$/ns/net)\" ]; do :; done
    ip link add v0 type veth peer name v1 && ip link set v1 netns $peer
    ip addr add 10.9.0.1/24 dev v0 && ip link set v0 up
    nsenter -t $peer -n sh -c 'ip addr add 10.9.0.2/24 dev v1; ip link set v1 up; ip link set lo up'
    ping -c1 -W9 10.9.0.2 >/dev/null
    out=$(mktemp)
    on() { : >$out; $F netem dev v0 $@ >$out & netem=$!; until grep -q 'netem is on' $out; do kill -0 $netem || exit 9; done; }
    off() { kill -$1 $netem; wait $netem; rm -f $out; }
    echos() { awk '/^Icmp: [0-9]/ { print $10 }' /proc/net/snmp; }
";

#[test]
fn netem_delays_and_drops_egress_frames_and_leaves_ingress_unchanged() {
    let script = PAIR.to_owned()
        + "on delay 40ms; echo '== delay'; ping -c5 -i.02 -W9 10.9.0.2; off TERM
        on loss 30% seed 7; echo '== loss'; ping -q -c200 -i.002 -W1 10.9.0.2; off INT
        on loss 100%; before=$(echos); echo '== none'; nsenter -t $peer -n ping -q -c9 -i.01 -W1 10.9.0.1
        echo '== arrived'; echo $(($(echos) - before)); off TERM
        echo '== after'; ping -c5 -i.01 -W9 10.9.0.2";
    let Some(output) = alone("netem_delays_and_drops_egress_frames", &script) else { return };
    let said = String::from_utf8(output.stdout.clone()).unwrap();
    // ping may exit before the last answers if the host stalls.
    let (least, answers) = pings(part(&said, "delay"));
    assert!(least >= 40.0 && (1..=5).contains(&answers), "{said} {output:?}");
    let answers = pings(part(&said, "loss")).1;
    // The frame accounting of the second link, printed at its end.
    let books = String::from_utf8_lossy(&output.stderr);
    let books = books
        .lines()
        .filter(|line| line.starts_with("frames: "))
        .nth(1)
        .expect("each link prints its frame accounting");
    let books: Vec<&str> = books.split_whitespace().collect();
    let count = |what: &str| -> u64 {
        let at = books.iter().position(|word| *word == what).unwrap_or_else(|| panic!("{books:?}"));
        books[at - 1].parse().unwrap()
    };
    let (frames, lost) = (count("in") as f64, count("dropped") as f64);
    // Frame accounting holds fewer than 200 frames if netem ended during a host stall. Four
    // standard deviations: a false alarm once in 15 000 runs.
    assert!(u64::from(answers) <= count("delivered") && frames >= 50.0, "{books:?}");
    assert!((lost - 0.3 * frames).abs() <= 4.0 * (0.21 * frames).sqrt(), "{books:?}");
    assert_eq!(pings(part(&said, "none")).1, 0);
    assert_eq!(part(&said, "arrived").trim(), "9", "{said}");
    assert_eq!(pings(part(&said, "after")).1, 5);
}

#[test]
fn netem_restores_the_interface_however_it_ends() {
    let script = PAIR.to_owned()
        + "state() { tc qdisc show dev v0; tc filter show dev v0 egress; ip -o link | grep -c fp-netem; ip -o addr show dev v0; }
        echo '== before'; state
        on delay 1ms; echo '== during'; state; off TERM; echo '== term'; state
        on delay 1ms; off INT; echo '== int'; state
        on delay 1ms; off KILL 2>/dev/null
        i=0; while tc qdisc show dev v0 | grep -q clsact && [ $i -lt 1000 ]; do i=$((i+1)); done
        echo '== kill'; state; ping -c3 -i.01 -W9 10.9.0.2
        tc qdisc add dev v0 clsact; on delay 1ms; off TERM; echo '== theirs'; tc qdisc show dev v0
        tc qdisc del dev v0 clsact; on delay 1ms; tc filter add dev v0 ingress prio 7 u32 match u32 0 0 flowid 1:1; off TERM
        echo '== used'; tc filter show dev v0 ingress
        on delay 1ms; ip link del v0; wait $netem; code=$?; rm -f $out; echo '== gone'; echo $code; ip -o link | grep -c fp-netem";
    let Some(output) = alone("netem_restores_the_interface", &script) else { return };
    let said = String::from_utf8(output.stdout.clone()).unwrap();
    let before = part(&said, "before");
    assert!(part(&said, "during").contains("mirred"), "{said} {output:?}");
    assert!(part(&said, "theirs").contains("clsact"), "{said}");
    assert!(part(&said, "used").contains("pref 7 u32"), "{said} {output:?}");
    assert_eq!((part(&said, "term"), part(&said, "int")), (before, before));
    assert!(part(&said, "kill").starts_with(before), "{said}");
    assert_eq!(pings(part(&said, "kill")).1, 3);
    assert_eq!(part(&said, "gone").trim(), "2\n0", "netem ends with its interface: {output:?}");
}

#[test]
fn nested_shells_add_their_delays_and_carry_tcp_at_the_rate_of_a_trace() {
    // Twelve delivery opportunities in 12 ms: 12.03 Mbit/s.
    let trace = std::env::temp_dir().join(format!("fastpath-shell-{}.trace", std::process::id()));
    std::fs::write(&trace, (1..=12).map(|ms| format!("{ms}\n")).collect::<String>()).unwrap();
    let script = format!(
        "ip link set lo up; iperf3 -s -1 >/dev/null & server=$!
        until grep -q ':1451 ' /proc/net/tcp /proc/net/tcp6; do kill -0 $server || exit 9; done
        $F shell --delay 5ms -- $F shell --delay 10ms --trace-up {0} --trace-down {0} -- sh -c '
            echo == ping; ping -c5 -i.05 -W9 100.68.0.1; echo == tcp; iperf3 -J -c 100.68.0.1 -n 1000000'
        echo == left; ip -o link | grep -c fp-shell; kill $server",
        trace.display()
    );
    let output = alone("nested_shells_add_their_delays", &script);
    std::fs::remove_file(&trace).unwrap();
    let Some(output) = output else { return };
    let said = String::from_utf8(output.stdout.clone()).unwrap();
    let (least, answers) = pings(part(&said, "ping"));
    assert!(least >= 30.0 && (1..=5).contains(&answers), "{said} {output:?}");
    let tcp: serde_json::Value = serde_json::from_str(part(&said, "tcp")).unwrap();
    let received = &tcp["end"]["sum_received"];
    let (bytes, bps) = (received["bytes"].as_f64().unwrap(), received["bits_per_second"].as_f64().unwrap());
    // iperf3 counts only payload, and its clock starts before the first byte. It does not wait for
    // bytes in flight after the client's last write.
    assert!(bytes >= 100_000.0 && bps <= 12.04e6, "{received}");
    assert_eq!(part(&said, "left").trim(), "0");
}

#[test]
fn limits_of_a_shell_with_a_trace_are_those_of_mm_link() {
    let directory = std::env::temp_dir();
    let [trace, socket] =
        ["trace", "sock"].map(|end| directory.join(format!("fastpath-limits-{}.{end}", std::process::id())));
    std::fs::write(&trace, "1\n").unwrap();
    let script = format!(
        "$F shell --trace-up {0} --trace-down {0} --queue 14p --down queue=60000B --http unix:{1} -- \
         curl -sS --unix-socket {1} http://localhost/links",
        trace.display(),
        socket.display()
    );
    let output = alone("limits_of_a_shell_with_a_trace", &script);
    std::fs::remove_file(&trace).unwrap();
    let Some(output) = output else { return };
    let Ok(links) = serde_json::from_slice::<serde_json::Value>(&output.stdout) else { panic!("{output:?}") };
    let queues = [0, 1].map(|direction| links[0]["directions"][direction]["queue"].to_string());
    assert!(queues[0].contains("mahimahi") && queues[0].contains("14"), "{queues:?}");
    assert!(queues[1].contains("mahimahi") && queues[1].contains("60000"), "{queues:?}");
}

#[test]
fn a_shell_has_the_values_of_its_preset_and_a_control_interface() {
    let socket = std::env::temp_dir().join(format!("fastpath-shell-{}.sock", std::process::id()));
    let script = format!(
        "$F shell --preset 3g --rate 2Mbit --http unix:{0} -- curl -sS --unix-socket {0} http://localhost/links",
        socket.display()
    );
    let Some(output) = alone("a_shell_has_the_values_of_its_preset", &script) else { return };
    let Ok(links) = serde_json::from_slice::<serde_json::Value>(&output.stdout) else { panic!("{output:?}") };
    let up = &links[0]["directions"][0];
    assert_eq!(
        (&up["from"], &up["rate"], &up["delay"]),
        (&"inside".into(), &"2Mbit".into(), &"150ms".into())
    );
}
