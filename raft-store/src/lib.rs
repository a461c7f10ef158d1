//! raft-store
