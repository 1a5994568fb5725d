//! Where keys and certificates lie.

use std::path::PathBuf;

/// The files of keys and certificates.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TlsFiles {
    /// The switch's private key.
    pub private_key: PathBuf,
    /// The switch's certificate, followed by the intermediate certificates up to the authority.
    pub certificate: PathBuf,
    /// The authority (CA) that signed the certificates of controllers.
    pub ca_certificate: PathBuf,
}
