//! A topology of hosts, routers, switches and links, and the packets' walk through it at logical time.
#![forbid(unsafe_code)]
