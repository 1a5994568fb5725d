//! The handshake of TLS 1.3 as messages of its sizes, without its cryptography.
//!
//! ```text
//!  client                                                  server
//!    Initial    client hello (transport parameters) ─▶
//!                                        ◀─ server hello       Initial
//!       ◀─ encrypted extensions (transport parameters),        Handshake
//!          certificate, certificate verify, finished
//!    Handshake  finished ─▶
//! ```
//!
//! Each message has the header of TLS: a type, and a length of three bytes. The secrets of the
//! packets are hashes of the messages so far, which differ by the connection ids in the transport
//! parameters.

use crate::keys::{Secret, TAG};
use quinn_proto::crypto::{
    ClientConfig, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, ServerConfig, Session,
    UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError, TransportErrorCode};
use std::any::Any;
use std::sync::Arc;

/// Types of handshake messages (RFC 8446 §4).
const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;
const ENCRYPTED_EXTENSIONS: u8 = 8;
const CERTIFICATE: u8 = 11;
const CERTIFICATE_VERIFY: u8 = 15;
const FINISHED: u8 = 20;
/// Bytes of the header of a message.
const HEADER: usize = 4;
/// Bytes of messages, with their headers. A hello with a key share of X25519, two certificates with
/// keys of ECDSA, SHA-256.
const CLIENT_HELLO_LEN: usize = 300;
const SERVER_HELLO_LEN: usize = 90;
const CERTIFICATE_LEN: usize = 2000;
const CERTIFICATE_VERIFY_LEN: usize = 80;
const FINISHED_LEN: usize = 36;
/// Bytes of encrypted extensions beside the transport parameters: headers, and a protocol name.
const EXTENSIONS_LEN: usize = 16;
/// The longest handshake message that is accepted.
const MESSAGE_MAX: usize = 1 << 14;
/// The TLS alert for a message that is not expected (RFC 8446 §6.2).
const UNEXPECTED_MESSAGE: u8 = 10;

/// Sessions without cryptography, of both ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClearSessions;

/// One end of a handshake.
struct ClearSession {
    side: Side,
    /// Its transport parameters, encoded.
    parameters: Vec<u8>,
    peer: Option<TransportParameters>,
    step: HandshakeStep,
    /// Bytes of a message that has not arrived whole.
    partial: Vec<u8>,
    /// Of all messages so far but the client's last.
    transcript: Secret,
    /// Of the packets with data; each key update has the next.
    data: Secret,
}

/// What happens next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum HandshakeStep {
    SendClientHello,
    ReceiveClientHello,
    SendServerHello,
    ReceiveServerHello,
    /// The client has the keys of the handshake space.
    TakeHandshakeKeys,
    SendServerFlight,
    ReceiveServerFlight,
    SendClientFinished,
    ReceiveClientFinished,
    Done,
}

impl ClearSession {
    fn boxed(side: Side, params: &TransportParameters) -> Box<dyn Session> {
        let mut parameters = Vec::new();
        params.write(&mut parameters);
        let step =
            if side.is_client() { HandshakeStep::SendClientHello } else { HandshakeStep::ReceiveClientHello };
        let transcript = Secret::of(b"transcript");
        let (peer, partial, data) = (None, Vec::new(), transcript);
        Box::new(ClearSession { side, parameters, peer, step, partial, transcript, data })
    }

    /// Appends a message of a length, whose body begins with `content`.
    fn send(&mut self, buf: &mut Vec<u8>, kind: u8, len: usize, content: &[u8]) {
        let at = buf.len();
        let len = len.max(HEADER + content.len());
        buf.extend_from_slice(&[kind, 0, 0, 0]);
        buf[at + 2..at + HEADER].copy_from_slice(&((len - HEADER) as u16).to_be_bytes());
        buf.extend_from_slice(content);
        buf.resize(at + len, 0);
        self.transcript = self.transcript.with(&buf[at..]);
    }

    /// The body that carries the transport parameters.
    fn content(&self) -> Vec<u8> {
        let mut content = (self.parameters.len() as u16).to_be_bytes().to_vec();
        content.extend_from_slice(&self.parameters);
        content
    }

    fn receive(&mut self, kind: u8, message: &[u8]) -> Result<(), TransportError> {
        self.step = match (self.step, kind) {
            (HandshakeStep::ReceiveClientHello, CLIENT_HELLO) => {
                self.peer = Some(self.parameters_of(message)?);
                HandshakeStep::SendServerHello
            }
            (HandshakeStep::ReceiveServerHello, SERVER_HELLO) => HandshakeStep::TakeHandshakeKeys,
            (HandshakeStep::ReceiveServerFlight, ENCRYPTED_EXTENSIONS) => {
                self.peer = Some(self.parameters_of(message)?);
                HandshakeStep::ReceiveServerFlight
            }
            (HandshakeStep::ReceiveServerFlight, CERTIFICATE | CERTIFICATE_VERIFY) => {
                HandshakeStep::ReceiveServerFlight
            }
            (HandshakeStep::ReceiveServerFlight, FINISHED) => HandshakeStep::SendClientFinished,
            (HandshakeStep::ReceiveClientFinished, FINISHED) => HandshakeStep::Done,
            (step, kind) => return Err(unexpected(format!("message {kind} in {step:?}"))),
        };
        self.transcript = self.transcript.with(message);
        Ok(())
    }

    fn parameters_of(&self, message: &[u8]) -> Result<TransportParameters, TransportError> {
        let content = message[HEADER..]
            .split_first_chunk::<2>()
            .and_then(|(len, rest)| rest.get(..usize::from(u16::from_be_bytes(*len))));
        let Some(mut content) = content else { return Err(unexpected("it is cut".to_owned())) };
        Ok(TransportParameters::read(self.side, &mut content)?)
    }
}

fn unexpected(reason: String) -> TransportError {
    TransportError { code: TransportErrorCode::crypto(UNEXPECTED_MESSAGE), frame: None, reason }
}

impl Session for ClearSession {
    fn initial_keys(&self, dst_cid: &ConnectionId, side: Side) -> Keys {
        Secret::of(dst_cid).keys(side)
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        None
    }

    fn is_handshaking(&self) -> bool {
        self.step != HandshakeStep::Done
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        let mut bytes = std::mem::take(&mut self.partial);
        bytes.extend_from_slice(buf);
        let mut rest = &bytes[..];
        while let Some(header) = rest.first_chunk::<HEADER>() {
            let len = HEADER + u32::from_be_bytes([0, header[1], header[2], header[3]]) as usize;
            if len > MESSAGE_MAX {
                return Err(unexpected(format!("a message of {len} bytes")));
            }
            let Some((message, after)) = rest.split_at_checked(len) else { break };
            self.receive(header[0], message)?;
            rest = after;
        }
        self.partial = rest.to_vec();
        Ok(false)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        Ok(self.peer)
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        match self.step {
            HandshakeStep::SendClientHello => {
                let content = self.content();
                self.send(buf, CLIENT_HELLO, CLIENT_HELLO_LEN, &content);
                self.step = HandshakeStep::ReceiveServerHello;
                None
            }
            HandshakeStep::SendServerHello => {
                self.send(buf, SERVER_HELLO, SERVER_HELLO_LEN, &[]);
                self.step = HandshakeStep::SendServerFlight;
                Some(self.transcript.keys(self.side))
            }
            HandshakeStep::TakeHandshakeKeys => {
                self.step = HandshakeStep::ReceiveServerFlight;
                Some(self.transcript.keys(self.side))
            }
            HandshakeStep::SendServerFlight => {
                let content = self.content();
                self.send(buf, ENCRYPTED_EXTENSIONS, EXTENSIONS_LEN + self.parameters.len(), &content);
                self.send(buf, CERTIFICATE, CERTIFICATE_LEN, &[]);
                self.send(buf, CERTIFICATE_VERIFY, CERTIFICATE_VERIFY_LEN, &[]);
                self.send(buf, FINISHED, FINISHED_LEN, &[]);
                self.data = self.transcript;
                self.step = HandshakeStep::ReceiveClientFinished;
                Some(self.data.keys(self.side))
            }
            HandshakeStep::SendClientFinished => {
                self.data = self.transcript;
                self.send(buf, FINISHED, FINISHED_LEN, &[]);
                self.step = HandshakeStep::Done;
                Some(self.data.keys(self.side))
            }
            HandshakeStep::ReceiveClientHello
            | HandshakeStep::ReceiveServerHello
            | HandshakeStep::ReceiveServerFlight
            | HandshakeStep::ReceiveClientFinished
            | HandshakeStep::Done => None,
        }
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        self.data = self.data.next();
        Some(self.data.packet_keys(self.side))
    }

    fn is_valid_retry(&self, orig_dst_cid: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        let Some((token, tag)) = payload.split_at_checked(payload.len().saturating_sub(TAG)) else {
            return false;
        };
        tag == retry_tag(orig_dst_cid, &[header, token].concat())
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.transcript.with(label).with(context).fill(output);
        Ok(())
    }
}

fn retry_tag(orig_dst_cid: &ConnectionId, packet: &[u8]) -> [u8; TAG] {
    let mut tag = [0; TAG];
    Secret::of(orig_dst_cid).with(packet).fill(&mut tag);
    tag
}

impl ClientConfig for ClearSessions {
    fn start_session(
        self: Arc<Self>,
        _: u32,
        _: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(ClearSession::boxed(Side::Client, params))
    }
}

impl ServerConfig for ClearSessions {
    fn initial_keys(&self, _: u32, dst_cid: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(Secret::of(dst_cid).keys(Side::Server))
    }

    fn retry_tag(&self, _: u32, orig_dst_cid: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        retry_tag(orig_dst_cid, packet)
    }

    fn start_session(self: Arc<Self>, _: u32, params: &TransportParameters) -> Box<dyn Session> {
        ClearSession::boxed(Side::Server, params)
    }
}
