//! Protocols that agree on further connections inside a connection.

/// A protocol whose packets tell of another connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Alg {
    /// FTP: the connections of data (RFC 959, RFC 2428).
    Ftp,
    /// TFTP: the transfer after a request (RFC 1350 §4).
    Tftp,
}

impl Alg {
    /// Both, in the order of their ports.
    pub const ALL: [Alg; 2] = [Alg::Ftp, Alg::Tftp];

    /// Returns the name (ovs-actions(7)).
    pub const fn name(self) -> &'static str {
        match self {
            Alg::Ftp => "ftp",
            Alg::Tftp => "tftp",
        }
    }

    /// Returns the port of its servers, which is its number in messages of OpenFlow.
    pub const fn port(self) -> u16 {
        match self {
            Alg::Ftp => 21,
            Alg::Tftp => 69,
        }
    }

    /// Returns the protocol of a name.
    pub fn of_name(name: &str) -> Option<Alg> {
        Alg::ALL.into_iter().find(|alg| alg.name() == name)
    }

    /// Returns the protocol of a port.
    pub fn of_port(port: u16) -> Option<Alg> {
        Alg::ALL.into_iter().find(|alg| alg.port() == port)
    }
}
