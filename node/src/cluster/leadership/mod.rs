//! Leadership: reactions to its changes, and how it is handed over.

pub(crate) mod hand_over;
pub(crate) mod preference;
pub(crate) mod round_trips;
pub(crate) mod watch;
