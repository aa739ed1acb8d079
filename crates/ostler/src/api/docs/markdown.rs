//! The little of Markdown that the descriptions use: paragraphs, headings, lists,
//! tables and code.

use super::html::{code, escape};

/// Returns a text as HTML.
pub(super) fn render(text: &str) -> String {
    let blocks = text.split("\n\n").map(str::trim).filter(|block| !block.is_empty());
    blocks.map(block).collect()
}

fn block(block: &str) -> String {
    if let Some(title) = block.strip_prefix("## ") {
        return format!("<h2>{}</h2>", spans(title));
    }
    if block.starts_with('|') {
        return table(block);
    }
    if block.lines().all(|line| line.starts_with("- ")) {
        let points = block.lines().filter_map(|line| line.strip_prefix("- "));
        let points: String = points.map(|point| format!("<li>{}</li>", spans(point))).collect();
        return format!("<ul>{points}</ul>");
    }
    format!("<p>{}</p>", spans(block))
}

/// Returns a table, whose second line only says that the first is its head.
fn table(block: &str) -> String {
    let mut html = String::from("<table>");
    for (number, line) in block.lines().enumerate().filter(|(number, _)| *number != 1) {
        let tag = if number == 0 { "th" } else { "td" };
        let cells = line.trim().trim_matches('|').split('|');
        let cells = cells.map(|cell| format!("<{tag}>{}</{tag}>", spans(cell.trim())));
        html.push_str(&format!("<tr>{}</tr>", cells.collect::<String>()));
    }
    html + "</table>"
}

/// Returns a line with what stands between backticks as code.
pub(super) fn spans(text: &str) -> String {
    let parts = text.split('`').enumerate();
    parts.map(|(number, part)| if number % 2 == 1 { code(part) } else { escape(part) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_read_as_it_is_meant_and_nothing_of_it_is_markup() {
        let text =
            "One `a<b>` & <script>.\n\n## Two\n\n- x\n- `y`\n\n| a | b |\n|---|---|\n| 1 | `2` |";
        assert_eq!(
            render(text),
            "<p>One <code>a&lt;b&gt;</code> &amp; &lt;script&gt;.</p><h2>Two</h2>\
             <ul><li>x</li><li><code>y</code></li></ul>\
             <table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td><code>2</code></td></tr></table>"
        );
    }
}
