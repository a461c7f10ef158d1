//! Notifications to systemd, or to another supervisor that gave this process a `NOTIFY_SOCKET`.

use std::env;
use std::future::pending;
use std::time::Duration;

use sd_notify::NotifyState::{self, Ready, Reloading, Status, Stopping, Watchdog};
use tokio::time::sleep;

use crate::node::Node;

/// How often the status of the node is checked.
const EVERY: Duration = Duration::from_secs(5);

/// Notifies that the node listens. It need not belong to a cluster yet: it may wait for the others,
/// or to be added.
pub(crate) fn ready() {
    notify(&[Ready]);
}

/// Notifies that the configuration is being reloaded, until [`ready`].
pub(crate) fn reloading() {
    let now = NotifyState::monotonic_usec_now();
    notify(&[Reloading, now.expect("Linux has this clock")]);
}

/// Notifies that the node stops.
pub(crate) fn stopping() {
    notify(&[Stopping, Status("stopping")]);
}

/// Keeps notifying the supervisor that the node is alive, if it has a watchdog, and whether the
/// node is ready.
pub(crate) async fn report(node: &Node) {
    if env::var_os("NOTIFY_SOCKET").is_none() {
        return pending().await;
    }
    tokio::join!(watchdog(node), status(node));
}

/// A node that is not alive sends no notification, and is restarted.
async fn watchdog(node: &Node) {
    let Some(limit) = sd_notify::watchdog_enabled() else {
        return;
    };
    loop {
        if node.is_alive().await {
            notify(&[Watchdog]);
        }
        sleep(limit / 3).await;
    }
}

/// Reports the status for `systemctl status`.
async fn status(node: &Node) {
    let mut shown = String::new();
    loop {
        let now = (node.problem().await).unwrap_or_else(|| "ready".to_owned());
        if now != shown {
            notify(&[Status(&now)]);
            shown = now;
        }
        sleep(EVERY).await;
    }
}

fn notify(states: &[NotifyState]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "the supervisor cannot be notified");
    }
}
