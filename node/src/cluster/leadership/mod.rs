//! Who leads: what follows when that changes, and how leadership is handed over.

pub(crate) mod hand_over;
pub(crate) mod preference;
pub(crate) mod round_trips;
pub(crate) mod watch;
