//! Keys and certificates.

use super::*;

fn files(name: &str) -> TlsFiles {
    let pem = |file: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pem").join(file);
    TlsFiles {
        private_key: pem(&format!("{name}.key")),
        certificate: pem(&format!("{name}.crt")),
        ca_certificate: pem("ca.crt"),
    }
}

#[test]
fn a_certificate_of_version_1_is_refused_with_what_to_do() {
    let what = |name: &str| Tls::load(&files(name)).map(drop).map_err(|error| error.to_string());
    assert_eq!(what("switch"), Ok(()));
    let error = what("version1").unwrap_err();
    assert!(error.contains("version1.crt: an X.509 certificate of version 1"), "{error}");
    assert!(error.contains("subjectAltName"), "{error}");
    for damaged in [&[][..], &[0x30], &[0x30, 0x82], &[0x30, 0xff, 0, 0], &[2, 1, 0]] {
        assert!(!is_version_1(damaged), "{damaged:?}");
    }
}

#[test]
fn the_error_about_such_a_certificate_of_a_peer_says_what_to_do() {
    let mut roots = RootCertStore::empty();
    roots.add(certificates(&files("switch").ca_certificate).unwrap().remove(0)).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
    let peer = certificates(&files("version1").certificate).unwrap().remove(0);
    let now = rustls::pki_types::UnixTime::since_unix_epoch(std::time::Duration::from_secs(1));
    let error = verifier.verify_client_cert(&peer, &[], now).unwrap_err();
    assert!(explained(&error).contains("subjectAltName"), "{}", explained(&error));
}
