//! Text of unknown origin, made fit to be shown.

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
