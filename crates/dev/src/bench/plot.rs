//! Drawings for pages: lines over two logarithmic axes, as SVG.
//!
//! Series differ in their dashes and markers, and not in colour alone.

use maud::{Markup, html};

const WIDTH: f64 = 680.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 72.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 12.0;
const BELOW: f64 = 48.0;
/// The height of a line in the legend, which has two columns.
const LINE: f64 = 20.0;
const COLOURS: [&str; 4] = ["first", "second", "third", "fourth"];
/// The largest number of marks on an axis.
const MOST_MARKS: usize = 9;

/// A drawing.
#[derive(Debug)]
pub struct Plot {
    pub title: String,
    /// The text for readers who do not see the drawing: its contents and its outcome.
    pub description: String,
    pub x: Axis,
    pub y: Axis,
    pub series: Vec<Series>,
    /// Whether a diagonal shows where both axes are equal.
    pub diagonal: bool,
}

/// An axis.
#[derive(Debug)]
pub struct Axis {
    pub label: String,
    pub base: Base,
}

/// The base of the powers that an axis marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// Powers of two, written as 2^n.
    Two,
    /// Powers of two, written as plain numbers.
    Plain,
    Ten,
}

/// Points that belong together.
#[derive(Debug)]
pub struct Series {
    pub name: String,
    pub points: Vec<(f64, f64)>,
    /// The colour and marker, which are shared by series on the same subject.
    pub look: usize,
    pub kind: Kind,
}

/// The connection between points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Solid,
    Dashed,
    Points,
}

/// A logarithmic axis from one power to another.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Scale {
    base: f64,
    low: i32,
    high: i32,
}

impl Scale {
    /// Returns the smallest scale that contains all of these positive values.
    fn of(values: impl Iterator<Item = f64>, base: Base) -> Scale {
        let base = if base == Base::Ten { 10.0 } else { 2.0 };
        let (least, most) =
            values.fold((f64::INFINITY, 0.0_f64), |(least, most), v| (least.min(v), most.max(v)));
        if !(least > 0.0 && most.is_finite() && least <= most) {
            return Scale { base, low: 0, high: 1 };
        }
        // A value that is a power up to rounding counts as one.
        let log = |v: f64| v.ln() / base.ln();
        let low = (log(least) + 1e-9).floor() as i32;
        let high = (log(most) - 1e-9).ceil() as i32;
        Scale { base, low, high: high.max(low + 1) }
    }

    /// Returns the position of a value, from 0 to 1.
    fn at(self, value: f64) -> f64 {
        (value.ln() / self.base.ln() - f64::from(self.low)) / f64::from(self.high - self.low)
    }

    /// Returns the exponents of the marks, evenly spaced.
    fn marks(self) -> impl Iterator<Item = i32> {
        let count = (self.high - self.low) as usize;
        (self.low..=self.high).step_by((count / MOST_MARKS + 1).max(1))
    }

    fn value(self, exponent: i32) -> f64 {
        self.base.powi(exponent)
    }
}

impl Axis {
    pub fn new(label: &str, base: Base) -> Axis {
        Axis { label: label.into(), base }
    }

    fn text(&self, scale: Scale, exponent: i32) -> String {
        match self.base {
            Base::Two => format!("2^{exponent}"),
            Base::Plain | Base::Ten => format!("{}", (scale.value(exponent) * 1e9).round() / 1e9),
        }
    }
}

impl Plot {
    /// Draws the plot; `number` makes its names unique on the page.
    pub fn svg(&self, number: usize) -> Markup {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let mut x = Scale::of(points().map(|p| p.0), self.x.base);
        let mut y = Scale::of(points().map(|p| p.1), self.y.base);
        if self.diagonal {
            let both = Scale { base: x.base, low: x.low.min(y.low), high: x.high.max(y.high) };
            (x, y) = (both, both);
        }
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BELOW);
        let px = |v: f64| LEFT + x.at(v) * (right - LEFT);
        let py = |v: f64| bottom - y.at(v) * (bottom - TOP);
        let height = HEIGHT + LINE * self.series.len().div_ceil(2) as f64 + 4.0;
        let (title, description) = (format!("plot-{number}-title"), format!("plot-{number}-desc"));
        html! {
            figure {
                svg role="img" aria-labelledby=(format!("{title} {description}")) viewBox=(format!("0 0 {WIDTH} {height}"))
                    width=(WIDTH) height=(height) {
                    title id=(title) { (self.title) }
                    desc id=(description) { (self.description) }
                    @for exponent in x.marks() {
                        @let at = px(x.value(exponent));
                        path.axis d=(format!("M{at:.1} {TOP}V{bottom}")) {}
                        text.quiet x=(round(at)) y=(bottom + 18.0) text-anchor="middle" { (self.x.text(x, exponent)) }
                    }
                    @for exponent in y.marks() {
                        @let at = py(y.value(exponent));
                        path.axis d=(format!("M{LEFT} {at:.1}H{right}")) {}
                        text.quiet x=(LEFT - 8.0) y=(round(at + 4.0)) text-anchor="end" { (self.y.text(y, exponent)) }
                    }
                    text x=(round((LEFT + right) / 2.0)) y=(bottom + 38.0) text-anchor="middle" { (self.x.label) }
                    text text-anchor="middle" transform=(format!("translate(16 {}) rotate(-90)", (TOP + bottom) / 2.0)) {
                        (self.y.label)
                    }
                    @if self.diagonal {
                        path.axis d=(format!("M{LEFT} {bottom}L{right} {TOP}")) stroke-width="2" {}
                    }
                    @for series in &self.series {
                        @let places: Vec<(f64, f64)> = series.points.iter().map(|p| (px(p.0), py(p.1))).collect();
                        (line(series, &places))
                        @for place in places { (marker(series, place)) }
                    }
                    @for (i, series) in self.series.iter().enumerate() {
                        @let left = LEFT + (i % 2) as f64 * (WIDTH - LEFT) / 2.0;
                        @let at = HEIGHT + (i / 2) as f64 * LINE + 6.0;
                        (line(series, &[(left, at), (left + 36.0, at)]))
                        (marker(series, (left + 18.0, at)))
                        text x=(left + 44.0) y=(at + 4.0) { (series.name) }
                    }
                }
                figcaption.quiet { (self.title) }
            }
        }
    }
}

fn round(x: f64) -> f64 {
    (x * 10.0).round() / 10.0
}

fn line(series: &Series, places: &[(f64, f64)]) -> Markup {
    if series.kind == Kind::Points || places.is_empty() {
        return html! {};
    }
    let path: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
    let dashes = if series.kind == Kind::Dashed { "6 4" } else { "none" };
    let colour = COLOURS[series.look % COLOURS.len()];
    html! {
        path class=(colour) d=(format!("M{}", path.join("L"))) fill="none" stroke-width="2" stroke-dasharray=(dashes) {}
    }
}

/// Draws a circle, square, triangle, diamond, cross or upright cross.
fn marker(series: &Series, (x, y): (f64, f64)) -> Markup {
    let shape = match series.look % 6 {
        0 => format!("M{:.1} {y:.1}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0", x - 4.0),
        1 => format!("M{:.1} {:.1}h8v8h-8z", x - 4.0, y - 4.0),
        2 => format!("M{x:.1} {:.1}l5 9h-10z", y - 6.0),
        3 => format!("M{x:.1} {:.1}l5 5l-5 5l-5 -5z", y - 5.0),
        4 => format!("M{:.1} {:.1}l8 8m0 -8l-8 8", x - 4.0, y - 4.0),
        _ => format!("M{:.1} {y:.1}h10m-5 -5v10", x - 5.0),
    };
    html! { path class=(COLOURS[series.look % COLOURS.len()]) d=(shape) fill="none" stroke-width="2" {} }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_end_at_powers_and_hold_all_values() {
        // (values, base, exponents of the ends)
        let cases: [(&[f64], Base, (i32, i32)); 6] = [
            (&[256.0, 1024.0], Base::Two, (8, 10)),
            (&[300.0, 1000.0], Base::Two, (8, 10)),
            (&[0.05, 30.0], Base::Ten, (-2, 2)),
            (&[0.001, 1000.0], Base::Ten, (-3, 3)),
            (&[1.0], Base::Plain, (0, 1)),
            (&[], Base::Ten, (0, 1)),
        ];
        for (values, base, (low, high)) in cases {
            let scale = Scale::of(values.iter().copied(), base);
            assert_eq!((scale.low, scale.high), (low, high), "{values:?}");
            assert!(values.iter().all(|v| (-1e-9..=1.0 + 1e-9).contains(&scale.at(*v))), "{values:?}");
            assert!(
                scale.at(scale.value(low)).abs() < 1e-9 && (scale.at(scale.value(high)) - 1.0).abs() < 1e-9
            );
        }
        let scale = Scale { base: 10.0, low: 0, high: 2 };
        assert!((scale.at(10.0) - 0.5).abs() < 1e-9);
        let wide = Scale { base: 2.0, low: 0, high: 30 };
        assert!(wide.marks().count() <= MOST_MARKS + 1 && wide.marks().next() == Some(0));
    }

    #[test]
    fn a_drawing_can_be_read_without_colours_and_without_eyes() {
        let series = |name: &str, look, kind| Series {
            name: name.into(),
            points: vec![(256.0, 0.1), (512.0, 3.0)],
            look,
            kind,
        };
        let plot = Plot {
            title: "Seconds <over> n".into(),
            description: "Two lines".into(),
            x: Axis::new("n", Base::Two),
            y: Axis::new("seconds", Base::Ten),
            series: vec![series("ours", 0, Kind::Solid), series("the paper's", 0, Kind::Dashed)],
            diagonal: false,
        };
        let text = plot.svg(7).into_string();
        for part in [
            "role=\"img\"",
            "aria-labelledby=\"plot-7-title plot-7-desc\"",
            "<title id=\"plot-7-title\">Seconds &lt;over&gt; n</title>",
            "<desc id=\"plot-7-desc\">Two lines</desc>",
            "stroke-dasharray=\"6 4\"",
            "stroke-dasharray=\"none\"",
            ">2^8<",
            ">2^9<",
            ">0.1<",
            ">10<",
            ">the paper's<",
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }
}
