//! Building blocks of black-box tests and tools: real processes of `placementd`, clusters of them,
//! and a sample cloud.

pub mod backups;
pub mod cluster;
pub mod histories;
pub mod host;
pub mod http_2;
pub mod http_server;
pub mod keystone;
pub mod link;
pub mod osc;
pub mod power;
pub mod process_cost;
pub mod program;
pub mod prometheus;
pub mod python;
pub mod reference;
pub mod s3;
pub mod shim;
pub mod skip;
pub mod small_disk;
pub mod torture;
pub mod tutorial;
pub mod wait;

pub use placement_local::{
    authority, binaries, exit_code, is_ready, layout, node_process, ports, private, sample,
};
