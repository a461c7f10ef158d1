//! Leadership: reactions to its changes, and how it is handed over.

pub mod hand_over;
pub mod preference;
pub mod round_trips;
pub mod slow_followers;
pub mod watch;
