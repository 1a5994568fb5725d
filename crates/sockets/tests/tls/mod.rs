//! Configurations of quinn for tests: TLS with a certificate and a key that were made once
//! (`openssl req -x509 -addext subjectAltName=DNS:server`), because a new one has another length.

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, ServerConfig, TransportConfig};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use std::sync::Arc;

/// Those of a client that knows `server`, and of that server. Their windows do not limit them.
pub(crate) fn configs() -> (ClientConfig, ServerConfig) {
    let certificate = || CertificateDer::from(include_bytes!("certificate.der").to_vec());
    let key = PrivatePkcs8KeyDer::from(include_bytes!("key.der").to_vec());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = &[&rustls::version::TLS13];
    let server = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider));
    let server = server.with_protocol_versions(versions).expect("TLS 1.3").with_no_client_auth();
    let mut server = server.with_single_cert(vec![certificate()], key.into()).expect("a valid key");
    let mut roots = RootCertStore::empty();
    roots.add(certificate()).expect("a valid certificate");
    let client = rustls::ClientConfig::builder_with_provider(provider);
    let client = client.with_protocol_versions(versions).expect("TLS 1.3");
    let mut client = client.with_root_certificates(roots).with_no_client_auth();
    server.alpn_protocols = vec![b"test".to_vec()];
    client.alpn_protocols = vec![b"test".to_vec()];
    let mut transport = TransportConfig::default();
    let window = 16_000_000u32;
    transport.receive_window(window.into()).stream_receive_window(window.into()).send_window(window.into());
    let transport = Arc::new(transport);
    let mut client = ClientConfig::new(Arc::new(QuicClientConfig::try_from(client).expect("a QUIC suite")));
    let mut server =
        ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(server).expect("a QUIC suite")));
    client.transport_config(Arc::clone(&transport));
    server.transport_config(transport);
    (client, server)
}
