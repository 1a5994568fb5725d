//! The client with the programs of Open vSwitch: ovsdb-server, and ovs-vsctl, which waits for what
//! the client writes. `cargo xtask test` gets them; a test is skipped where they are missing.
#![cfg(target_os = "linux")]

use fastpath_ovsdb::{Client, ClientEvent, Datum, Event, InterfaceKind, RowUpdate, describe, differences};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Longer than anything takes here, and reached only where it does not happen.
const PATIENCE: Duration = Duration::from_secs(60);
const TURN: Duration = Duration::from_millis(20);

/// A database and its server, which ends with it.
struct Database {
    directory: PathBuf,
    server: Option<Child>,
}

impl Database {
    /// `None`, and a reported skip, where the programs are missing.
    fn start(test: &str) -> Option<Database> {
        let schema = unpacked().join("share/openvswitch/vswitch.ovsschema");
        if !schema.exists() || !Path::new("/usr/sbin/ovsdb-server").exists() {
            skip(test, "no ovsdb-server or no ovs-vsctl (cargo xtask test gets them)");
            return None;
        }
        // The path of a socket has at most 107 bytes.
        let directory = std::env::temp_dir().join(format!("fp-ovsdb-{}-{test}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).unwrap();
        let mut database = Database { directory, server: None };
        let created = Command::new("ovsdb-tool").arg("create").arg(database.file("db")).arg(schema).output();
        assert!(created.unwrap().status.success());
        database.serve();
        Some(database)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn remote(&self) -> String {
        format!("unix:{}", self.file("s").display())
    }

    /// Starts the server, and waits until its socket is there.
    fn serve(&mut self) {
        let mut command = Command::new("/usr/sbin/ovsdb-server");
        command.arg(format!("--remote=p{}", self.remote()));
        command.arg(format!("--unixctl={}", self.file("ctl").display()));
        command.args(["--no-chdir", "--log-file=/dev/null"]).arg(self.file("db"));
        self.server = Some(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        let until = Instant::now() + PATIENCE;
        while std::os::unix::net::UnixStream::connect(self.file("s")).is_err() {
            assert!(Instant::now() < until, "the server does not answer");
            std::thread::yield_now();
        }
    }

    fn stop(&mut self) {
        if let Some(mut server) = self.server.take() {
            let _ = server.kill();
            let _ = server.wait();
        }
    }

    fn vsctl(&self, words: &str) -> Command {
        let mut command = Command::new(unpacked().join("bin/ovs-vsctl"));
        command.arg(format!("--db={}", self.remote())).arg("--timeout=60").args(words.split(' '));
        command
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.stop();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Where `cargo xtask test` has unpacked the package with ovs-vsctl.
fn unpacked() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("../openvswitch/usr")
}

fn skip(test: &str, why: &str) {
    let line = format!("SKIPPED: {test}: {why}\n");
    eprint!("{line}");
    if let Some(log) = std::env::var_os("FASTPATH_SKIP_LOG") {
        use std::io::Write;
        let file = fs::OpenOptions::new().create(true).append(true).open(log);
        file.and_then(|mut file| file.write_all(line.as_bytes())).expect("writing the log of skipped tests");
    }
}

/// Gives the client turns until something is so.
fn until(client: &mut Client, what: &str, is_so: impl Fn(&Client, &[ClientEvent]) -> bool) {
    let give_up = Instant::now() + PATIENCE;
    let mut events = client.turn(TURN);
    while !is_so(client, &events) {
        assert!(Instant::now() < give_up, "it never came: {what}");
        events = client.turn(TURN);
    }
}

/// Writes that the newest configuration is in force, as a switch does.
fn acknowledge(client: &mut Client) {
    let Some(replica) = client.replica() else { return };
    let Some(wanted) = describe(replica) else { return };
    let columns = [("cur_cfg", Datum::one(wanted.next_cfg)), ("ovs_version", Datum::one("0"))];
    let updates = differences(replica, [RowUpdate::new("Open_vSwitch", wanted.root, columns)]);
    if !updates.is_empty() {
        client.transact(&updates);
    }
}

/// Runs a command while the client acknowledges configurations.
fn run(client: &mut Client, mut command: Command) -> Output {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while child.try_wait().unwrap().is_none() {
        client.turn(TURN);
        acknowledge(client);
    }
    child.wait_with_output().unwrap()
}

#[test]
fn ovs_vsctl_waits_for_what_the_client_writes() {
    let Some(database) = Database::start("waits") else { return };
    let mut client = Client::new(database.remote().parse().unwrap(), None);
    until(&mut client, "the rows and the lock", |client, _| client.replica().is_some() && client.has_lock());
    let set = "add-br br0 -- add-port br0 eth0 -- set interface eth0 ofport_request=7 -- set port eth0 tag=5";
    let done = run(&mut client, database.vsctl(set));
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let bridges = describe(client.replica().unwrap()).unwrap().bridges;
    let [local, port] = &bridges[0].ports[..] else { unreachable!("{bridges:?}") };
    assert_eq!((&*bridges[0].name, &*local.name), ("br0", "br0"));
    assert_eq!(local.interfaces[0].kind, Ok(InterfaceKind::Internal));
    assert_eq!((port.interfaces[0].ofport_request, port.vlans.tag), (Some(7), 5));
    let version = run(&mut client, database.vsctl("get open_vswitch . ovs_version"));
    assert_eq!(String::from_utf8_lossy(&version.stdout).trim(), "\"0\"");
    assert!(run(&mut client, database.vsctl("del-br br0")).status.success());
    assert!(describe(client.replica().unwrap()).unwrap().bridges.is_empty());
}

#[test]
fn a_second_client_waits_for_the_lock_and_gets_it_when_the_first_ends() {
    let Some(database) = Database::start("lock") else { return };
    let clients = || Client::new(database.remote().parse().unwrap(), None);
    let (mut first, mut second) = (clients(), clients());
    until(&mut first, "the lock", |client, _| client.has_lock());
    until(&mut second, "an answer", |_, events| events.contains(&ClientEvent::Session(Event::Lock)));
    assert!(!second.has_lock() && !second.transact(&[]));
    drop(first);
    until(&mut second, "the lock of the first", |client, _| client.has_lock());
}

#[test]
fn a_client_comes_back_after_its_server_and_learns_of_a_refused_transaction() {
    let Some(mut database) = Database::start("back") else { return };
    let mut client = Client::new(database.remote().parse().unwrap(), None);
    until(&mut client, "the lock", |client, _| client.replica().is_some() && client.has_lock());
    assert!(run(&mut client, database.vsctl("add-br br0")).status.success());
    database.stop();
    let is_down =
        |events: &[ClientEvent]| events.iter().any(|event| matches!(event, ClientEvent::Disconnected { .. }));
    until(&mut client, "the end of the connection", |_, events| is_down(events));
    assert!(client.replica().is_none() && !client.has_lock());
    until(&mut client, "a failed attempt", |_, events| is_down(events));
    database.serve();
    until(&mut client, "the rows again", |client, _| client.replica().is_some() && client.has_lock());
    let bridges = describe(client.replica().unwrap()).unwrap().bridges;
    assert_eq!(bridges[0].name, "br0");
    // `ofport_request` has a range.
    let interface = bridges[0].ports[0].interfaces[0].uuid;
    let nonsense = RowUpdate::new("Interface", interface, [("ofport_request", Datum::one(70_000))]);
    assert!(client.transact(&[nonsense]));
    let is_refused = |events: &[ClientEvent]| {
        events.iter().any(|event| match event {
            ClientEvent::Session(Event::Transacted(Err(error))) => error.to_string().contains("constraint"),
            _ => false,
        })
    };
    until(&mut client, "the refusal", |_, events| is_refused(events));
}
