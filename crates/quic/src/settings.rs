//! What both ends of all connections of a transfer are set to.

use crate::keys::Secret;
use crate::session::ClearSessions;
use fastpath_traffic::{CongestionControl, QUIC_DATAGRAM_MIN};
use fastpath_units::Rng;
use quinn_proto::congestion::{CubicConfig, NewRenoConfig};
use quinn_proto::{
    ClientConfig, ConnectionId, ConnectionIdGenerator, Endpoint, EndpointConfig, MtuDiscoveryConfig,
    NoneTokenStore, ServerConfig, TransportConfig, VarInt,
};
use std::sync::Arc;
use std::time::Duration;

/// The largest UDP payload that is tried: quinn's default, below the usual MTU with IPv4 and IPv6.
const DATAGRAM_MAX: u32 = 1452;
/// Bytes that a receiver takes ahead of its program, as the model of TCP does.
const RECEIVE_WINDOW: u32 = 3 << 20;
/// Bytes that wait for an acknowledgement, at most.
const SEND_WINDOW: u64 = 2 * RECEIVE_WINDOW as u64;
/// Bytes of the connection ids of both ends: quinn's default.
const ID_LEN: usize = 8;

/// Connection ids from a seed.
struct SeededIds(Rng);

impl ConnectionIdGenerator for SeededIds {
    fn generate_cid(&mut self) -> ConnectionId {
        ConnectionId::new(&self.0.next_u64().to_be_bytes())
    }

    fn cid_len(&self) -> usize {
        ID_LEN
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// The settings of a transfer.
pub(crate) struct Settings {
    transport: Arc<TransportConfig>,
}

impl Settings {
    /// `payload_max`: bytes of UDP payload that fit into the MTU of the hosts.
    pub(crate) fn new(congestion: CongestionControl, payload_max: u32) -> Settings {
        let mut discovery = MtuDiscoveryConfig::default();
        discovery.upper_bound(payload_max.clamp(QUIC_DATAGRAM_MIN, DATAGRAM_MAX) as u16);
        let mut transport = TransportConfig::default();
        match congestion {
            CongestionControl::Cubic => {
                transport.congestion_controller_factory(Arc::new(CubicConfig::default()))
            }
            CongestionControl::Reno => {
                transport.congestion_controller_factory(Arc::new(NewRenoConfig::default()))
            }
        };
        transport
            .initial_mtu(QUIC_DATAGRAM_MIN as u16)
            .min_mtu(QUIC_DATAGRAM_MIN as u16)
            .mtu_discovery_config(Some(discovery))
            .enable_segmentation_offload(false)
            .stream_receive_window(VarInt::from_u32(RECEIVE_WINDOW))
            .send_window(SEND_WINDOW)
            .max_concurrent_bidi_streams(VarInt::from_u32(0))
            .max_concurrent_uni_streams(VarInt::from_u32(1))
            .datagram_receive_buffer_size(None);
        Settings { transport: Arc::new(transport) }
    }

    /// The endpoint that opens connections.
    pub(crate) fn client(rng: &mut Rng) -> Endpoint {
        Endpoint::new(Arc::new(endpoint_config(rng)), None, true, None)
    }

    /// The endpoint that accepts them.
    pub(crate) fn server(&self, rng: &mut Rng) -> Endpoint {
        let config = endpoint_config(rng);
        let tokens = Secret::of(&rng.next_u64().to_be_bytes());
        let mut server = ServerConfig::new(Arc::new(ClearSessions), Arc::new(tokens));
        server.transport_config(Arc::clone(&self.transport)).validation_token.sent(0);
        Endpoint::new(Arc::new(config), Some(Arc::new(server)), true, None)
    }

    /// How a connection is opened whose first destination id is this one.
    pub(crate) fn connection(&self, first: ConnectionId) -> ClientConfig {
        let mut client = ClientConfig::new(Arc::new(ClearSessions));
        client
            .transport_config(Arc::clone(&self.transport))
            .token_store(Arc::new(NoneTokenStore))
            .initial_dst_cid_provider(Arc::new(move || first));
        client
    }
}

fn endpoint_config(rng: &mut Rng) -> EndpointConfig {
    let reset = Secret::of(&rng.next_u64().to_be_bytes());
    let mut config = EndpointConfig::new(Arc::new(reset));
    let mut seed = [0; 32];
    seed.chunks_exact_mut(8).for_each(|part| part.copy_from_slice(&rng.next_u64().to_be_bytes()));
    let ids = rng.next_u64();
    config.rng_seed(Some(seed)).cid_generator(move || Box::new(SeededIds(Rng::new(ids))));
    config
}
