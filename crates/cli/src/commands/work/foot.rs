//! The foot of a terminal, where lines move. The cursor rests at the beginning of the line below them: what the terminal echoes there,
//! like the `^C` of Ctrl-C, is erased with them.

use crate::ui::{columns, raw_err};

/// What is drawn at the foot of the terminal.
#[derive(Debug, Default)]
pub(super) struct Foot {
    drawn: Vec<String>,
}

impl Foot {
    pub(super) fn draw(&mut self, lines: Vec<String>, width: usize) {
        let mut text = self.erasure(width);
        for line in &lines {
            text.push_str(line);
            text.push('\n');
        }
        raw_err(text.as_bytes());
        self.drawn = lines;
    }

    pub(super) fn erase(&mut self, width: usize) {
        raw_err(self.erasure(width).as_bytes());
        self.drawn.clear();
    }

    /// What erases the lines, and all that follows them. A terminal that became narrower has broken them.
    fn erasure(&self, width: usize) -> String {
        let rows: usize = self.drawn.iter().map(|line| columns(line).div_ceil(width.max(1)).max(1)).sum();
        if rows == 0 { String::new() } else { format!("\r\u{1b}[{rows}A\u{1b}[J") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_a_narrower_terminal_broke_are_erased_whole() {
        let mut foot = Foot::default();
        assert_eq!(foot.erasure(80), "");
        foot.drawn = vec!["a".repeat(70), "b".to_owned(), String::new()];
        assert_eq!(foot.erasure(80), "\r\u{1b}[3A\u{1b}[J");
        assert_eq!(foot.erasure(30), "\r\u{1b}[5A\u{1b}[J");
    }
}
