//! Self-contained HTML pages in a single file: no script, nothing from a network, light and dark, and readable on paper.
//!
//! [`maud`] escapes every text that is put into a page, so that names from files and from peers stay text.

use maud::{DOCTYPE, Markup, PreEscaped, html};

/// The style of all pages. Colours are named once for light and once for dark; each pair of text and background has a contrast
/// of at least 4.5. Drawings use the same colours through the classes below.
const STYLE: &str = include_str!("page.css");

/// Returns a page with this title and these contents.
pub fn page(title: &str, contents: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                // Nothing is loaded, even if a text contained markup.
                meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body { main { h1 { (title) } (contents) } }
        }
    };
    page.into_string()
}

/// Returns a table with a caption. The first cell of a row is its header.
pub fn table(caption: &str, head: &[&str], rows: &[Vec<String>]) -> Markup {
    html! {
        div.wide {
            table {
                caption { (caption) }
                thead { tr { @for cell in head { th scope="col" { (cell) } } } }
                tbody {
                    @for row in rows {
                        tr {
                            @for (i, cell) in row.iter().enumerate() {
                                @if i == 0 { th scope="row" { (cell) } } @else { td { (cell) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_stay_texts() {
        let hostile = "<script>alert(1)</script>&\"";
        let page = page(hostile, &table(hostile, &[hostile], &[vec![hostile.into(), hostile.into()]]));
        assert!(!page.contains("<script"));
        // The title twice, the caption, the head, and two cells.
        assert_eq!(page.matches("&lt;script&gt;alert(1)&lt;/script&gt;&amp;").count(), 6);
    }
}
