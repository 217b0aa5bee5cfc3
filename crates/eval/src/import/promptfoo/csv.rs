//! Tests in a table: a row each, a column for each variable, and `__expected` for what is asserted.

use std::sync::Arc;

use rehearsal_core::Place;
use serde_json::Number;

use super::assertions::{OTHERS, SHARED};
use crate::import::node::{At, Node, Tree};

/// More columns than any table that a person keeps.
const MOST_COLUMNS: usize = 200;

/// The tests of a table, as if they stood in YAML.
pub(super) fn tests(text: &str, file: &str) -> Result<Vec<Node>, String> {
    let file: Arc<str> = Arc::from(file);
    let mut rows = rows(text.trim_start_matches('\u{feff}'))?.into_iter();
    let Some((_, head)) = rows.next() else { return Err("it has no row".to_owned()) };
    if head.len() > MOST_COLUMNS {
        return Err(format!("it has more than {MOST_COLUMNS} columns"));
    }
    let of = |(line, cells): (u64, Vec<String>)| {
        let at = At { place: Some(Place { line, column: 1 }), file: Some(Arc::clone(&file)) };
        test(&head, &cells, &at)
    };
    Ok(rows.map(of).collect())
}

fn test(head: &[String], cells: &[String], at: &At) -> Node {
    let node = |tree| Node { at: at.clone(), tree };
    let text = |text: &str| node(Tree::Text(text.to_owned()));
    let (mut vars, mut assertions, mut options, mut pairs) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let metric = head.iter().zip(cells).find(|(name, cell)| name.trim() == "__metric" && !cell.is_empty());
    for (name, cell) in head.iter().zip(cells) {
        match name.trim() {
            "" | "__metric" => {}
            "__description" => pairs.push(("description".to_owned(), text(cell))),
            "__prefix" | "__suffix" => options.push((name.trim().replace("__", ""), text(cell))),
            "__threshold" => {
                let number = cell.trim().parse().ok().and_then(Number::from_f64);
                let tree = number.map_or_else(|| Tree::Text(cell.clone()), Tree::Number);
                if !cell.trim().is_empty() {
                    pairs.push(("threshold".to_owned(), node(tree)));
                }
            }
            expected if expected.starts_with("__expected") => {
                if !cell.trim().is_empty() {
                    let mut fields = assertion(cell.trim(), at);
                    fields.extend(metric.map(|(_, metric)| ("metric".to_owned(), text(metric))));
                    assertions.push(node(Tree::Map(fields)));
                }
            }
            // What else has two lines in front is told, as any other key.
            other if other.starts_with("__") => {
                if !cell.trim().is_empty() {
                    pairs.push((other.to_owned(), text(cell)));
                }
            }
            name => vars.push((name.to_owned(), text(cell))),
        }
    }
    pairs.push(("vars".to_owned(), node(Tree::Map(vars))));
    if !assertions.is_empty() {
        pairs.push(("assert".to_owned(), node(Tree::List(assertions))));
    }
    if !options.is_empty() {
        pairs.push(("options".to_owned(), node(Tree::Map(options))));
    }
    node(Tree::Map(pairs))
}

/// `contains: Paris`, `latency(1000)`, `not-regex: ^No`; anything else is what the answer is to equal.
fn assertion(cell: &str, at: &At) -> Vec<(String, Node)> {
    let node = |tree| Node { at: at.clone(), tree };
    let text = |text: &str| node(Tree::Text(text.to_owned()));
    let equals = || vec![("type".to_owned(), text("equals")), ("value".to_owned(), text(cell))];
    let (head, value) = cell.split_once(':').map_or((cell, None), |(head, value)| (head, Some(value.trim())));
    let (name, limit) = match head.split_once('(') {
        Some((name, limit)) => (name, limit.strip_suffix(')').and_then(|limit| limit.parse().ok())),
        None => (head, None),
    };
    let name = match name.trim() {
        "grade" => "llm-rubric",
        "fn" | "eval" => "javascript",
        name => name,
    };
    let plain = name.strip_prefix("not-").unwrap_or(name);
    if !SHARED.contains(&plain) && !OTHERS.contains(&plain) {
        return equals();
    }
    let mut fields = vec![("type".to_owned(), text(name))];
    fields.extend(value.filter(|value| !value.is_empty()).map(|value| ("value".to_owned(), text(value))));
    let limit = limit.and_then(Number::from_f64).map(|limit| node(Tree::Number(limit)));
    fields.extend(limit.map(|limit| ("threshold".to_owned(), limit)));
    fields
}

/// The rows of a table, each with its line; those that are empty are passed over.
fn rows(text: &str) -> Result<Vec<(u64, Vec<String>)>, String> {
    let (mut rows, mut row, mut cell) = (Vec::new(), Vec::new(), String::new());
    let (mut line, mut began, mut quoted) = (1, 1, false);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => {
                letters.next();
                cell.push('"');
            }
            '"' if quoted => quoted = false,
            '"' if cell.is_empty() => quoted = true,
            ',' if !quoted => row.push(std::mem::take(&mut cell)),
            '\r' if !quoted && letters.peek() == Some(&'\n') => {}
            '\n' if !quoted => {
                row.push(std::mem::take(&mut cell));
                add(&mut rows, began, std::mem::take(&mut row));
                line += 1;
                began = line;
            }
            letter => {
                line += u64::from(letter == '\n');
                cell.push(letter);
            }
        }
    }
    if quoted {
        return Err(format!("a quote that begins in line {began} has no end"));
    }
    row.push(cell);
    add(&mut rows, began, row);
    Ok(rows)
}

fn add(rows: &mut Vec<(u64, Vec<String>)>, line: u64, row: Vec<String>) {
    if row.iter().any(|cell| !cell.trim().is_empty()) {
        rows.push((line, row));
    }
}
