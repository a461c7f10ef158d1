//! The newest microversion of the OpenStack Placement API that a node serves, and that the client
//! and the pages speak.

macro_rules! newest {
    ($minor:literal) => {
        /// The minor version: `N` of `1.N`.
        pub const NEWEST_MINOR: u8 = $minor;
        /// The version as text, `1.N`.
        pub const NEWEST: &str = concat!("1.", $minor);
        /// The value of the header `OpenStack-API-Version`.
        pub const NEWEST_HEADER: &str = concat!("placement 1.", $minor);
    };
}

newest!(39);
