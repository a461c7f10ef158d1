//! What was measured, as a table of bars, as a table of all figures, and as JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::measurement::{Load, Measurement, Sample, ms};
use super::rows::{Bar, Peer, Row};

/// All of a run.
pub(super) struct Report<'a> {
    pub(super) machine: String,
    pub(super) quick: bool,
    pub(super) seconds: u64,
    pub(super) rows: &'a [Row],
    pub(super) samples: &'a BTreeMap<Measurement, Sample>,
}

/// A row with its figures.
struct Judged<'a> {
    row: &'a Row,
    ours: f64,
    peer: Option<Held>,
    met: Option<bool>,
}

/// The figure that ours is held against.
struct Held {
    by: Measurement,
    value: f64,
    /// Whether it is all that it would have been.
    ended: bool,
}

impl Report<'_> {
    /// The rows whose own figure was taken.
    fn judged(&self) -> impl Iterator<Item = Judged<'_>> {
        self.rows.iter().filter_map(|row| {
            let ours = row.quantity.of(self.samples.get(&row.ours)?)?;
            let peer = self.peer(row);
            let met = row.bar.is_met(ours, peer.as_ref().map(|peer| peer.value));
            // More than has been waited for, and nobody knows how much more.
            let known = met == Some(true) || peer.as_ref().is_none_or(|peer| peer.ended);
            Some(Judged {
                row,
                ours,
                peer,
                met: met.filter(|_| known),
            })
        })
    }

    fn peer(&self, row: &Row) -> Option<Held> {
        let held = |by: &Measurement| {
            let sample = self.samples.get(by)?;
            let value = row.quantity.of(sample)?;
            let (by, ended) = (*by, sample.ended);
            Some(Held { by, value, ended })
        };
        match &row.peer {
            Peer::Nobody => None,
            Peer::Of(peer) => held(peer),
            Peer::BestOf(peers) => {
                let all = peers.iter().filter_map(held);
                all.max_by(|one, other| one.value.total_cmp(&other.value))
            }
        }
    }

    /// How many bars were missed.
    pub(super) fn missed(&self) -> usize {
        let missed = self.judged().filter(|judged| judged.met == Some(false));
        missed.count()
    }

    /// Both tables.
    pub(super) fn table(&self) -> String {
        let mut text = String::from(
            "\n## Bars\n\n| row | what | figure | ours | peer | ratio | bar | |\n|---|---|---|---:|---:|---:|---|---|\n",
        );
        for judged in self.judged() {
            let Judged {
                row,
                ours,
                peer,
                met,
            } = &judged;
            let ours_at = &row.ours;
            line(
                &mut text,
                &[
                    row.name.to_owned(),
                    ours_at.to_string(),
                    row.quantity.to_string(),
                    row.quantity.show(*ours),
                    peer.as_ref().map_or("–".to_owned(), |peer| peer.show(row)),
                    judged.ratio(),
                    row.bar.show(row.quantity),
                    verdict(row.bar, *met).to_owned(),
                ],
            );
        }
        text += "\n## All figures\n\n| service | what | cloud | load | per second | p50 | p99 | p99.9 | CPU per request | of the node asked | answer |\n|---|---|---|---|---:|---:|---:|---:|---:|---:|---:|\n";
        for (at, sample) in self.samples {
            let part = |value: Option<f64>| value.map_or("–".to_owned(), ms);
            line(
                &mut text,
                &[
                    at.service.to_string(),
                    at.work.to_string(),
                    match at.cloud.size {
                        0 => "–".to_owned(),
                        _ => at.cloud.to_string(),
                    },
                    at.load.to_string(),
                    match sample.failed {
                        0 => format!("{:.1}", sample.per_second),
                        failed => format!("{:.1} ({failed} failed)", sample.per_second),
                    },
                    ms(sample.p50_ms),
                    ms(sample.p99_ms),
                    ms(sample.p999_ms),
                    part(sample.cpu_ms),
                    part(sample.cpu_of_asked_ms),
                    format!("{} B", sample.answer_bytes),
                ],
            );
        }
        text
    }

    /// The same for machines.
    pub(super) fn json(&self) -> anyhow::Result<String> {
        let rows: Vec<Value> = self
            .judged()
            .map(|judged| {
                let row = judged.row;
                json!({
                    "row": row.name,
                    "what": row.ours.to_string(),
                    "quantity": row.quantity.to_string(),
                    "ours": judged.ours,
                    "peer": judged.peer.as_ref().map(|peer| peer.value),
                    "peer_is": judged.peer.as_ref().map(|peer| peer.by.to_string()),
                    "peer_ended": judged.peer.as_ref().map(|peer| peer.ended),
                    "ratio": judged.peer.as_ref().map(|peer| row.bar.ratio(judged.ours, peer.value)),
                    "bar": row.bar.show(row.quantity),
                    "met": judged.met,
                })
            })
            .collect();
        let mut figures = Vec::new();
        for (at, sample) in self.samples {
            let mut figure = serde_json::to_value(sample)?;
            figure["service"] = at.service.to_string().into();
            figure["what"] = at.work.to_string().into();
            figure["cloud"] = at.cloud.to_string().into();
            figure["load"] = match at.load {
                Load::Connections(count) => json!({ "connections": count }),
                Load::Offered(percent) => json!({ "percent": percent }),
                Load::PerSecond(rate) => json!({ "per_second": rate }),
            };
            figures.push(figure);
        }
        Ok(serde_json::to_string_pretty(&json!({
            "machine": self.machine,
            "quick": self.quick,
            "seconds_per_figure": self.seconds,
            "rows": rows,
            "figures": figures,
        }))?)
    }
}

impl Judged<'_> {
    fn ratio(&self) -> String {
        let Some(peer) = &self.peer else {
            return "–".to_owned();
        };
        let at_least = if peer.ended { "" } else { "> " };
        let ratio = self.row.bar.ratio(self.ours, peer.value);
        if self.row.bar == Bar::Shown {
            return match ratio < 1.0 {
                true => format!("{at_least}{} less", times(1.0 / ratio)),
                false => format!("{at_least}{} more", times(ratio)),
            };
        }
        format!("{at_least}{}", times(ratio))
    }
}

fn times(ratio: f64) -> String {
    match ratio {
        r if r < 10.0 => format!("{r:.2} ×"),
        r => format!("{r:.0} ×"),
    }
}

impl Held {
    /// The figure, and in what its setting differs from that of ours.
    fn show(&self, row: &Row) -> String {
        let mut text = String::new();
        let Measurement {
            service,
            cloud,
            work,
            load,
        } = self.by;
        let ours = row.ours;
        if service != ours.service {
            text += &format!("{service} ");
        }
        if work != ours.work {
            text += &format!("{work} ");
        }
        if cloud != ours.cloud && cloud.size > 0 {
            text += &format!("{cloud} ");
        }
        if load != ours.load {
            text += &format!("{load} ");
        }
        let more = if self.ended { "" } else { "> " };
        format!("{text}{more}{}", row.quantity.show(self.value))
    }
}

fn verdict(bar: Bar, met: Option<bool>) -> &'static str {
    match met {
        Some(true) => "pass",
        Some(false) => "MISS",
        None if bar == Bar::Shown => "",
        None => "not judged",
    }
}

fn line(text: &mut String, cells: &[String]) {
    // A string takes everything.
    let _ = writeln!(text, "| {} |", cells.join(" | "));
}

#[cfg(test)]
mod tests {
    use super::super::super::estates::{Cloud, Shape};
    use super::super::measurement::{Quantity, Service, THREE, Work};
    use super::*;

    fn figure(p50_ms: f64, ended: bool) -> Sample {
        Sample {
            p50_ms,
            ended,
            ..Sample::default()
        }
    }

    #[test]
    fn rows_are_judged_by_what_is_known() {
        let cloud = Cloud::of(Shape::Pci, 5);
        let ours = Measurement::of(THREE, cloud, Work::Devices(1), 1);
        let upstream = ours.by(Service::Upstream);
        let row = |bar, peer| Row {
            name: "pci",
            quantity: Quantity::P50,
            ours,
            peer,
            bar,
        };
        let rows = [
            row(Bar::Cheaper(500.0), Peer::Of(upstream)),
            row(Bar::Cheaper(50.0), Peer::Of(upstream)),
            row(Bar::Within(1.0), Peer::Nobody),
            row(Bar::AtMost(1.0), Peer::Of(ours.by(Service::Etcd))),
        ];
        let told = |ended| {
            let samples = [(ours, figure(2.0, true)), (upstream, figure(200.0, ended))].into();
            let report = Report {
                machine: "one".to_owned(),
                quick: true,
                seconds: 1,
                rows: &rows,
                samples: &samples,
            };
            let verdicts: Vec<_> = report.judged().map(|judged| judged.met).collect();
            (verdicts, report.missed(), report.table())
        };
        let (verdicts, missed, table) = told(true);
        assert_eq!(verdicts, [Some(false), Some(true), Some(false), None]);
        assert_eq!(missed, 2);
        assert!(
            table.contains("| 2.000 ms | upstream 200.0 ms | 100 × | ≥ 500 × less | MISS |"),
            "{table}"
        );
        assert!(
            table.contains("| 2.000 ms | – | – | ≤ 1 × | not judged |"),
            "{table}"
        );
        let (verdicts, missed, table) = told(false);
        assert_eq!(verdicts, [None, Some(true), Some(false), None]);
        assert_eq!(missed, 1);
        assert!(
            table.contains("| upstream > 200.0 ms | > 100 × |"),
            "{table}"
        );
    }
}
