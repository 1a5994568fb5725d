//! The engine's side of the control socket: a thread that listens, a thread for each of a few clients. Whatever
//! a client sends, the worker sees only valid commands.

use super::{REQUEST_MAX, Request, Response, Setting, line};
use crate::report::Report;
use crate::sys::peer_user;
use crate::sys::poll::{Bell, PollSet};
use crate::team::Team;
use fastpath_link::Change;
use fastpath_net::{Direction, LinkId, Topology, spec};
use std::fs::{self, Permissions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// Clients served at a time; more are told to come back.
const CLIENTS_MAX: usize = 8;
/// A client that neither asks nor reads for this long is let go.
const CLIENT_PATIENCE: Duration = Duration::from_secs(60);

/// The listening socket. Dropped, it closes and its file is removed.
#[derive(Debug)]
pub(crate) struct Server {
    path: PathBuf,
    /// Tells our socket's file from one that another engine put in its place.
    inode: u64,
    bell: Arc<Bell>,
    listener: Option<JoinHandle<()>>,
}

impl Server {
    /// Listens at `path`, for this user and root only. A socket left there by an engine that died is replaced.
    pub(crate) fn start(path: &Path, topology: Arc<Topology>, team: Team) -> io::Result<Server> {
        if UnixStream::connect(path).is_ok() {
            return Err(io::Error::new(io::ErrorKind::AddrInUse, "another engine listens there"));
        }
        if fs::symlink_metadata(path).is_ok_and(|found| found.mode() & libc::S_IFMT == libc::S_IFSOCK) {
            fs::remove_file(path)?;
        }
        let socket = UnixListener::bind(path)?;
        fs::set_permissions(path, Permissions::from_mode(0o600))?;
        socket.set_nonblocking(true)?;
        let owner = fs::metadata(path)?;
        let bell = Arc::new(Bell::new()?);
        let ring = Arc::clone(&bell);
        let clients = Clients { owner: owner.uid(), seats: Arc::new(()), topology, team };
        let listen = move || clients.listen(&socket, &ring);
        let listener = std::thread::Builder::new().name("fastpath-control".to_owned()).spawn(listen)?;
        Ok(Server { path: path.to_owned(), inode: owner.ino(), bell, listener: Some(listener) })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.bell.ring();
        if let Some(listener) = self.listener.take() {
            // A listener that panicked has nothing left to close.
            let _ = listener.join();
        }
        if fs::symlink_metadata(&self.path).is_ok_and(|found| found.ino() == self.inode) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// What a client's thread needs.
#[derive(Clone)]
struct Clients {
    owner: u32,
    /// Shared once by each client served.
    seats: Arc<()>,
    topology: Arc<Topology>,
    team: Team,
}

impl Clients {
    fn listen(&self, socket: &UnixListener, bell: &Bell) {
        let mut poll = PollSet::default();
        poll.add(socket.as_fd());
        poll.add(bell.as_fd());
        while !bell.silence() {
            poll.wait(CLIENT_PATIENCE);
            let Ok((stream, _)) = socket.accept() else { continue };
            let client = self.clone();
            // Without a thread to spare the client finds its connection closed.
            let _ = std::thread::Builder::new()
                .name("fastpath-client".to_owned())
                .spawn(move || drop(client.serve(stream)));
        }
    }

    /// Answers a client until it leaves.
    fn serve(&self, mut stream: UnixStream) -> io::Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(CLIENT_PATIENCE))?;
        stream.set_write_timeout(Some(CLIENT_PATIENCE))?;
        // The file's mode keeps others out; this keeps them out while the mode was not yet set.
        let user = peer_user(stream.as_fd())?;
        if user != self.owner && user != 0 {
            return Ok(());
        }
        // One share is the listener's, the rest are clients.
        if Arc::strong_count(&self.seats) - 1 > CLIENTS_MAX {
            let text = format!("{CLIENTS_MAX} clients are being served: try again");
            return stream.write_all(&line(&Response::Error(text)));
        }
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut request = Vec::new();
        loop {
            request.clear();
            let read = reader.by_ref().take(REQUEST_MAX).read_until(b'\n', &mut request)?;
            if read == 0 {
                return Ok(());
            }
            if read as u64 == REQUEST_MAX && !request.ends_with(b"\n") {
                let text = format!("a request is at most {REQUEST_MAX} bytes, in one line");
                return stream.write_all(&line(&Response::Error(text)));
            }
            let response = self.answer(&request).unwrap_or_else(Response::Error);
            stream.write_all(&line(&response))?;
        }
    }

    fn answer(&self, request: &[u8]) -> Result<Response, String> {
        let ended = || "the engine has ended".to_owned();
        let request: Request = serde_json::from_slice(request).map_err(|error| {
            format!("not a request: {error}; write for example {{\"request\":\"report\"}}")
        })?;
        match request {
            Request::Report => {
                let snapshot = self.team.look().ok_or_else(ended)?;
                Ok(Response::Report(Box::new(Report::of(&self.topology, &snapshot))))
            }
            Request::Set(setting) => {
                let (link, direction, change) = read_setting(&self.topology, &setting)?;
                self.team.change(link, direction, change).ok_or_else(ended)?;
                Ok(Response::Done)
            }
            Request::Stop => {
                self.team.stop();
                Ok(Response::Done)
            }
        }
    }
}

fn read_setting(topology: &Topology, setting: &Setting) -> Result<(LinkId, Direction, Change), String> {
    let have = |names: Vec<&str>| names.join(", ");
    let id = topology.link_named(&setting.link).ok_or_else(|| {
        let names = topology.links.iter().map(|link| link.name.as_str()).collect();
        format!("no link is called '{}' (have: {})", setting.link, have(names))
    })?;
    let ends = topology.link(id).ends.map(|(node, _)| topology.node(node).name.as_str());
    let direction = match &setting.from {
        None => Direction::Both,
        Some(from) if from == ends[0] => Direction::Forward,
        Some(from) if from == ends[1] => Direction::Backward,
        Some(from) => {
            return Err(format!(
                "link {}: it does not lead from '{from}' (have: {})",
                setting.link,
                have(ends.to_vec())
            ));
        }
    };
    Ok((id, direction, read_values(setting)?))
}

/// The values, read as those of a link in a spec.
fn read_values(setting: &Setting) -> Result<Change, String> {
    let Setting { link: _, from: _, rate, delay, loss, queue, overhead, jitter, reorder, duplicate, corrupt } =
        setting;
    let values = [
        ("rate", rate),
        ("delay", delay),
        ("loss", loss),
        ("queue", queue),
        ("overhead", overhead),
        ("jitter", jitter),
        ("reorder", reorder),
        ("duplicate", duplicate),
        ("corrupt", corrupt),
    ];
    let given = values.into_iter().filter_map(|(key, value)| Some(spec::assignment(key, value.as_deref()?)));
    let text: Vec<String> = given.collect();
    if text.is_empty() {
        return Err("nothing to set: write for example \"rate\":\"1Mbit\"".to_owned());
    }
    spec::parse_change(&text.join("\n")).map_err(|mistakes| {
        let said = mistakes.iter().map(|mistake| format!("{}; {}", mistake.what, mistake.instead));
        said.collect::<Vec<_>>().join("\n")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpath_link::{CodelSpec, Limit, LossSpec, PipeSpec, QueueSpec};
    use fastpath_net::NodeKind;
    use fastpath_units::{Bytes, Duration, Probability, Rate};

    fn topology() -> Topology {
        let mut topology = Topology::default();
        let [a, b] = ["a", "b"].map(|name| topology.add_node(name, NodeKind::Host { port: None }));
        topology.connect("a-b", a, b, [PipeSpec::default(), PipeSpec::default()]);
        topology
    }

    fn setting(json: &str) -> Result<(LinkId, Direction, Change), String> {
        read_setting(&topology(), &serde_json::from_str(json).unwrap())
    }

    #[test]
    fn a_setting_is_read_with_the_units_of_the_spec() {
        let all = r#"{"link":"a-b","from":"b","rate":"unlimited","delay":"1.5ms","loss":"1%","queue":"50p","overhead":"ethernet"}"#;
        let change = Change {
            rate: Some(None),
            overhead: Some(24),
            delay: Some(Duration::from_us(1500)),
            loss: Some(LossSpec::Uniform(Probability::new(0.01).unwrap())),
            queue: Some(QueueSpec::DropTail(Limit::Packets(50))),
            ..Change::default()
        };
        assert_eq!(setting(all), Ok((LinkId(0), Direction::Backward, change)));
        let (_, direction, change) = setting(r#"{"link":"a-b","rate":"1Mbit","queue":"64KiB"}"#).unwrap();
        assert_eq!((direction, change.rate), (Direction::Both, Some(Rate::from_bps(1_000_000))));
        assert_eq!(change.queue, Some(QueueSpec::DropTail(Limit::Bytes(Bytes(65536)))));
        let (_, _, change) = setting(r#"{"link":"a-b","queue":"{ kind = 'codel' }","loss":"0.01"}"#).unwrap();
        assert_eq!(change.queue, Some(QueueSpec::Codel(CodelSpec::default())));
        assert_eq!(change.loss, Some(LossSpec::Uniform(Probability::new(0.01).unwrap())));
    }

    #[test]
    fn a_wrong_setting_says_what_to_write() {
        for (json, part) in [
            (r#"{"link":"x","rate":"1Mbit"}"#, "no link is called 'x' (have: a-b)"),
            (r#"{"link":"a-b","from":"c","rate":"1Mbit"}"#, "(have: a, b)"),
            (r#"{"link":"a-b"}"#, "nothing to set"),
            (r#"{"link":"a-b","rate":"1"}"#, "the unit is missing"),
            (r#"{"link":"a-b","rate":"0bit"}"#, "not a rate"),
            (r#"{"link":"a-b","delay":"-1ms"}"#, "negative"),
            (r#"{"link":"a-b","loss":"101%"}"#, "0 … 100 %"),
            (r#"{"link":"a-b","queue":"0p"}"#, "write queue = \"50p\""),
            (r#"{"link":"a-b","queue":"99999999999p"}"#, "write queue = \"50p\""),
            (r#"{"link":"a-b","queue":"{ kind = 'codle' }"}"#, "write \"codel\""),
            (r#"{"link":"a-b","jitter":"{ law = 'normal' }"}"#, "jitter has no sd"),
            (r#"{"link":"a-b","overhead":"some"}"#, "ethernet"),
        ] {
            let error = setting(json).unwrap_err();
            assert!(error.contains(part), "{json}: {error}");
        }
    }
}
