//! Pictures of the figures, as SVG: latency against load, and cost against size.

use std::collections::BTreeMap;

use super::super::estates::{Dress, Shape};
use super::super::lines::{Axis, Scale, Series, draw};
use super::measurement::{Load, Measurement, Quantity, Sample, Work};

type Samples = BTreeMap<Measurement, Sample>;

/// The plots that these figures give, by the names of their files.
pub(super) fn all(samples: &Samples) -> Vec<(&'static str, String)> {
    let plots = [
        ("latency-of-reads.svg", latency(samples, Work::Inventories)),
        ("latency-of-writes.svg", latency(samples, Work::Write)),
        (
            "latency-of-candidates.svg",
            latency(samples, Work::Candidates(Some(10))),
        ),
        ("cost-against-size.svg", cost(samples)),
    ];
    let drawn = plots.into_iter();
    drawn
        .filter_map(|(name, plot)| Some((name, plot?)))
        .collect()
}

/// Latency from when a request was due, against what was offered.
fn latency(samples: &Samples, work: Work) -> Option<String> {
    let offered = |at: &Measurement| at.work == work && matches!(at.load, Load::Offered(_));
    let taken: Vec<_> = samples.iter().filter(|(at, _)| offered(at)).collect();
    let (first, _) = taken.first()?;
    let series = |name: &str, of: fn(&Sample) -> f64| {
        let points = taken.iter().map(|(_, s)| (s.per_second, of(s)));
        Series {
            name: name.to_owned(),
            points: points.collect(),
        }
    };
    let all = [
        series("p50", |sample| sample.p50_ms),
        series("p99", |sample| sample.p99_ms),
        series("p99.9", |sample| sample.p999_ms),
    ];
    let title = format!("{}, {}, {}", first.work, first.service, first.cloud);
    let x = Axis::of(
        "requests a second, at a fixed schedule",
        Scale::Linear,
        &all,
        |at| at.0,
    )?;
    let y = Axis::of("milliseconds since due", Scale::Logarithmic, &all, |at| {
        at.1
    })?;
    Some(draw(&title, &x, &y, &all))
}

/// Processor time of a request for ten candidates, against the size of the cloud.
fn cost(samples: &Samples) -> Option<String> {
    let mut all: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    for (at, sample) in samples {
        let flat = at.cloud.shape == Shape::Flat && at.cloud.dress == Dress::Plain;
        let asked = at.work == Work::Candidates(Some(10)) && at.load == Load::Connections(16);
        if let (true, Some(cpu)) = (flat && asked, Quantity::CpuOfAsked.of(sample)) {
            let series = all.entry(at.service.to_string()).or_default();
            series.push((at.cloud.size as f64, cpu));
        }
    }
    let all: Vec<_> = all
        .into_iter()
        .map(|(name, points)| Series { name, points })
        .collect();
    let x = Axis::of("hosts", Scale::Logarithmic, &all, |at| at.0)?;
    let y = Axis::of("CPU per request, ms", Scale::Logarithmic, &all, |at| at.1)?;
    Some(draw(
        "10 allocation candidates of a flat cloud",
        &x,
        &y,
        &all,
    ))
}

#[cfg(test)]
mod tests {
    use super::super::super::estates::Cloud;
    use super::super::measurement::{Service, THREE};
    use super::*;

    #[test]
    fn each_service_has_a_line_with_its_points() {
        let mut samples = Samples::new();
        for (service, costs) in [(THREE, [0.05, 0.06]), (Service::Upstream, [250.0, 2000.0])] {
            for (hosts, cpu) in [1_000, 10_000].into_iter().zip(costs) {
                let cloud = Cloud::of(Shape::Flat, hosts);
                let at = Measurement::of(service, cloud, Work::Candidates(Some(10)), 16);
                let cpu_ms = Some(cpu);
                let sample = Sample {
                    cpu_ms,
                    ..Sample::default()
                };
                samples.insert(at, sample);
            }
        }
        let plots = all(&samples);
        let names: Vec<_> = plots.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["cost-against-size.svg"]);
        let plot = &plots[0].1;
        assert_eq!(plot.matches("<circle").count(), 4, "{plot}");
        assert!(
            plot.contains("upstream") && plot.ends_with("</svg>"),
            "{plot}"
        );
        assert!(!plot.contains("NaN"), "{plot}");
    }
}
