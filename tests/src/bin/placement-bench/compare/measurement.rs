//! What can be measured, as values, and what comes of it.

use std::fmt;

use bytes::Bytes;
use serde::Serialize;

use super::super::estates::{Cloud, Shape, devices_query};
use super::alone::Place;
use super::request::{FRESH, Request};

/// How many providers or consumers are asked for in turn.
pub(super) const IN_TURN: u64 = 64;

/// Who is measured, in the order in which they are: who answers with what another one answered comes
/// after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Service {
    /// placementd, one node.
    One,
    /// axum with a fixed answer: that of [`Service::One`].
    Axum,
    /// placementd, three nodes: a follower is read from, all are written to. With `randomize`, candidates
    /// come in random order.
    Three { randomize: bool },
    /// serde_json, which writes what the follower answered.
    SerdeJson,
    /// etcd, three nodes.
    Etcd,
    /// The disk alone.
    Disk,
    /// openstack-placement on MariaDB.
    Upstream,
}

pub(super) const THREE: Service = Service::Three { randomize: false };

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::One => "one node",
            Self::Axum => "bare axum",
            Self::Three { randomize: false } => "three nodes",
            Self::Three { randomize: true } => "three nodes, randomize",
            Self::SerdeJson => "serde_json",
            Self::Etcd => "etcd",
            Self::Disk => "disk",
            Self::Upstream => "upstream",
        })
    }
}

/// What is asked for, reads first: writes would change what is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Work {
    /// A host's inventories, with the default promise.
    Inventories,
    /// The same with the promise `local`.
    InventoriesLocal,
    /// A consumer's allocations.
    Allocations,
    /// Candidates: so many at most, or all there are.
    Candidates(Option<u64>),
    /// A thousand candidates with so many devices, each in a group of its own.
    Devices(u32),
    /// From the start of the process until it is ready. Its memory then.
    Start,
    /// A new consumer's allocations; of etcd, a put.
    Write,
    /// The same while snapshots are taken, one after the other.
    WriteBesideSnapshots,
    /// Candidates, then one of them is written, again on a conflict.
    ClaimLoop,
    /// 4 KiB and fdatasync.
    Sync(Place),
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inventories => f.write_str("GET …/inventories"),
            Self::InventoriesLocal => f.write_str("GET …/inventories, local"),
            Self::Allocations => f.write_str("GET /allocations/{c}"),
            Self::Candidates(Some(limit)) => write!(f, "candidates, limit={limit}"),
            Self::Candidates(None) => f.write_str("candidates, no limit"),
            Self::Devices(groups) => write!(f, "candidates, {groups} devices, limit=1000"),
            Self::Start => f.write_str("start"),
            Self::Write => f.write_str("PUT /allocations"),
            Self::WriteBesideSnapshots => f.write_str("PUT /allocations beside snapshots"),
            Self::ClaimLoop => f.write_str("claim loop"),
            Self::Sync(Place::Append) => f.write_str("append of 4 KiB and fdatasync"),
            Self::Sync(Place::Overwrite) => f.write_str("overwriting of 4 KiB and fdatasync"),
        }
    }
}

/// How much of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Load {
    /// So many connections, each with one request at a time.
    Connections(usize),
    /// This part, in percent, of what [`FULL`] connections got done, at a fixed schedule.
    Offered(u32),
    /// So many requests a second, at a fixed schedule.
    PerSecond(u32),
}

/// The connections with which a service is taken to be at its limit.
pub(super) const FULL: usize = 64;

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connections(1) => f.write_str("1 connection"),
            Self::Connections(count) => write!(f, "{count} connections"),
            Self::Offered(percent) => write!(f, "{percent} % of the rate at {FULL} connections"),
            Self::PerSecond(rate) => write!(f, "{rate} a second"),
        }
    }
}

/// One figure's setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Measurement {
    pub(super) service: Service,
    pub(super) cloud: Cloud,
    pub(super) work: Work,
    pub(super) load: Load,
}

impl Measurement {
    pub(super) fn of(service: Service, cloud: Cloud, work: Work, connections: usize) -> Self {
        let load = Load::Connections(connections);
        Self {
            service,
            cloud,
            work,
            load,
        }
    }

    /// The same by somebody else.
    pub(super) fn by(self, service: Service) -> Self {
        Self { service, ..self }
    }

    /// The same in another cloud.
    pub(super) fn within(self, cloud: Cloud) -> Self {
        Self { cloud, ..self }
    }

    /// The same with another load.
    pub(super) fn under(self, load: Load) -> Self {
        Self { load, ..self }
    }

    /// What must be measured before, so that this can be.
    pub(super) fn needs(self) -> Option<Self> {
        match (self.service, self.load) {
            (_, Load::Offered(_)) => Some(self.under(Load::Connections(FULL))),
            (Service::Axum, _) => Some(self.by(Service::One)),
            (Service::SerdeJson, load) => Some(self.by(THREE).under(load)),
            _ => None,
        }
    }

    /// The requests that are sent in turn; none where it is no matter of single requests.
    pub(super) fn requests(self) -> Vec<Request> {
        let cloud = self.cloud;
        match self.work {
            Work::Inventories | Work::InventoriesLocal => (cloud.roots(IN_TURN).iter())
                .map(|root| Request::get(format!("/resource_providers/{root}/inventories")))
                .collect(),
            Work::Allocations => (cloud.consumers(IN_TURN).iter())
                .map(|consumer| Request::get(format!("/allocations/{consumer}")))
                .collect(),
            Work::Candidates(limit) => {
                let query = match limit {
                    Some(limit) => cloud.query().limit(limit),
                    None => cloud.query(),
                };
                vec![Request::get(query.path())]
            }
            Work::Devices(groups) => vec![Request::get(devices_query(groups).path())],
            Work::Write | Work::WriteBesideSnapshots => {
                (1..=u128::from(IN_TURN)).map(write).collect()
            }
            Work::Start | Work::ClaimLoop | Work::Sync(_) => Vec::new(),
        }
    }
}

impl fmt::Display for Measurement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            service,
            cloud,
            work,
            load,
        } = self;
        write!(f, "{service}: {work}")?;
        if cloud.size > 0 {
            write!(f, ", {cloud}")?;
        }
        write!(f, ", {load}")
    }
}

/// A claim on one of the providers without bounds.
fn write(provider: u128) -> Request {
    let provider = uuid::Uuid::from_u128(provider);
    let body = serde_json::json!({
        "allocations": {provider.to_string(): {"resources": {"VCPU": 1, "MEMORY_MB": 2}}},
        "project_id": "project",
        "user_id": "user",
        "consumer_generation": null,
        "consumer_type": "INSTANCE",
    });
    Request::put(format!("/allocations/{FRESH}"), body.to_string())
}

/// The cloud of those who have none.
pub(super) fn nowhere() -> Cloud {
    Cloud::of(Shape::Flat, 0)
}

/// What came of a measurement.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Sample {
    pub(super) requests: u64,
    /// Those of them that came to nothing. They are in no rate and in no latency.
    pub(super) failed: u64,
    pub(super) per_second: f64,
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    pub(super) p999_ms: f64,
    /// Processor time per request of all processes of the service.
    pub(super) cpu_ms: Option<f64>,
    /// The part of it that the node has spent that was asked, if one was.
    pub(super) cpu_of_asked_ms: Option<f64>,
    pub(super) answer_bytes: usize,
    pub(super) resident_mib: Option<f64>,
    /// Whether it has answered within the time that it was given. If not, what stands for latency and
    /// processor time is what had passed by then.
    pub(super) ended: bool,
    /// The answer to the first request.
    #[serde(skip)]
    pub(super) answer: Bytes,
}

/// One of a sample's figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quantity {
    PerSecond,
    P50,
    P99,
    /// Of all processes of the service.
    Cpu,
    /// Of the node that was asked.
    CpuOfAsked,
    Resident,
}

impl Quantity {
    pub(super) fn of(self, sample: &Sample) -> Option<f64> {
        match self {
            Self::PerSecond => Some(sample.per_second),
            Self::P50 => Some(sample.p50_ms),
            Self::P99 => Some(sample.p99_ms),
            Self::Cpu => sample.cpu_ms,
            Self::CpuOfAsked => sample.cpu_of_asked_ms.or(sample.cpu_ms),
            Self::Resident => sample.resident_mib,
        }
    }

    pub(super) fn show(self, value: f64) -> String {
        match self {
            Self::PerSecond if value < 100.0 => format!("{value:.1}/s"),
            Self::PerSecond => format!("{value:.0}/s"),
            Self::P50 | Self::P99 | Self::Cpu | Self::CpuOfAsked => ms(value),
            Self::Resident => format!("{value:.0} MiB"),
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PerSecond => "per second",
            Self::P50 => "p50",
            Self::P99 => "p99",
            Self::Cpu => "CPU, all processes",
            Self::CpuOfAsked => "CPU, the node asked",
            Self::Resident => "resident",
        })
    }
}

/// Milliseconds, as exact as they are long.
pub(super) fn ms(value: f64) -> String {
    match value {
        v if v < 10.0 => format!("{v:.3} ms"),
        v if v < 1000.0 => format!("{v:.1} ms"),
        v => format!("{:.1} s", v / 1000.0),
    }
}
