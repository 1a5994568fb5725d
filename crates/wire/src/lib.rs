//! Bytes to headers and back: Ethernet, VLAN, ARP, IPv4/IPv6, TCP, UDP, ICMP, checksums, segmentation, pcap.
#![forbid(unsafe_code)]
