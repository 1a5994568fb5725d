//! The network of `fastpath-net` driven in real time between real ports.
