//! Texts and numbers, made fit to be shown.

/// Without control characters, which could move a terminal's cursor or change its title.
pub fn harmless(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' && c != '\t' { '\u{fffd}' } else { c }).collect()
}

/// The first line, cut to a width.
pub fn one_line(text: &str, width: usize) -> String {
    let line = harmless(text.lines().next().unwrap_or_default());
    if line.chars().count() <= width {
        return line;
    }
    line.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// A cost; unknown is not zero.
pub fn cost(usd: Option<f64>) -> String {
    usd.map_or_else(
        || "unknown".into(),
        |usd| {
            if usd < 0.01 && usd > 0.0 { format!("${usd:.4}") } else { format!("${usd:.2}") }
        },
    )
}
