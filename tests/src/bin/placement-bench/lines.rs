//! Lines in a picture, as SVG.

use svg::Document;
use svg::node::element::{Circle, Line, Polyline, Rectangle, Text};

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 440.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 210.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 60.0;
const COLOURS: [&str; 6] = [
    "#2f6fb3", "#e07b00", "#3a9d5d", "#c22f2f", "#7a5195", "#555555",
];

/// A line of points, from left to right.
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
}

/// How numbers become places.
#[derive(Clone, Copy)]
pub(crate) enum Scale {
    Linear,
    Logarithmic,
}

pub(crate) struct Axis {
    name: &'static str,
    scale: Scale,
    least: f64,
    most: f64,
}

impl Axis {
    /// An axis with room for all points; `None` if there is none.
    pub(crate) fn of(
        name: &'static str,
        scale: Scale,
        all: &[Series],
        of: fn(&(f64, f64)) -> f64,
    ) -> Option<Self> {
        let values = || all.iter().flat_map(|series| series.points.iter().map(of));
        let most = values().reduce(f64::max)?;
        let least = values().reduce(f64::min)?;
        let (least, most) = match scale {
            Scale::Linear => (0.0, most.max(1e-6) * 1.02),
            Scale::Logarithmic => {
                let decade =
                    |value: f64, round: fn(f64) -> f64| 10_f64.powf(round(value.max(1e-6).log10()));
                let least = decade(least, f64::floor);
                (least, decade(most, f64::ceil).max(least * 10.0))
            }
        };
        Some(Self {
            name,
            scale,
            least,
            most,
        })
    }

    /// Where a value is, from 0 to 1.
    fn place(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Linear => (value - self.least) / (self.most - self.least),
            Scale::Logarithmic => {
                (value.max(self.least) / self.least).ln() / (self.most / self.least).ln()
            }
        }
    }

    fn ticks(&self) -> Vec<f64> {
        match self.scale {
            Scale::Linear => {
                // One, two or five of a power of ten: four to ten of them.
                let decade = 10_f64.powf((self.most / 4.0).log10().floor());
                let steps = [5.0, 2.0, 1.0].map(|step| step * decade);
                let fits = |step: &f64| self.most / step >= 4.0;
                let step = steps.into_iter().find(fits).unwrap_or(decade);
                (0..)
                    .map(|n| step * f64::from(n))
                    .take_while(|at| *at <= self.most)
                    .collect()
            }
            Scale::Logarithmic => {
                let decades = (self.most / self.least).log10().round() as i32;
                (0..=decades).map(|n| self.least * 10_f64.powi(n)).collect()
            }
        }
    }
}

/// The picture.
pub(crate) fn draw(title: &str, x: &Axis, y: &Axis, all: &[Series]) -> String {
    let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
    let at_x = |value| LEFT + x.place(value) * (right - LEFT);
    let at_y = |value| bottom - y.place(value) * (bottom - TOP);
    let background = Rectangle::new()
        .set("width", WIDTH)
        .set("height", HEIGHT)
        .set("fill", "white");
    let mut page = Document::new()
        .set("viewBox", (0.0, 0.0, WIDTH, HEIGHT))
        .set("font-family", "sans-serif")
        .set("font-size", 12)
        .add(background)
        .add(text(LEFT, 22.0, "start", title));
    for tick in x.ticks() {
        page = page
            .add(rule((at_x(tick), TOP), (at_x(tick), bottom)))
            .add(text(at_x(tick), bottom + 18.0, "middle", &number(tick)));
    }
    for tick in y.ticks() {
        page = page
            .add(rule((LEFT, at_y(tick)), (right, at_y(tick))))
            .add(text(LEFT - 8.0, at_y(tick) + 4.0, "end", &number(tick)));
    }
    let middle = (TOP + bottom) / 2.0;
    let beside =
        text(20.0, middle, "middle", y.name).set("transform", format!("rotate(-90 20 {middle})"));
    page = page
        .add(text((LEFT + right) / 2.0, HEIGHT - 16.0, "middle", x.name))
        .add(beside);
    for (nth, series) in all.iter().enumerate() {
        let colour = COLOURS[nth % COLOURS.len()];
        let points = series.points.iter();
        let places: Vec<_> = points.map(|&(a, b)| (at_x(a), at_y(b))).collect();
        let line: Vec<_> = places
            .iter()
            .map(|(a, b)| format!("{a:.1},{b:.1}"))
            .collect();
        let line = Polyline::new()
            .set("points", line.join(" "))
            .set("fill", "none")
            .set("stroke", colour)
            .set("stroke-width", 2);
        page = page.add(line);
        for (a, b) in places {
            let dot = Circle::new().set("cx", a).set("cy", b).set("r", 3);
            page = page.add(dot.set("fill", colour));
        }
        let below = TOP + 12.0 + 20.0 * nth as f64;
        page = page.add(text(right + 14.0, below, "start", &series.name).set("fill", colour));
    }
    page.to_string()
}

fn rule(from: (f64, f64), to: (f64, f64)) -> Line {
    Line::new()
        .set("x1", from.0)
        .set("y1", from.1)
        .set("x2", to.0)
        .set("y2", to.1)
        .set("stroke", "#dddddd")
}

fn text(x: f64, y: f64, anchor: &str, words: &str) -> Text {
    Text::new(words)
        .set("x", x)
        .set("y", y)
        .set("text-anchor", anchor)
}

fn number(value: f64) -> String {
    match value {
        v if v >= 10.0 || v == 0.0 => format!("{v:.0}"),
        v if v >= 1.0 => format!("{v:.1}").trim_end_matches(".0").to_owned(),
        v => format!("{v:.3}").trim_end_matches('0').to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_numbers() {
        let ticks = |scale, points: &[f64]| {
            let name = "one".to_owned();
            let points = points.iter().map(|at| (*at, 0.0)).collect();
            let axis = Axis::of("x", scale, &[Series { name, points }], |at| at.0);
            axis.expect("points").ticks()
        };
        let linear = [0.0, 500.0, 1000.0, 1500.0, 2000.0, 2500.0, 3000.0];
        assert_eq!(ticks(Scale::Linear, &[12.0, 3179.0]), linear);
        let decades = ticks(Scale::Logarithmic, &[1000.0, 10_000.0]);
        assert_eq!(decades, [1000.0, 10_000.0]);
        assert_eq!(ticks(Scale::Logarithmic, &[1000.0]), [1000.0, 10_000.0]);
    }
}
