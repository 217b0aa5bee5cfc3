//! Frames of stack traces, as any of the runners' languages print them.

use crate::parse::frames::{is_source, number};

/// One frame: where, and in which function if that is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    pub file: &'a str,
    pub line: u32,
    pub function: &'a str,
}

/// More frames than this say nothing new: a recursion repeats itself.
const MOST_FRAMES: usize = 64;

/// The frames of a text, the deepest first.
pub(crate) fn frames(text: &str) -> Vec<Frame<'_>> {
    let mut found: Vec<Frame<'_>> = Vec::new();
    let mut above = "";
    let mut oldest_first = true;
    for line in text.lines() {
        if let Some(mut frame) = frame(line) {
            if frame.function.is_empty() && line.starts_with(['\t', ' ']) {
                frame.function = function_above(above);
            }
            oldest_first &= frame.file.ends_with(".py");
            if found.last() != Some(&frame) {
                found.push(frame);
            }
        }
        if found.len() >= MOST_FRAMES {
            break;
        }
        above = line;
    }
    // Python alone prints the deepest frame last.
    if oldest_first {
        found.reverse();
    }
    found
}

fn frame(line: &str) -> Option<Frame<'_>> {
    let trimmed = line.trim_start();
    python(trimmed).or_else(|| php(trimmed)).or_else(|| with_colon(trimmed))
}

/// `File "shop/cart.py", line 12, in total`
fn python(line: &str) -> Option<Frame<'_>> {
    let (file, rest) = line.strip_prefix("File \"")?.split_once('"')?;
    let (line_number, rest) = number(rest.strip_prefix(", line ")?)?;
    Some(Frame { file, line: line_number, function: rest.strip_prefix(", in ").unwrap_or("").trim() })
}

/// `#0 /shop/src/Cart.php(12): Cart->total()`
fn php(line: &str) -> Option<Frame<'_>> {
    let (_, rest) = number(line.strip_prefix('#')?)?;
    let (file, rest) = rest.trim_start().split_once('(')?;
    let (line_number, rest) = number(rest)?;
    let function = rest.strip_prefix("): ").unwrap_or("");
    let function = function.split('(').next().unwrap_or("").trim();
    is_source(file).then_some(Frame { file, line: line_number, function })
}

/// `at total (src/cart.js:6:12)`, `at shop.Cart.total(Cart.java:6)`, `in /shop/Cart.cs:line 14`,
/// `from lib/cart.rb:5:in 'total'`, `/shop/calc.go:9 +0x1b`, `tests/test_cart.py:14: AssertionError`.
fn with_colon(line: &str) -> Option<Frame<'_>> {
    let mut from = 0;
    while let Some(colon) = line[from..].find(':').map(|at| from + at) {
        let after = &line[colon + 1..];
        let after = after.strip_prefix("line ").unwrap_or(after);
        if let Some((number, rest)) = number(after) {
            let start = file_start(&line[..colon]);
            let file = &line[start..colon];
            if is_source(file) {
                return Some(Frame { file, line: number, function: function_beside(line, start, rest) });
            }
        }
        from = colon + 1;
    }
    None
}

/// Where the name begins that ends here. A name may have spaces; what no name has is a quote, a bracket or a tab.
fn file_start(before: &str) -> usize {
    let cut = before.rfind(['(', '"', '\'', '`', '\t', '[', '<', ',', ' ']).map_or(0, |at| at + 1);
    let start = before[cut..].find("file://").map_or(cut, |at| cut + at + "file://".len());
    // `C:\shop\cart.js` has a colon of its own, which is inside what was kept.
    start.min(before.len())
}

/// The function that stands on the same line: before the place, or after it (`in`).
fn function_beside<'a>(line: &'a str, start: usize, rest: &'a str) -> &'a str {
    if let Some((_, name)) = rest.split_once(":in ") {
        return name.trim_matches(['`', '\'', '"', ' ']);
    }
    if let Some(name) = rest.strip_prefix(": in ") {
        return name.trim();
    }
    let Some(before) = line.get(..start).and_then(|before| before.trim_start().strip_prefix("at ")) else {
        return "";
    };
    let name = before.trim_end_matches("file://").trim_end_matches(['(', ' ', '[']).trim_end_matches(" in");
    let name = name.strip_prefix("async ").unwrap_or(name);
    let name = name.strip_prefix("Object.").unwrap_or(name);
    let name = name.split(['(', '[']).next().unwrap_or("").trim();
    if name.contains("<anonymous>") { "" } else { name }
}

/// Go and Rust put the function on the line above: `shop.(*Cart).Total(0x0)`, `3: shop::total`.
fn function_above(above: &str) -> &str {
    let above = above.trim();
    let name = match above.split_once(": ") {
        Some((number, name)) if number.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ if above.ends_with(')') && !above.contains(' ') => {
            above.rfind('(').map_or(above, |paren| &above[..paren])
        }
        _ => return "",
    };
    let name = name.rsplit('/').next().unwrap_or(name);
    if name.contains("::") { without_hash(name) } else { name.split_once('.').map_or(name, |(_, name)| name) }
}

/// Rust's symbols may end in `::h0123456789abcdef`.
fn without_hash(name: &str) -> &str {
    match name.rsplit_once("::h") {
        Some((name, hash)) if hash.len() == 16 => name,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    #[rstest]
    #[case::python("  File \"/s/cart.py\", line 12, in total", ("/s/cart.py", 12, "total"))]
    #[case::node("    at total (/s/src/cart.js:6:12)", ("/s/src/cart.js", 6, "total"))]
    #[case::node_object("    at Object.<anonymous> (/s/a.test.js:5:3)", ("/s/a.test.js", 5, ""))]
    #[case::esm("    at file:///s/src/cart.mjs:6:12", ("/s/src/cart.mjs", 6, ""))]
    #[case::deno("    at total (file:///s/cart_test.ts:2:20)", ("/s/cart_test.ts", 2, "total"))]
    #[case::java("\tat shop.Cart.total(Cart.java:6)", ("Cart.java", 6, "shop.Cart.total"))]
    #[case::java_module("\tat app//shop.Cart.total(Cart.java:6)", ("Cart.java", 6, "app//shop.Cart.total"))]
    #[case::dotnet("   at Shop.Cart.Total() in /s/src/Cart.cs:line 9", ("/s/src/Cart.cs", 9, "Shop.Cart.Total"))]
    #[case::ruby("\tfrom lib/cart.rb:5:in `total'", ("lib/cart.rb", 5, "total"))]
    #[case::rspec("# ./spec/cart_spec.rb:5:in 'block (2 levels) in <top>'",
        ("./spec/cart_spec.rb", 5, "block (2 levels) in <top>"))]
    #[case::php("#0 /s/src/Cart.php(4): Cart->total()", ("/s/src/Cart.php", 4, "Cart->total"))]
    #[case::pytest("tests/test_cart.py:14: AssertionError", ("tests/test_cart.py", 14, ""))]
    #[case::rust("thread 't' panicked at src/lib.rs:36:9:", ("src/lib.rs", 36, ""))]
    #[case::elixir("       test/cart_test.exs:9: (test)", ("test/cart_test.exs", 9, ""))]
    fn a_frame_of_any_language_is_read(#[case] line: &str, #[case] frame: (&str, u32, &str)) {
        let read = frames(line);
        let read: Vec<_> = read.iter().map(|it| (it.file, it.line, it.function)).collect();
        assert_eq!(read, [frame]);
    }

    #[test]
    fn the_function_of_a_go_or_rust_frame_stands_above_it() {
        let go = "example.com/shop/calc.(*Cart).Total(0x0)\n\t/s/calc/calc.go:9 +0x1b\n";
        assert_eq!(frames(go), [Frame { file: "/s/calc/calc.go", line: 9, function: "(*Cart).Total" }]);
        let rust = "   3: shop::total\n             at ./src/lib.rs:21:5\n";
        assert_eq!(frames(rust), [Frame { file: "./src/lib.rs", line: 21, function: "shop::total" }]);
    }

    #[test]
    fn the_deepest_frame_comes_first_also_in_python() {
        let text =
            "  File \"a.py\", line 1, in a\n    b()\n  File \"b.py\", line 2, in b\n    x\nKeyError: 'x'\n";
        let files: Vec<_> = frames(text).iter().map(|frame| frame.file).collect();
        assert_eq!(files, ["b.py", "a.py"]);
    }

    #[test]
    fn an_address_is_no_file() {
        assert_eq!(frames("dial tcp: lookup example.com on 10.0.0.1:53: example.com:80 at 12:30:05"), []);
    }

    proptest! {
        #[test]
        fn no_text_breaks_it(text in "[a-z.:/()\"'#0-9 \\n\\tü]{0,80}") {
            let _ = frames(&text);
        }
    }
}
