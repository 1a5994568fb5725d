//! Hosts as network namespaces around the engine, and the measurements made in them.
