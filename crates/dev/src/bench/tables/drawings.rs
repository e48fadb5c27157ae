//! The drawings of the results.

use super::Known;
use super::machine::Machine;
use super::papers::{Network, Paper, Row, Table};
use super::point::Point;
use super::results::{Measured, Results};
use crate::bench::plot::{Axis, Base, Kind, Plot, Series};
use std::time::Duration;
use veilset::channel;
use veilset::planner::Prices;

/// The largest number of colours in one drawing.
const MOST: usize = 4;

/// A table with its results.
#[derive(Clone, Copy)]
pub struct Drawn<'a> {
    pub paper: &'a Paper,
    pub table: &'a Table,
    pub results: &'a Results,
}

impl<'a> Drawn<'a> {
    /// Returns the measurement of a point with this program.
    pub fn measured(&self, row: &'a Row, log_n: u32, network: &'a Network) -> Option<&'a Measured> {
        self.known(row, log_n, network).map(|(_, measured)| measured)
    }

    fn known(&self, row: &'a Row, log_n: u32, network: &'a Network) -> Option<(Point<'a>, &'a Measured)> {
        Point::known(self.table, row, log_n, network, self.results)
    }

    /// Returns all drawings of the table.
    pub fn plots(&self) -> Vec<Plot> {
        if self.table.one_sided || self.results.points.is_empty() {
            return Vec::new();
        }
        let all = [self.over_n(), self.over_threads(), self.over_bandwidth(), self.dollars()];
        all.into_iter().flatten().collect()
    }

    fn networks(&self) -> &'a [Network] {
        self.table.networks(self.paper)
    }

    fn what(&self) -> String {
        format!("{}, table {}", self.paper.name.to_uppercase(), self.table.name)
    }

    fn paper_seconds(&self, row: &Row, log_n: u32, network: &Network) -> Option<f64> {
        self.table.figures(row, log_n, &network.name).0
    }

    /// Draws the seconds over the sizes, with the smallest number of threads. Of more than two networks, only the first is
    /// shown.
    fn over_n(&self) -> Vec<Plot> {
        let least = self.table.rows.iter().map(|row| row.threads).min().unwrap_or(1);
        let rows: Vec<&Row> = self.table.rows.iter().filter(|row| row.threads == least).collect();
        let networks = self.networks();
        let shown = if networks.len() > 2 { 1 } else { networks.len() };
        let each =
            networks[..shown].iter().flat_map(|network| rows.chunks(MOST).map(move |rows| (network, rows)));
        let plot = |(network, rows): (&'a Network, &[&'a Row])| {
            let lines = rows.iter().enumerate().flat_map(|(look, row)| {
                let sizes = self.table.sizes(row).iter();
                let n = |log_n: u32| f64::from(log_n).exp2();
                let ours =
                    sizes.clone().filter_map(|&s| Some((n(s), self.measured(row, s, network)?.seconds)));
                let paper = sizes.filter_map(|&s| Some((n(s), self.paper_seconds(row, s, network)?)));
                pair(&row.what(), look, ours.collect(), paper.collect())
            });
            let title = format!("{}: seconds over items of each party, {}", self.what(), network.name);
            plot(title, Axis::new("items of each party", Base::Two), seconds(), lines.collect())
        };
        each.filter_map(plot).collect()
    }

    /// Draws the seconds over the threads: for one kind of row at the largest sizes, for several kinds at the largest size.
    fn over_threads(&self) -> Vec<Plot> {
        let mut kinds: Vec<&Row> = Vec::new();
        for row in &self.table.rows {
            if !kinds.iter().any(|kind| kind.is_like(row)) {
                kinds.push(row);
            }
        }
        if kinds.len() == self.table.rows.len() {
            return Vec::new();
        }
        let of_network = |network: &'a Network| {
            let has = |log_n: &u32| kinds.iter().any(|row| self.measured(row, *log_n, network).is_some());
            let sizes: Vec<u32> = self.table.sizes.iter().copied().filter(has).collect();
            let largest = *sizes.last()?;
            let lines: Vec<(&Row, u32, String)> = match kinds[..] {
                [one] => sizes.iter().rev().take(MOST).map(|&n| (one, n, format!("n = 2^{n}"))).collect(),
                _ => kinds.iter().take(MOST).map(|&row| (row, largest, row.what())).collect(),
            };
            let series = lines.iter().enumerate().flat_map(|(look, (kind, log_n, name))| {
                let rows = self.table.rows.iter().filter(|row| row.is_like(kind));
                let mut here: Vec<(f64, f64)> = rows
                    .clone()
                    .filter_map(|row| {
                        let (point, measured) = self.known(row, *log_n, network)?;
                        Some((f64::from(point.threads), measured.seconds))
                    })
                    .collect();
                here.dedup();
                let paper = rows.filter_map(|row| {
                    Some((f64::from(row.threads), self.paper_seconds(row, *log_n, network)?))
                });
                pair(name, look, here, paper.collect())
            });
            let size = if kinds.len() == 1 { String::new() } else { format!(", 2^{largest} items") };
            let title =
                format!("{}: seconds over threads of each party, {}{size}", self.what(), network.name);
            plot(title, Axis::new("threads of each party", Base::Plain), seconds(), series.collect())
        };
        self.networks().iter().filter_map(of_network).collect()
    }

    /// Draws the seconds over the bandwidth, for networks with the same latency.
    fn over_bandwidth(&self) -> Vec<Plot> {
        let links: Vec<(&Network, channel::Network)> =
            self.networks().iter().filter_map(|network| Some((network, network.net.parse().ok()?))).collect();
        let latency = links.last().map_or(Duration::ZERO, |(_, link)| link.round_trip);
        let links: Vec<_> = links.into_iter().filter(|(_, link)| link.round_trip == latency).collect();
        if links.len() < 3 {
            return Vec::new();
        }
        let of_row = |row: &'a Row| {
            let has =
                |log_n: &u32| links.iter().any(|(network, _)| self.measured(row, *log_n, network).is_some());
            let sizes: Vec<u32> = self.table.sizes(row).iter().copied().filter(has).collect();
            let lines = sizes.iter().rev().take(MOST).enumerate().flat_map(|(look, &log_n)| {
                let megabits = |link: &channel::Network| link.bandwidth / 1e6;
                let here = links.iter().filter_map(|(network, link)| {
                    Some((megabits(link), self.measured(row, log_n, network)?.seconds))
                });
                let paper = links.iter().filter_map(|(network, link)| {
                    Some((megabits(link), self.paper_seconds(row, log_n, network)?))
                });
                pair(&format!("n = 2^{log_n}"), look, here.collect(), paper.collect())
            });
            let title = format!(
                "{}: seconds over bandwidth, {}, {} ms",
                self.what(),
                row.what(),
                latency.as_millis()
            );
            plot(title, Axis::new("Mbit/s", Base::Ten), seconds(), lines.collect())
        };
        self.table.rows.iter().filter_map(of_row).collect()
    }

    /// Draws the dollars of a thousand runs over y / x, where y is the price of a megabyte and x that of a second of a machine: a run of T
    /// seconds and C megabytes costs 2 T x + C y, with x from [`Prices::default`].
    fn dollars(&self) -> Vec<Plot> {
        let Some(dollars) = &self.table.dollars else { return Vec::new() };
        let second = Prices::default().hour / 3600.0;
        let curve = |time: f64, megabytes: f64| {
            let ratios = (-8..=8).map(|quarter| 10_f64.powf(f64::from(quarter) / 4.0));
            ratios.map(|ratio| (ratio, 1000.0 * second * (2.0 * time + megabytes * ratio))).collect()
        };
        let of_network = |network: &'a Network| {
            let row = self.table.rows.first()?;
            let largest =
                self.table.sizes.iter().rev().find(|n| self.measured(row, **n, network).is_some())?;
            let measured = self.measured(row, *largest, network)?;
            let solid = |name: String, look, points| Series { name, points, look, kind: Kind::Solid };
            let dashed = |name: String, look, points| Series { name, points, look, kind: Kind::Dashed };
            let mut series =
                vec![solid("measured".into(), 0, curve(measured.seconds, measured.megabytes()?))];
            if let (Some(time), Some(moved)) = self.table.figures(row, *largest, &network.name) {
                series.push(dashed("the paper's own".into(), 0, curve(time, moved)));
            }
            let at = self.table.sizes.iter().position(|size| size == largest)?;
            for (look, other) in (1..).zip(&self.table.others) {
                let time = other.seconds.get(&network.name).and_then(|list| list.get(at));
                if let (Some(time), Some(moved)) = (time, other.megabytes.get(at)) {
                    series.push(dashed(format!("{}, by the paper", other.name), look, curve(*time, *moved)));
                }
            }
            let title = format!(
                "As {}: dollars of 1000 runs over the price of a MB by that of a second, {}, 2^{largest} items",
                dollars.source, network.name
            );
            let x = Axis::new("price of a MB / price of a second of a machine", Base::Ten);
            plot(title, x, Axis::new("dollars of 1000 runs", Base::Ten), series)
        };
        let shown = self.networks().iter().filter(|network| dollars.networks.contains(&network.name));
        shown.filter_map(of_network).collect()
    }
}

fn seconds() -> Axis {
    Axis::new("seconds", Base::Ten)
}

/// Returns our series and the paper's, with the same colour and marker.
fn pair(name: &str, look: usize, ours: Vec<(f64, f64)>, paper: Vec<(f64, f64)>) -> Vec<Series> {
    let ours = Series { name: name.into(), points: ours, look, kind: Kind::Solid };
    let paper = Series { name: format!("{name}, the paper's"), points: paper, look, kind: Kind::Dashed };
    [ours, paper].into_iter().filter(|series| !series.points.is_empty()).collect()
}

/// Returns the drawing, if it shows a measurement of ours.
fn plot(title: String, x: Axis, y: Axis, series: Vec<Series>) -> Option<Plot> {
    if !series.iter().any(|series| series.kind == Kind::Solid) {
        return None;
    }
    let ends = |series: &Series| {
        let ((x0, y0), (x1, y1)) = (series.points.first()?, series.points.last()?);
        Some(format!(
            "{}: from {} at {x0} to {} at {x1}",
            series.name,
            super::report::digits(*y0),
            super::report::digits(*y1)
        ))
    };
    let lines: Vec<String> = series.iter().filter_map(ends).collect();
    let description = format!(
        "Both axes are logarithmic. {}. Solid lines are measured, dashed lines the paper's.",
        lines.join("; ")
    );
    Some(Plot { title, description, x, y, series, diagonal: false })
}

/// Draws the measured over the predicted times, for all papers.
pub fn predictions(tables: &[Known<'_>], machine: &Machine) -> Option<Plot> {
    let mut series: Vec<Series> = Vec::new();
    for (paper, _, results) in tables {
        let points = results.points.iter().filter(|point| point.beside.is_none());
        let points: Vec<(f64, f64)> =
            points.filter_map(|p| Some((p.predicted_seconds?, p.seconds))).collect();
        if points.is_empty() {
            continue;
        }
        match series.iter_mut().find(|series| series.name == paper.name) {
            Some(known) => known.points.extend(points),
            None => {
                let look = series.len();
                series.push(Series { name: paper.name.clone(), points, look, kind: Kind::Points });
            }
        }
    }
    let all = || series.iter().flat_map(|series| &series.points);
    let within = all().filter(|(predicted, measured)| (0.5..=2.0).contains(&(measured / predicted))).count();
    let description = format!(
        "{within} of {} points are within a factor of two of the prediction, on {}",
        all().count(),
        machine.processor
    );
    let (x, y) = (Axis::new("seconds as predicted", Base::Ten), Axis::new("seconds as measured", Base::Ten));
    let title =
        format!("Measured over predicted seconds, and the line on which both are the same: {description}");
    (!series.is_empty()).then_some(Plot { title, description, x, y, series, diagonal: true })
}
