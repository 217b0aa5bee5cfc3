//! Text with marks on what matters; who prints it chooses the colours.

/// What a piece of text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mark {
    /// Nothing special.
    Plain,
    /// To be seen at first sight.
    Strong,
    /// Good news.
    Good,
    /// Bad news.
    Bad,
    /// To be thought about.
    Caution,
    /// Beside the point, but there for who looks.
    Quiet,
    /// A line that was expected.
    Expected,
    /// A line that came.
    Actual,
}

/// Text with marks. As plain text it says the same: no meaning is in the marks alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StyledText {
    pieces: Vec<(Mark, String)>,
}

impl StyledText {
    /// The pieces in their order.
    pub fn pieces(&self) -> impl Iterator<Item = (Mark, &str)> {
        self.pieces.iter().map(|(mark, text)| (*mark, text.as_str()))
    }

    pub(crate) fn push(&mut self, mark: Mark, text: &str) {
        match self.pieces.last_mut() {
            Some((last, piece)) if *last == mark => piece.push_str(text),
            _ => self.pieces.push((mark, text.to_owned())),
        }
    }

    pub(crate) fn line(&mut self, mark: Mark, text: &str) {
        self.push(mark, text);
        self.end_line();
    }

    pub(crate) fn end_line(&mut self) {
        self.push(Mark::Plain, "\n");
    }
}

impl std::fmt::Display for StyledText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.pieces.iter().try_for_each(|(_, text)| f.write_str(text))
    }
}
