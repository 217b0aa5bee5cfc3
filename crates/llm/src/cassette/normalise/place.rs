//! Where a run takes place: its directories, and the placeholders for them.

use std::borrow::Cow;

/// The directories of a run. Each may have several names (through links); the first is the one that a player puts in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// Where the agent works.
    pub work_dir: Vec<String>,
    /// Its home.
    pub home: Vec<String>,
    /// Where its temporary files are.
    pub temp: Vec<String>,
}

/// A text that stands for a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathText {
    pub(crate) text: String,
    pub(crate) placeholder: &'static str,
    pub(crate) is_slug: bool,
}

impl Place {
    /// The directories as given and, where that differs, with links resolved.
    pub fn resolved(work_dir: &str, home: &str, temp: &str) -> Self {
        let names = |path: &str| {
            let real =
                std::fs::canonicalize(path).ok().and_then(|path| path.into_os_string().into_string().ok());
            let real = real.filter(|real| real != path);
            std::iter::once(path.to_owned()).chain(real).collect()
        };
        Self { work_dir: names(work_dir), home: names(home), temp: names(temp) }
    }

    fn directories(&self) -> [(&[String], &'static str, &'static str); 3] {
        [
            (&self.work_dir, "⟦cwd⟧", "⟦cwd:slug⟧"),
            (&self.home, "⟦home⟧", "⟦home:slug⟧"),
            (&self.temp, "⟦tmp⟧", "⟦tmp:slug⟧"),
        ]
    }

    /// All texts that stand for one of the directories, the longest first.
    pub(crate) fn texts(&self) -> Vec<PathText> {
        let mut texts: Vec<PathText> = Vec::new();
        for (names, plain, slugged) in self.directories() {
            for name in names.iter().filter(|name| is_told(name)) {
                let name = name.trim_end_matches('/');
                let once = escaped(name);
                let forms =
                    [(name.to_owned(), plain), (escaped(&once), plain), (once, plain), (slug(name), slugged)];
                for (text, placeholder) in forms {
                    if texts.iter().all(|known| known.text != text) {
                        texts.push(PathText { text, placeholder, is_slug: placeholder == slugged });
                    }
                }
            }
        }
        texts.sort_by_key(|path| std::cmp::Reverse(path.text.len()));
        texts
    }
}

/// `/` and `/x` stand in too many texts that mean something else.
fn is_told(name: &str) -> bool {
    name.len() > 2 && name.starts_with('/')
}

/// As JSON writes it inside of a text.
fn escaped(name: &str) -> String {
    let json = serde_json::to_string(name).unwrap_or_default();
    json.get(1..json.len().saturating_sub(1)).unwrap_or_default().to_owned()
}

/// As Claude Code names the directory of a project: `/spot/a.b` is `-spot-a-b`.
fn slug(name: &str) -> String {
    name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect()
}

/// Puts the directories of this run into what was recorded in another.
#[derive(Debug, Clone)]
pub(crate) struct Restorer {
    /// Placeholder, and what stands for it in JSON.
    places: Vec<(&'static str, String)>,
}

impl Restorer {
    pub(crate) fn new(place: &Place) -> Self {
        let mut places = Vec::new();
        for (names, plain, slugged) in place.directories() {
            if let Some(name) = names.first() {
                places.push((plain, escaped(name)));
                places.push((slugged, slug(name)));
            }
        }
        Self { places }
    }

    pub(crate) fn restore<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if !text.contains('⟦') {
            return Cow::Borrowed(text);
        }
        let mut out = Cow::Borrowed(text);
        for (placeholder, name) in &self.places {
            if out.contains(placeholder) {
                out = Cow::Owned(out.replace(placeholder, name));
            }
        }
        out
    }
}
