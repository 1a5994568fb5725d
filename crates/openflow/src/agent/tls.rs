//! Keys and certificates from PEM files, and the TLS sessions created with them.

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, ClientConnection, Connection, RootCertStore, ServerConfig, ServerConnection};
use std::path::{Path, PathBuf};
use std::sync::Arc;

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

/// Why TLS cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read or is not a PEM file of the right kind.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: rustls::pki_types::pem::Error,
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

    /// Creates the session of a switch that was dialled.
    pub(super) fn answered(&self) -> Result<Connection, rustls::Error> {
        ServerConnection::new(Arc::clone(&self.server)).map(Connection::Server)
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let failed = |source| TlsError::File { path: path.to_owned(), source };
    CertificateDer::pem_file_iter(path).map_err(failed)?.map(|one| one.map_err(failed)).collect()
}
