//! Hosts with UDP sockets in virtual time, for the event loop of `fastpath.aio`.
//!
//! ```text
//!  VirtualEventLoop ─ advance(until) ─▶ VirtualNetwork ─▶ (socket, bytes, address) of arrivals
//! ```
//!
//! Addresses have the forms of Python's sockets: `(host, port)` of `AF_INET`, `(host, port, 0, 0)`
//! of `AF_INET6`, where IPv4 addresses are mapped (RFC 4291 §2.5.5.2).

use crate::failure::{Error, argument, raise};
use crate::network::NamedFiles;
use fastpath::LogFile;
use fastpath::net::packet_log::PacketLog;
use fastpath::spec::change_of_json;
use fastpath::units::Time;
use fastpath::virtual_time::{BindError, Event, SendError, SocketId, VirtualNetwork};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};
use std::collections::HashMap;
use std::fs::File;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Mutex;

/// Events of the network in one call: between calls Python looks for signals.
const STEPS_MAX: usize = 100_000;
/// Addresses whose Python form is kept.
const ADDRESSES_MAX: usize = 10_000;

type ObservedNetwork = VirtualNetwork<Option<PacketLog<LogFile>>>;

/// A family of Python's sockets.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum SocketFamily {
    V4,
    V6,
}

/// A socket, and how it shows addresses.
struct OpenSocket {
    id: SocketId,
    family: SocketFamily,
}

/// A network with hosts, sockets and a virtual clock.
#[pyclass(module = "fastpath._native")]
pub(crate) struct VirtualSockets {
    /// Never locked: a class of Python has to be `Sync`.
    network: Mutex<ObservedNetwork>,
    /// By their number in Python.
    sockets: Vec<Option<OpenSocket>>,
    numbers: HashMap<SocketId, usize>,
    addresses: HashMap<(SocketAddr, SocketFamily), Py<PyTuple>>,
}

#[pymethods]
impl VirtualSockets {
    #[new]
    fn new(description: &str, files: NamedFiles, seed: u64, packet_log: Option<PathBuf>) -> PyResult<Self> {
        let topology = files.topology(description)?;
        let log = packet_log.map(|path| LogFile::create(&path, &topology, 0)).transpose().map_err(raise)?;
        let network = VirtualNetwork::observed(topology, seed, log.map(PacketLog::new));
        Ok(VirtualSockets {
            network: Mutex::new(network),
            sockets: Vec::new(),
            numbers: HashMap::new(),
            addresses: HashMap::new(),
        })
    }

    /// The hosts in their order, each with its addresses, IPv4 before IPv6.
    fn hosts(&mut self) -> PyResult<Vec<(String, Vec<String>)>> {
        let hosts = self.network()?.network().topology().hosts();
        let host = |(_, host): (_, &fastpath::spec::Node)| {
            let own = host.interfaces.iter().flat_map(|interface| &interface.addresses);
            let mut own: Vec<IpAddr> = own.map(|net| net.addr()).collect();
            own.sort_by_key(IpAddr::is_ipv6);
            (host.name.clone(), own.iter().map(IpAddr::to_string).collect())
        };
        Ok(hosts.map(host).collect())
    }

    /// The time in picoseconds.
    fn now_ps(&mut self) -> PyResult<u64> {
        Ok(self.network()?.now().as_ps())
    }

    /// Whether the network can do something by itself that a program notices: a frame is in it, and
    /// something happens to it later.
    fn is_active(&mut self) -> PyResult<bool> {
        let network = self.network()?;
        Ok(network.next_at().is_some() && network.network().accounting().held > 0)
    }

    /// Binds a socket. Returns its number and its port.
    fn bind(&mut self, host: &str, address: &str, port: u16, is_v6: bool) -> PyResult<(usize, u16)> {
        let family = if is_v6 { SocketFamily::V6 } else { SocketFamily::V4 };
        let own = parse(address, family)?;
        let network = self.network()?;
        let id = network.bind_to(host, Some(own), port).map_err(refused_bind)?;
        let port = network.address(id).port();
        let number = self.sockets.len();
        self.sockets.push(Some(OpenSocket { id, family }));
        self.numbers.insert(id, number);
        Ok((number, port))
    }

    fn close(&mut self, number: usize) -> PyResult<()> {
        if let Some(closed) = self.sockets.get_mut(number).and_then(Option::take) {
            self.numbers.remove(&closed.id);
            self.network()?.close(closed.id);
        }
        Ok(())
    }

    /// Sends a datagram to an address of the socket's family. What the network refuses is an
    /// `OSError`, and what is not an address a `ValueError`.
    fn send(&mut self, number: usize, host: PyBackedStr, port: u16, ecn: u8, payload: &[u8]) -> PyResult<()> {
        let Some(Some(OpenSocket { id, family })) = self.sockets.get(number) else {
            return Err(refused("EBADF", "the socket is closed"));
        };
        let (id, to) = (*id, SocketAddr::new(parse(&host, *family)?, port));
        self.network()?.send_marked(id, to, ecn, payload).map_err(refused_send)
    }

    /// Moves time to the next datagram that arrives, but not beyond `until`. Returns what arrived
    /// then: the number of a socket, bytes, the address of the sender. It may return early, with
    /// nothing.
    fn advance<'py>(&mut self, py: Python<'py>, until: Option<u64>) -> PyResult<Bound<'py, PyList>> {
        let until = until.map_or(Time::MAX, Time::from_ps);
        let arrived = PyList::empty(py);
        for _ in 0..STEPS_MAX {
            let network = self.network()?;
            let to = match network.next_at() {
                Some(at) => at.min(until),
                None if until < Time::MAX => until,
                None => break,
            };
            network.advance(to).map_err(argument)?;
            self.take_arrivals(py, &arrived)?;
            if to == until || !arrived.is_empty() {
                break;
            }
        }
        Ok(arrived)
    }

    /// Changes values of a link, given as a JSON object. Returns mistakes in them: what, and what
    /// to write.
    fn change_link(
        &mut self,
        link: &str,
        from: Option<&str>,
        values: &str,
    ) -> PyResult<Vec<(String, String)>> {
        let values = serde_json::from_str(values).map_err(argument)?;
        match change_of_json(&values) {
            Ok(change) => {
                self.network()?.change_link(link, from, &change).map_err(argument).map(|()| Vec::new())
            }
            Err(mistakes) => {
                Ok(mistakes.into_iter().map(|mistake| (mistake.what, mistake.instead)).collect())
            }
        }
    }

    /// Starts a capture of hosts; of all, if there are none.
    fn capture(&mut self, path: PathBuf, hosts: Vec<String>) -> PyResult<()> {
        let file = File::create(&path).map_err(|source| raise(fastpath::Error::File { path, source }))?;
        let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
        self.network()?.capture(&hosts, file).map_err(argument)
    }

    /// Writes out captures and the per-packet log.
    fn flush(&mut self) -> PyResult<()> {
        let network = self.network()?;
        network.flush_captures().map_err(argument)?;
        match network.network_mut().observer_mut() {
            Some(log) => log.sink_mut().flush().map_err(raise),
            None => Ok(()),
        }
    }

    /// The frame accounting, and the packets that reached a host and no socket.
    fn counters<'py>(&mut self, py: Python<'py>) -> PyResult<(Bound<'py, PyDict>, Bound<'py, PyDict>)> {
        let network = self.network()?;
        let frames = crate::replay::accounting(py, &network.network().accounting())?;
        let unclaimed = PyDict::new(py);
        let discarded = network.discarded();
        unclaimed.set_item("no_socket", discarded.no_socket)?;
        unclaimed.set_item("bad_checksum", discarded.bad_checksum)?;
        unclaimed.set_item("not_ours", discarded.not_ours)?;
        unclaimed.set_item("full", discarded.full)?;
        Ok((frames, unclaimed))
    }
}

impl VirtualSockets {
    fn network(&mut self) -> PyResult<&mut ObservedNetwork> {
        self.network.get_mut().map_err(|_| Error::new_err("the network has ended by an internal error"))
    }

    fn take_arrivals(&mut self, py: Python<'_>, arrived: &Bound<'_, PyList>) -> PyResult<()> {
        while let Some(event) = self.network()?.next_event() {
            let Event::Arrived { socket } = event else { continue };
            let Some(&number) = self.numbers.get(&socket) else { continue };
            let Some(datagram) = self.network()?.receive(socket) else { continue };
            let Some(Some(OpenSocket { family, .. })) = self.sockets.get(number) else { continue };
            let key = (datagram.from, *family);
            if !self.addresses.contains_key(&key) {
                if self.addresses.len() >= ADDRESSES_MAX {
                    self.addresses.clear();
                }
                self.addresses.insert(key, shown(py, key)?);
            }
            arrived.append((number, PyBytes::new(py, &datagram.payload), &self.addresses[&key]))?;
        }
        Ok(())
    }
}

/// Returns an address in the form of a family.
fn shown(py: Python<'_>, (address, family): (SocketAddr, SocketFamily)) -> PyResult<Py<PyTuple>> {
    let host = match (address.ip(), family) {
        (IpAddr::V4(own), SocketFamily::V6) => format!("::ffff:{own}"),
        (own, _) => own.to_string(),
    };
    let tuple = match family {
        SocketFamily::V4 => (host, address.port()).into_pyobject(py)?,
        SocketFamily::V6 => (host, address.port(), 0, 0).into_pyobject(py)?,
    };
    Ok(tuple.unbind())
}

/// Reads an address of a family: IPv4 addresses are mapped in that of IPv6.
fn parse(host: &str, family: SocketFamily) -> PyResult<IpAddr> {
    let plain = host.split_once('%').map_or(host, |(plain, _)| plain);
    let read =
        plain.parse::<IpAddr>().map_err(|_| PyValueError::new_err(format!("{host} is not an address")))?;
    match (read, family) {
        (IpAddr::V6(read), SocketFamily::V6) if read != Ipv6Addr::UNSPECIFIED => Ok(read.to_canonical()),
        (IpAddr::V6(_), SocketFamily::V6) | (IpAddr::V4(_), SocketFamily::V4) => Ok(read),
        (IpAddr::V4(_), SocketFamily::V6) => {
            let text = format!("{host} is an IPv4 address on a socket of AF_INET6; write ::ffff:{host}");
            Err(refused("EINVAL", &text))
        }
        (IpAddr::V6(_), SocketFamily::V4) => {
            Err(refused("EAFNOSUPPORT", &format!("{host} is an IPv6 address on a socket of AF_INET")))
        }
    }
}

fn refused_send(error: SendError) -> PyErr {
    let name = match error {
        SendError::TooLong { .. } => "EMSGSIZE",
        SendError::NoRoute { .. } => "ENETUNREACH",
        SendError::NoNeighbor { .. } => "EHOSTUNREACH",
        _ => "ENOBUFS",
    };
    refused(name, &error.to_string())
}

fn refused_bind(error: BindError) -> PyErr {
    match error {
        BindError::InUse { .. } | BindError::NoPort { .. } => refused("EADDRINUSE", &error.to_string()),
        BindError::NoAddress { .. } => refused("EADDRNOTAVAIL", &error.to_string()),
        _ => argument(error),
    }
}

/// Returns the `OSError` that a socket of the kernel would raise, by the name of its number.
fn refused(name: &str, text: &str) -> PyErr {
    Python::attach(|py| {
        let number = py
            .import("errno")
            .and_then(|errno| errno.getattr(name))
            .and_then(|number| number.extract::<i32>());
        PyOSError::new_err((number.unwrap_or_default(), text.to_owned()))
    })
}
