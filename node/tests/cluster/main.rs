//! Three nodes in one process, over loopback TCP and real disks.

mod estate;
mod formation;
mod leadership;
mod membership;
mod reads;
mod recovery;
mod storage;
mod writes;
