//! The control interface of a running engine: raw HTTP over TCP and the Unix socket, and curl.
#![cfg(target_os = "linux")]

mod common;

use common::{finish, options};
use fastpath_engine::control::{Changes, Dashboard, HttpAddress, Request, Response, Setting, call, openapi};
use fastpath_engine::port::{Memory, Port};
use fastpath_engine::{Idle, Options, Running, start};
use fastpath_net::EdgeId;
use fastpath_spec as spec;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

/// Two links to a switch, in one group with traces that wait for a command.
const SPEC: &str = "[host.a]\n[host.b]\n[switch.s]\n[group.cell]\nstart = \"command\"\n\
    [[link]]\nbetween = [\"a\", \"s\"]\ngroup = \"cell\"\ntrace = \"t.csv\"\n\
    [[link]]\nbetween = [\"b\", \"s\"]\ngroup = \"cell\"\n";
const TRACE: &str = "duration_s,rate_mbps\n1000,3\n1000,4\n";

fn run(test: &str) -> (Running, SocketAddr, PathBuf) {
    run_spec(test, SPEC)
}

fn run_spec(test: &str, text: &str) -> (Running, SocketAddr, PathBuf) {
    let path = std::env::temp_dir().join(format!("fastpath-control-{test}-{}.sock", std::process::id()));
    let topology = spec::read(text, &|_| Ok(TRACE.to_owned())).unwrap().0.topology;
    let ports = [0, 1].map(|edge| {
        let port: Box<dyn Port> = Box::new(Memory::new(&format!("m{edge}"), 1 << 16).0);
        (EdgeId(edge), port)
    });
    let http = Some("open:127.0.0.1:0".parse().unwrap());
    let options = Options { control: Some(path.clone()), http, ..options(Idle::Save) };
    let running = start(topology, ports.into(), options).unwrap();
    let address = running.http().expect("it listens").address;
    (running, address, path)
}

/// Sends bytes and returns the status and the body.
fn raw(mut stream: impl Read + Write, request: &[u8]) -> (u16, String) {
    // The engine may close the connection in the middle of an oversized request.
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    // A capture is not text.
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.unwrap_or(0), body.to_owned())
}

fn request(address: SocketAddr, line: &str, body: &str) -> (u16, String) {
    let text = format!(
        "{line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    raw(TcpStream::connect(address).unwrap(), text.as_bytes())
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn links_are_shown_and_changed_together_over_tcp_and_the_socket_alike() {
    let (running, address, path) = run("alike");
    let (status, body) = request(address, "GET /links", "");
    assert_eq!((status, json(&body)[1]["name"].as_str()), (200, Some("b-s")));
    let change = r#"{"changes":[{"link":"a-s","from":"a","set":{"rate":"5Mbit"}},{"group":"cell","set":{"delay":"7ms"}}]}"#;
    let (status, body) = request(address, "POST /set", change);
    assert_eq!(status, 200, "{body}");
    let link = json(&request(address, "GET /links/a-s", "").1);
    assert_eq!(
        (&link["directions"][0]["rate"], &link["directions"][0]["delay"]),
        (&json!("5Mbit"), &json!("7ms"))
    );
    assert_eq!(link["directions"][1]["rate"], "unlimited");
    let Ok(Response::Report(report)) = call(&path, &Request::Report) else { panic!() };
    assert_eq!(report.links[1].directions[0].delay, "7ms");
    let groups = json(&request(address, "GET /groups", "").1);
    assert_eq!(groups, json!([{"name": "cell", "start": "command", "links": ["a-s", "b-s"]}]));
    let started = call(&path, &Request::Start { group: "cell".to_owned() });
    assert!(matches!(started, Ok(Response::Done(_))), "{started:?}");
    let link = json(&request(address, "GET /links/a-s", "").1);
    assert_eq!(
        (&link["directions"][0]["rate"], &link["directions"][1]["rate"]),
        (&json!("3Mbit"), &json!("3Mbit"))
    );
    finish(running);
}

/// Reads an answer without an end until it contains `text`, and returns all of it.
fn read_until(stream: &mut TcpStream, seen: &mut String, text: &str) {
    let mut buffer = [0; 4096];
    while !seen.contains(text) {
        let count = stream.read(&mut buffer).unwrap();
        assert!(count > 0, "the answer ended without {text}: {seen}");
        seen.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
}

/// Asks for events.
fn events(address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
    stream.write_all(b"GET /events HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    stream
}

#[test]
fn events_are_the_state_and_then_what_has_changed() {
    let (running, address, _) = run("events");
    // Readers that do not read disturb no other: old ones are disconnected, and nothing waits.
    let idle: Vec<TcpStream> = (0..40).map(|_| events(address)).collect();
    let (mut stream, mut seen) = (events(address), String::new());
    read_until(&mut stream, &mut seen, "event: state\ndata: ");
    read_until(&mut stream, &mut seen, "event: sample\ndata: ");
    assert!(seen.contains(r#""fields":["frames_in","bytes_in""#), "{seen}");
    assert!(!seen.contains(r#""delay":"7ms""#), "{seen}");
    let change = r#"{"changes":[{"link":"a-s","from":"s","set":{"delay":"7ms"}},{"group":"cell","set":{"rate":"5Mbit"}}]}"#;
    assert_eq!(request(address, "POST /set", change).0, 200);
    seen.clear();
    read_until(&mut stream, &mut seen, r#""delay":"7ms""#);
    drop((stream, idle));
    let listed = json(&request(address, "GET /changes", "").1);
    assert_eq!(listed["changes"][0]["from"], "s");
    assert_eq!(listed["changes"][0]["at"], listed["changes"][1]["at"], "one instant");
    let (status, text) = request(address, "GET /changes.toml", "");
    assert!(status == 200 && text.contains("direction = \"backward\"\ndelay = \"7ms\""), "{text}");
    let repeated = spec::read(&format!("{SPEC}{text}"), &|_| Ok(TRACE.to_owned())).unwrap().0.topology;
    let made = repeated.events.iter().filter(|event| event.at > fastpath_units::Time::ZERO);
    assert_eq!(made.count(), 3, "a link, and two links of a group");
    finish(running);
}

#[test]
fn the_dashboard_is_served_to_its_own_page_only() {
    let topology = spec::read(SPEC, &|_| Ok(TRACE.to_owned())).unwrap().0.topology;
    let ports = [0, 1].map(|edge| {
        let port: Box<dyn Port> = Box::new(Memory::new(&format!("m{edge}"), 1 << 16).0);
        (EdgeId(edge), port)
    });
    let picture = |topology: &spec::Topology| json!({ "nodes": topology.nodes.len() });
    let dashboard = Some(Dashboard { address: "127.0.0.1:0".parse().unwrap(), picture, nodes: None });
    let running = start(topology, ports.into(), Options { dashboard, ..options(Idle::Save) }).unwrap();
    let page = running.dashboard().expect("it is served");
    let (site, token) = page.split_once("/#token=").expect("the address has the token");
    let address: SocketAddr = site.strip_prefix("http://").unwrap().parse().unwrap();
    let get = |path: &str, headers: &str| {
        let text = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{headers}\r\n");
        raw(TcpStream::connect(address).unwrap(), text.as_bytes())
    };
    for path in ["/", "/dashboard.js", "/style.css", "/uplot.js"] {
        assert_eq!(get(path, "").0, 200, "{path}");
    }
    for path in ["/picture", "/events", "/report", "/changes", "/nothing.js"] {
        assert_eq!(get(path, "").0, 401, "{path}");
    }
    let shown = format!("authorization: Bearer {token}\r\n");
    assert_eq!(get("/picture", &shown), (200, r#"{"nodes":3}"#.to_owned()));
    assert_eq!(get("/picture", &format!("{shown}origin: {site}\r\n")).0, 200);
    for origin in ["http://example.org", "null", "http://localhost:1"] {
        assert_eq!(get("/picture", &format!("{shown}origin: {origin}\r\n")).0, 403, "{origin}");
    }
    let elsewhere = b"GET / HTTP/1.1\r\nhost: example.org\r\nconnection: close\r\n\r\n";
    assert_eq!(raw(TcpStream::connect(address).unwrap(), elsewhere).0, 421, "DNS rebinding");
    running.stop().unwrap();
}

#[test]
fn a_value_that_an_active_trace_sets_cannot_be_set() {
    let (running, address, _) = run("traced");
    let rate = r#"{"changes":[{"link":"a-s","from":"a","set":{"rate":"5Mbit"}}]}"#;
    assert_eq!(request(address, "POST /set", rate).0, 200, "the trace has not started");
    assert_eq!(request(address, "POST /groups/cell/start", "").0, 200);
    let (status, body) = request(address, "POST /set", rate);
    let said = "link a-s: the trace t.csv sets its rate: leave rate out, or end the trace in the spec \
                (end = \"hold\", \"reset\" or \"stop\")";
    assert_eq!((status, json(&body)["error"].as_str()), (409, Some(said)));
    for other in [r#"{"link":"a-s","set":{"delay":"5ms"}}"#, r#"{"link":"b-s","set":{"rate":"5Mbit"}}"#] {
        let (status, body) = request(address, "POST /set", &format!(r#"{{"changes":[{other}]}}"#));
        assert_eq!(status, 200, "{body}");
    }
    let traced = json(&request(address, "GET /links/a-s", "").1);
    assert_eq!(traced["directions"][0]["traces"], json!(["t.csv: rate"]));
    assert_eq!(json(&request(address, "GET /links/b-s", "").1)["directions"][0].get("traces"), None);
    finish(running);
}

#[test]
fn every_value_can_be_changed_and_is_accepted_as_it_is_shown() {
    let (running, address, _) = run("values");
    let values = json!({
        "rate": "5Mbit", "overhead": 24, "delay": "7ms", "queue": "50p", "reorder": "25%", "state": "down",
        "loss": {"kind": "gilbert-elliott", "to_bad": "1%", "to_good": "25%", "loss_in_bad": "100%", "loss_in_good": "0%"},
        "jitter": {"law": "normal", "sd": "1ms", "half_life": "50ms", "reorder": "allow"},
        "duplicate": {"probability": "1%", "later": "5ms"},
        "corrupt": {"bits": 1e-6},
        "slots": {"min": "2ms", "max": "2ms", "packets": 32},
    });
    let set = |values: &Value| {
        let change = json!({"changes": [{"link": "a-s", "from": "a", "set": values}]}).to_string();
        let (status, body) = request(address, "POST /set", &change);
        assert_eq!(status, 200, "{body}");
        json(&request(address, "GET /links/a-s", "").1)["directions"].take()
    };
    let directions = set(&values);
    let shown = directions[0]["values"].clone();
    for (key, value) in values.as_object().unwrap() {
        match (&shown[key], key.as_str()) {
            // A probability is shown as the shortest text that is exact.
            (found, "corrupt") => assert_eq!(found["bits"], "0.0001%"),
            (found, _) => assert_eq!(found, value, "{key}"),
        }
    }
    assert_eq!(directions[1]["values"], json!({"queue": "50p"}), "the other direction is as it was");
    assert_eq!(set(&shown)[0]["values"], shown);
    let back = json!({
        "rate": "unlimited", "overhead": 0, "delay": "0s", "queue": "unlimited", "reorder": "0%", "state": "up",
        "loss": "0%", "jitter": "none", "duplicate": "0%", "corrupt": "0%", "slots": "none",
    });
    assert_eq!(set(&back)[0]["values"], json!({}));
    finish(running);
}

#[test]
fn links_get_the_values_of_the_spec_again_but_for_what_a_trace_sets() {
    let (running, address, _) = run("restored");
    let change = r#"{"changes":[{"link":"a-s","set":{"delay":"7ms","loss":"1%"}},{"link":"b-s","set":{"rate":"1Mbit"}}]}"#;
    assert_eq!(request(address, "POST /set", change).0, 200);
    assert_eq!(request(address, "POST /groups/cell/start", "").0, 200);
    assert_eq!(request(address, "POST /restore", r#"{"links":["a-s"]}"#).0, 200);
    let values = |link: &str| {
        json(&request(address, &format!("GET /links/{link}"), "").1)["directions"][0]["values"].clone()
    };
    assert_eq!(
        (values("a-s"), values("b-s")),
        (json!({"rate": "3Mbit", "queue": "50p"}), json!({"rate": "1Mbit"}))
    );
    assert_eq!(request(address, "POST /restore", "{}").0, 200);
    assert_eq!(values("b-s"), json!({}));
    let listed = json(&request(address, "GET /changes", "").1)["changes"].as_array().unwrap().len();
    assert_eq!(request(address, "POST /restore", "{}").0, 200);
    assert_eq!(json(&request(address, "GET /changes", "").1)["changes"].as_array().unwrap().len(), listed);
    let (status, body) = request(address, "POST /restore", r#"{"links":["x"]}"#);
    assert!(status == 400 && body.contains("no link is called 'x'"), "{status} {body}");
    finish(running);
}

#[test]
fn traces_stop_keep_their_last_values_and_can_be_changed_then() {
    let (running, address, _) = run("stopped");
    assert_eq!(request(address, "POST /groups/cell/start", "").0, 200);
    let rate = r#"{"changes":[{"link":"a-s","set":{"rate":"5Mbit"}}]}"#;
    assert_eq!(request(address, "POST /set", rate).0, 409, "the trace sets it");
    assert_eq!(request(address, "POST /groups/cell/stop", "").0, 200);
    let link = json(&request(address, "GET /links/a-s", "").1)["directions"][0].take();
    assert_eq!((&link["rate"], link.get("traces")), (&json!("3Mbit"), None));
    assert_eq!(request(address, "POST /set", rate).0, 200);
    let (_, text) = request(address, "GET /changes.toml", "");
    let repeated = spec::read(&format!("{SPEC}{text}"), &|_| Ok(TRACE.to_owned())).unwrap().0.topology;
    let actions: Vec<_> = repeated.trace_events.iter().map(|event| event.action).collect();
    assert_eq!(actions, [spec::TraceAction::Start, spec::TraceAction::Stop], "{text}");
    finish(running);
}

#[test]
fn a_change_for_later_happens_at_its_time_and_one_for_the_past_is_refused() {
    let (running, address, path) = run("later");
    let rate = |bps: &str| Setting {
        group: Some("cell".to_owned()),
        set: [("rate".to_owned(), bps.into())].into_iter().collect(),
        ..Setting::default()
    };
    let request_at = |at: String| Request::Set(Changes { changes: vec![rate("8Mbit")], at: Some(at) });
    // A host that stalls continues after the time: then the time is set further ahead.
    let ahead = [0.2, 2.0, 20.0].into_iter().find_map(|ahead| {
        let at = running.report().unwrap().uptime_s + ahead;
        match call(&path, &request_at(format!("{at:.6}s"))).unwrap() {
            Response::Done(done) => Some((done, at)),
            _ => None,
        }
    });
    let (done, at) = ahead.expect("a time to come is taken");
    assert!((done.at_s - at).abs() < 1e-5, "{done:?} {at}");
    loop {
        // Whether it has happened depends on the time of the report.
        let report = running.report().unwrap();
        let rates: Vec<&str> = report.links.iter().map(|link| link.directions[0].rate.as_str()).collect();
        match report.uptime_s < done.at_s {
            true => assert_eq!(rates, ["unlimited", "unlimited"], "{}", report.uptime_s),
            false => break assert_eq!(rates, ["8Mbit", "8Mbit"], "{}", report.uptime_s),
        }
    }
    let Ok(Response::Error(why)) = call(&path, &request_at("1ns".to_owned())) else { panic!() };
    assert!(why.starts_with("at: that time has passed: the engine has run for "), "{why}");
    let (status, _) =
        request(address, "POST /set", r#"{"at":"1ns","changes":[{"link":"a-s","set":{"rate":"1Mbit"}}]}"#);
    assert_eq!(status, 409);
    finish(running);
}

#[test]
fn errors_are_json_and_nothing_is_changed() {
    let (running, address, path) = run("wrong");
    let long = format!("{{\"changes\":[{}]}}", " ".repeat(70_000));
    for (line, body, status, said) in [
        ("GET /nowhere", "", 404, "no such path"),
        ("GET /links/x", "", 404, "no link is called 'x' (have: a-s, b-s)"),
        ("DELETE /links", "", 405, "method not allowed"),
        ("POST /groups/x/start", "", 404, "no group is called 'x' (have: cell)"),
        ("POST /set", "hello", 400, "not a request: "),
        ("POST /set", r#"{"changes":[]}"#, 400, "nothing to change"),
        ("POST /set", r#"{"changes":[],"when":"now"}"#, 400, "unknown field `when`"),
        ("POST /set", r#"{"changes":[{"link":"a-s","set":{"rate":"1"}}]}"#, 400, "the unit is missing"),
        (
            "POST /set",
            r#"{"changes":[{"link":"a-s","set":{"mtu":"1400"}}]}"#,
            400,
            "the mtu of a link is fixed when the network starts",
        ),
        (
            "POST /set",
            r#"{"changes":[{"link":"a-s","set":{"rate":"1Mbit"}},{"link":"x","set":{"rate":"1Mbit"}}]}"#,
            400,
            "no link is called 'x'",
        ),
        ("POST /set", &long, 413, "a request is at most 65536 bytes"),
    ] {
        let (found, answer) = request(address, line, body);
        assert_eq!(found, status, "{line} {body:.60}: {answer}");
        let error = json(&answer)["error"].as_str().unwrap().to_owned();
        assert!(error.contains(said), "{line}: {error}");
    }
    let connect = || TcpStream::connect(address).unwrap();
    let form = "POST /stop HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    assert_eq!(raw(connect(), form.as_bytes()).0, 415, "a page in a browser cannot stop it");
    let rebound = "GET /report HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n";
    assert_eq!(raw(connect(), rebound.as_bytes()).0, 421);
    assert_eq!(raw(connect(), b"\xff\xfe\0\r\n\r\n").0, 400);
    assert_eq!(raw(UnixStream::connect(&path).unwrap(), b"hello\r\n\r\n").0, 400);
    let rate = running.report().unwrap().links[0].directions[0].rate.clone();
    assert_eq!(rate, "unlimited", "all or none");
    finish(running);
}

/// Whether there is something behind a path only in a lab, with a dashboard or an OpenFlow node.
fn is_of_a_lab(path: &str) -> bool {
    ["/nodes", "/picture", "/switches"].iter().any(|start| path.starts_with(start))
}

/// Sends a request and returns the status alone: some answers have no end.
fn status(address: SocketAddr, line: &str) -> u16 {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = "host: localhost\r\ncontent-type: application/json\r\ncontent-length: 0";
    stream.write_all(format!("{line} HTTP/1.1\r\n{head}\r\n\r\n").as_bytes()).unwrap();
    let mut seen = String::new();
    read_until(&mut stream, &mut seen, "\r\n\r\n");
    seen.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
}

/// The routes of the source: each is declared with its entry of the document, but for files and
/// what the page of a switch reads, where there is no control interface.
#[test]
fn no_route_is_outside_of_the_openapi_document() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/src/control");
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let is_page = path.ends_with("switch_page.rs");
        if path.extension().is_some_and(|extension| extension == "rs") && !is_page {
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(!text.contains(".route(\""), "{}: declare the route in routes.rs", path.display());
        }
    }
}

#[test]
fn the_openapi_document_names_every_route_and_the_metrics_are_there() {
    let (running, address, _) = run("document");
    let document = json(&request(address, "GET /openapi.json", "").1);
    assert_eq!(document, openapi());
    let set = &document["components"]["schemas"]["Setting"]["properties"]["set"]["properties"];
    assert_eq!(set.as_object().unwrap().len(), spec::keys().len(), "{set}");
    let paths = document["paths"].as_object().unwrap();
    let expected = [
        "/apply",
        "/capture",
        "/changes",
        "/changes.toml",
        "/connections",
        "/connections/flush",
        "/events",
        "/groups",
        "/groups/{name}/start",
        "/groups/{name}/stop",
        "/links",
        "/links/{name}",
        "/metrics",
        "/nodes",
        "/nodes/{name}/log",
        "/openapi.json",
        "/picture",
        "/presets",
        "/report",
        "/restore",
        "/set",
        "/stop",
        "/switches/{node}",
        "/topology",
    ];
    assert_eq!(paths.keys().collect::<Vec<_>>(), expected);
    for (path, methods) in paths {
        let path = path.replace("{name}", if path.starts_with("/links") { "a-s" } else { "cell" });
        for method in methods.as_object().unwrap().keys().filter(|_| path != "/stop") {
            let line = format!("{} {path}", method.to_uppercase());
            let status = status(address, &line);
            let refused = [("/set", 400), ("/restore", 400), ("/connections/flush", 400), ("/apply", 409)]
                .contains(&(path.as_str(), status));
            assert!(status == 200 || refused || is_of_a_lab(&path) && status == 404, "{line}: {status}");
        }
    }
    let (_, metrics) = request(address, "GET /metrics", "");
    for line in [
        "# TYPE fastpath_link_in_frames_total counter",
        "fastpath_link_in_frames_total{link=\"a-s\",from=\"a\",to=\"s\"} 0",
        "fastpath_link_in_frames_total{link=\"a-s\",from=\"s\",to=\"a\"} 0",
        "fastpath_link_up{link=\"b-s\",from=\"b\",to=\"s\"} 1",
        "fastpath_port_up{host=\"b\",port=\"m1\"} 1",
        "fastpath_link_queued_frames{link=\"a-s\",from=\"a\",to=\"s\"} 0",
        "fastpath_link_configured_delay_seconds{link=\"a-s\",from=\"a\",to=\"s\"} 0",
        "fastpath_frames{place=\"held\"} 0",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line}: {metrics}");
    }
    finish(running);
}

/// Sends a request that is written as a curl command, and returns the status and the body.
fn send(address: SocketAddr, curl: &str) -> (u16, String) {
    let path = curl.rsplit_once("http://localhost").expect("a URL").1;
    let method = if curl.contains("application/json") { "POST" } else { "GET" };
    let body =
        curl.split_once("-d '").and_then(|(_, rest)| rest.rsplit_once("' ")).map_or("", |(body, _)| body);
    request(address, &format!("{method} {path}"), body)
}

#[test]
fn every_operation_has_example_requests_that_succeed_and_are_in_the_documentation() {
    let text = "[host.a]\n[openflow.b]\n[host.c]\n[group.cell]\nstart = \"command\"\n\
        [[link]]\nbetween = [\"a\", \"b\"]\n[[link]]\nbetween = [\"b\", \"c\"]\ngroup = \"cell\"\ntrace = \"t.csv\"\n";
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/control-api.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (running, address, _) = run_spec("examples", text);
    let document = openapi();
    let mut commands = Vec::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let samples = operation["x-codeSamples"].as_array().unwrap();
            assert!(!samples.is_empty(), "{method} {path}");
            assert!(page.contains(&format!("`{} {path}`", method.to_uppercase())), "{method} {path}");
            for sample in samples {
                assert!(!sample["label"].as_str().unwrap().is_empty(), "{method} {path}");
                commands.push(sample["source"].as_str().unwrap());
            }
        }
    }
    // The network ends with the last request.
    commands.sort_by_key(|command| command.ends_with("/stop"));
    for command in &commands {
        let is_endless = ["/events", "/capture?link=a-b"].iter().any(|end| command.ends_with(end));
        let (status, answer) = match is_endless && !command.contains("POST") {
            true => (
                status(address, &format!("GET {}", command.rsplit_once("localhost").unwrap().1)),
                String::new(),
            ),
            false => send(address, command),
        };
        // The owner of a lab answers these, and there is none.
        let expected = match command.rsplit_once("localhost").unwrap().1 {
            "/apply" => 409,
            "/nodes" | "/nodes/a/log" | "/picture" => 404,
            _ => 200,
        };
        assert_eq!(status, expected, "{command}: {answer}");
        assert!(page.lines().any(|line| line == *command), "not in docs/reference/control-api.md: {command}");
    }
    let written = page.lines().filter(|line| line.starts_with("curl --unix-socket"));
    for line in written {
        assert!(commands.contains(&line), "not an example of the OpenAPI document: {line}");
    }
    finish(running);
}

#[test]
fn curl_reads_a_report_over_both() {
    let (running, address, path) = run("curl");
    let curl = |arguments: &[&str]| std::process::Command::new("curl").args(arguments).output();
    let unix = path.display().to_string();
    let Ok(tcp) = curl(&["-sSf", &format!("http://{address}/report")]) else {
        eprintln!("SKIPPED: curl_reads_a_report_over_both: no curl here");
        return;
    };
    let socket = curl(&["-sSf", "--unix-socket", &unix, "http://localhost/report"]).unwrap();
    for output in [tcp, socket] {
        assert!(output.status.success(), "{output:?}");
        assert_eq!(json(&String::from_utf8(output.stdout).unwrap())["conservation"]["in"], 0);
    }
    finish(running);
}

#[test]
fn tcp_clients_need_the_token() {
    let topology = spec::read(SPEC, &|_| Ok(TRACE.to_owned())).unwrap().0.topology;
    let ports = [0, 1].map(|edge| {
        let port: Box<dyn Port> = Box::new(Memory::new(&format!("m{edge}"), 1 << 16).0);
        (EdgeId(edge), port)
    });
    let options = Options { http: Some("127.0.0.1:0".parse().unwrap()), ..options(Idle::Save) };
    let running = start(topology, ports.into(), options).unwrap();
    let endpoint = running.http().unwrap().clone();
    let token = endpoint.token.clone().expect("a token by default");
    assert!(endpoint.to_string().contains(&token));
    let get = |authorization: &str| {
        let text =
            format!("GET /report HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{authorization}\r\n");
        raw(TcpStream::connect(endpoint.address).unwrap(), text.as_bytes())
    };
    assert_eq!(get(&format!("authorization: Bearer {token}\r\n")).0, 200);
    for wrong in ["", "authorization: Bearer \r\n", "authorization: Bearer 00\r\n"] {
        let (status, answer) = get(wrong);
        assert!(status == 401 && answer.contains("Bearer TOKEN"), "{wrong:?}: {status} {answer}");
    }
    assert_eq!(get(&format!("authorization: Bearer {token}0\r\n")).0, 401);
    assert_eq!(get(&format!("authorization: Basic {token}\r\n")).0, 401);
    finish(running);
}

#[test]
fn slow_clients_lock_nobody_out() {
    let (running, address, path) = run("slow");
    // Each has sent half a request and goes on holding its connection.
    let slow = |mut stream: Box<dyn Write>| {
        stream.write_all(b"GET /report HTTP/1.1\r\nhost:").unwrap();
        stream
    };
    let tcp: Vec<_> = (0..40).map(|_| slow(Box::new(TcpStream::connect(address).unwrap()))).collect();
    let unix: Vec<_> = (0..40).map(|_| slow(Box::new(UnixStream::connect(&path).unwrap()))).collect();
    assert!(matches!(call(&path, &Request::Report), Ok(Response::Report(_))));
    assert_eq!(request(address, "GET /report", "").0, 200);
    drop((tcp, unix));
    finish(running);
}

#[test]
fn two_engines_do_not_share_an_address() {
    let (running, address, _) = run("taken");
    let topology = spec::read(SPEC, &|_| Ok(TRACE.to_owned())).unwrap().0.topology;
    let ports = [0, 1].map(|edge| {
        let port: Box<dyn Port> = Box::new(Memory::new(&format!("m{edge}"), 1 << 16).0);
        (EdgeId(edge), port)
    });
    let options = Options { http: Some(HttpAddress::Tcp(address)), ..options(Idle::Save) };
    let error = start(topology, ports.into(), options).unwrap_err().to_string();
    assert!(error.starts_with(&format!("control interface at http://{address}: ")), "{error}");
    finish(running);
}

/// Returns the names of the metrics in a PromQL expression.
fn metrics_in(expression: &str) -> Vec<&str> {
    let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("fastpath_")).collect()
}

#[test]
fn the_grafana_dashboard_has_what_grafana_needs_and_only_metrics_that_exist() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/grafana-dashboard.json");
    let dashboard = json(&std::fs::read_to_string(file).unwrap());
    for key in ["title", "uid", "schemaVersion", "panels", "templating", "time", "timezone", "version"] {
        assert!(dashboard.get(key).is_some(), "{key}");
    }
    // Grafana gives a dashboard that is imported an id of its own.
    assert_eq!(dashboard["id"], Value::Null);
    let (running, address, _) = run("grafana");
    let (_, metrics) = request(address, "GET /metrics", "");
    // A histogram has its name with these ends.
    let exists = |name: &str| {
        let base =
            ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
        metrics.contains(&format!("# TYPE {name} ")) || metrics.contains(&format!("# TYPE {base} histogram"))
    };
    let (mut ids, mut places, mut found) = (Vec::new(), Vec::<[u64; 4]>::new(), 0);
    for panel in dashboard["panels"].as_array().unwrap() {
        let title = panel["title"].as_str().unwrap();
        ids.push(panel["id"].as_u64().unwrap());
        let place = ["x", "y", "w", "h"].map(|key| panel["gridPos"][key].as_u64().unwrap());
        assert!(place[0] + place[2] <= 24, "{title} is wider than the grid");
        for [x, y, w, h] in &places {
            let [left, top, width, height] = place;
            let beside = left >= x + w || *x >= left + width || top >= y + h || *y >= top + height;
            assert!(beside, "{title} lies on another panel");
        }
        places.push(place);
        assert!(panel["type"].is_string() && panel["fieldConfig"]["defaults"].is_object(), "{title}");
        for target in panel["targets"].as_array().unwrap() {
            let expression = target["expr"].as_str().unwrap();
            assert!(target["refId"].is_string() && target["datasource"]["type"] == "prometheus", "{title}");
            for name in metrics_in(expression) {
                assert!(exists(name), "{title}: there is no metric {name}");
                found += 1;
            }
        }
    }
    let queries = dashboard["templating"]["list"].as_array().unwrap();
    for name in queries.iter().filter_map(|one| one["definition"].as_str()).flat_map(metrics_in) {
        assert!(exists(name), "there is no metric {name}");
    }
    assert!(found >= 12, "{found} metrics");
    assert!(ids.iter().collect::<std::collections::BTreeSet<_>>().len() == ids.len(), "{ids:?}");
    finish(running);
}
