//! Plots as SVG, without a script.

use super::html::escape;
use super::{percent, range};
use crate::summary::Cell;

const ROW: f64 = 26.0;
const LABELS: f64 = 330.0;
const WIDTH: f64 = 420.0;

/// Pass rates with their intervals, a row for each case and agent.
pub(super) fn rates(cells: &[Cell]) -> String {
    #[expect(clippy::cast_precision_loss, reason = "cases are counted in thousands")]
    let height = (cells.len() as f64 + 1.0) * ROW;
    let mut svg = format!(
        "<svg role=\"img\" aria-label=\"Pass rates with 95 % intervals\" viewBox=\"0 0 {} {height}\" class=\"plot\">\n",
        LABELS + WIDTH + 90.0
    );
    for tick in 0..=4 {
        let at = x(f64::from(tick) / 4.0);
        svg.push_str(&format!(
            "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"0\" y2=\"{:.1}\" class=\"grid\"/><text x=\"{at:.1}\" y=\"{:.1}\" class=\"tick\">{} %</text>\n",
            height - ROW + 4.0,
            height - 6.0,
            tick * 25,
        ));
    }
    for (cell, number) in cells.iter().zip(0_u32..) {
        let y = f64::from(number) * ROW + ROW / 2.0;
        let label = escape(&format!("{}, {}", cell.case, cell.variant));
        svg.push_str(&format!(
            "<g><title>{label}: {} ({})</title><text x=\"{:.1}\" y=\"{:.1}\" class=\"label\">{label}</text>",
            percent(cell.pass_rate),
            range(cell.interval),
            LABELS - 12.0,
            y + 4.0,
        ));
        if let (Some(rate), Some(interval)) = (cell.pass_rate, cell.interval) {
            svg.push_str(&format!(
                "<line x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\" class=\"interval\"/><circle cx=\"{:.1}\" cy=\"{y:.1}\" r=\"5\" class=\"rate\"/>",
                x(interval.low),
                x(interval.high),
                x(rate),
            ));
        }
        svg.push_str("</g>\n");
    }
    svg.push_str("</svg>\n");
    svg
}

fn x(share: f64) -> f64 {
    LABELS + share * WIDTH
}

/// Cost against success: one point for each who was measured and whose cost is known. Empty if there is none.
pub(super) fn cost_against_success(points: &[(String, f64, f64)]) -> String {
    const SIZE: f64 = 260.0;
    const EDGE: f64 = 46.0;
    if points.is_empty() {
        return String::new();
    }
    let most = points.iter().map(|(_, usd, _)| *usd).fold(f64::MIN_POSITIVE, f64::max);
    let mut svg = format!(
        "<svg role=\"img\" aria-label=\"Cost against pass rate\" viewBox=\"0 0 {} {}\" class=\"plot small\">\n<line x1=\"{EDGE}\" x2=\"{EDGE}\" y1=\"10\" y2=\"{SIZE}\" class=\"axis\"/><line x1=\"{EDGE}\" x2=\"{}\" y1=\"{SIZE}\" y2=\"{SIZE}\" class=\"axis\"/>\n<text x=\"{EDGE}\" y=\"{}\" class=\"label left\">$0</text><text x=\"{}\" y=\"{}\" class=\"label\">${most:.4}</text>\n<text x=\"{}\" y=\"20\" class=\"label\">100 %</text><text x=\"{}\" y=\"{SIZE}\" class=\"label\">0 %</text>\n",
        EDGE + 2.0 * SIZE,
        SIZE + 30.0,
        EDGE + SIZE,
        SIZE + 20.0,
        EDGE + SIZE,
        SIZE + 20.0,
        EDGE - 6.0,
        EDGE - 6.0,
    );
    for (name, usd, rate) in points {
        let (x, y) = (EDGE + usd / most * SIZE, SIZE - rate * (SIZE - 15.0));
        let name = escape(name);
        svg.push_str(&format!(
            "<g><title>{name}: ${usd:.4}, {:.0} %</title><circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"6\" class=\"rate\"/><text x=\"{:.1}\" y=\"{:.1}\" class=\"label left\">{name}</text></g>\n",
            rate * 100.0,
            x + 10.0,
            y + 4.0,
        ));
    }
    svg.push_str("</svg>\n");
    svg
}
