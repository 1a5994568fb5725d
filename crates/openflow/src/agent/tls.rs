//! Keys and certificates from PEM files, and the TLS sessions created with them.

use super::tls_files::TlsFiles;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};
use std::io;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(super) use rustls::Connection;

/// A session over a socket.
pub(super) type TlsStream = rustls::StreamOwned<ClientConnection, TcpStream>;

/// What to do about a certificate of version 1, as ovs-pki and `openssl x509 -req` without
/// extensions create them. They cannot contain the names that they are for.
const SIGN_AGAIN: &str = "version 3 is needed: sign the request again with a subject name, as in: \
    openssl x509 -req -in NAME.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out NAME.crt \
    -extfile <(echo subjectAltName=IP:192.0.2.1)";

/// Why TLS cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read or is not a PEM file of the right kind.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: rustls::pki_types::pem::Error,
    },
    /// A certificate has a version that TLS does not use here.
    #[error("{}: an X.509 certificate of version 1; {SIGN_AGAIN}", path.display())]
    Version1 {
        /// The file.
        path: PathBuf,
    },
    /// Key and certificates are not a valid configuration.
    #[error("TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// The authority's certificates are not valid for verification.
    #[error("TLS: {0}")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
}

/// The configuration of TLS sessions.
#[derive(Clone)]
pub(super) struct Tls {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
}

impl Tls {
    /// Reads the files.
    pub(super) fn load(files: &TlsFiles) -> Result<Tls, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        for certificate in certificates(&files.ca_certificate)? {
            roots.add(certificate)?;
        }
        let roots = Arc::new(roots);
        let chain = certificates(&files.certificate)?;
        if chain.iter().any(|certificate| is_version_1(certificate)) {
            return Err(TlsError::Version1 { path: files.certificate.clone() });
        }
        let key = PrivateKeyDer::from_pem_file(&files.private_key)
            .map_err(|source| TlsError::File { path: files.private_key.clone(), source })?;
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider)).build()?;
        let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain.clone(), key.clone_key())?;
        let client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, key)?;
        Ok(Tls { client: Arc::new(client), server: Arc::new(server) })
    }

    /// Creates the session of a switch that dialled `host`. The peer's certificate must be for that
    /// name or address.
    pub(super) fn dialled(&self, host: &str) -> Result<Connection, rustls::Error> {
        let name = ServerName::try_from(host.to_owned()).map_err(|_| {
            rustls::Error::General(format!(
                "'{host}' is not a host name or address that a certificate can contain"
            ))
        })?;
        ClientConnection::new(Arc::clone(&self.client), name).map(Connection::Client)
    }

    /// Begins a session over a socket that blocks, and returns after the handshake. The
    /// certificate of the server must be for `host`.
    pub(super) fn over(&self, mut socket: TcpStream, host: &str) -> io::Result<TlsStream> {
        let explained = |error: &rustls::Error| io::Error::other(format!("TLS: {}", explained(error)));
        let Connection::Client(mut session) = self.dialled(host).map_err(|error| explained(&error))? else {
            return Err(io::Error::other("TLS: not the session of a client"));
        };
        while session.is_handshaking() {
            session.complete_io(&mut socket).map_err(|error| {
                let of_tls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
                of_tls.map(explained).unwrap_or(error)
            })?;
        }
        Ok(rustls::StreamOwned::new(session, socket))
    }

    /// Creates the session of a switch that was dialled.
    pub(super) fn answered(&self) -> Result<Connection, rustls::Error> {
        ServerConnection::new(Arc::clone(&self.server)).map(Connection::Server)
    }
}

/// Returns whether a certificate is one of version 1: its version is missing (RFC 5280 §4.1).
fn is_version_1(certificate: &[u8]) -> bool {
    /// Returns what follows the tag and length of a sequence.
    fn inside(der: &[u8]) -> Option<&[u8]> {
        let (tag, rest) = der.split_first()?;
        let (len, rest) = rest.split_first()?;
        let more = if *len < 0x80 { 0 } else { usize::from(len & 0x7f) };
        (*tag == 0x30).then(|| rest.get(more..)).flatten()
    }
    const VERSION: u8 = 0xa0;
    inside(certificate).and_then(inside).is_some_and(|fields| fields.first() != Some(&VERSION))
}

/// Returns the text of an error of TLS, with what to do about it.
pub(super) fn explained(error: &rustls::Error) -> String {
    let text = error.to_string();
    // All that rustls says of such a certificate.
    if text.contains("UnsupportedCertVersion") {
        return format!("{text}: an X.509 certificate of version 1; {SIGN_AGAIN}");
    }
    text
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let failed = |source| TlsError::File { path: path.to_owned(), source };
    CertificateDer::pem_file_iter(path).map_err(failed)?.map(|one| one.map_err(failed)).collect()
}

#[cfg(test)]
mod tests;
