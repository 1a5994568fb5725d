//! Sections as HTML, Markdown or SVG.

use crate::chart::Chart;
use crate::{Grid, Section};
use fastpath_record::escaped;
use std::fmt::Write;

/// Maximum number of letters in a cell that is a number with its unit.
const LETTERS_MAX: usize = 12;

const STYLE: &str = "\
body{font-family:sans-serif;margin:1.5em auto;padding:0 1.5em;color:#222;background:#fff;color-scheme:light dark}\
table{border-collapse:collapse;margin:1em 0;font-size:13px;display:block;overflow-x:auto}\
th,td{padding:3px 10px;text-align:right;border-bottom:1px solid #ddd}th:first-child,td:first-child,.t{text-align:left}\
th{border-bottom:2px solid #888}.p:hover{stroke:#000;stroke-width:2}\
.charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,600px),1fr));gap:10px}\
.charts svg{width:100%;height:auto;touch-action:pan-y}.k{cursor:pointer}.off{display:none}.k.off{display:inline;opacity:.35}\
nav{font-size:13px;margin:1em 0}nav label{margin-right:1.2em;white-space:nowrap}\
ul{font-size:13px;color:#444}#tip{position:fixed;display:none;background:#222;color:#fff;padding:4px 8px;\
border-radius:4px;font-size:12px;pointer-events:none;white-space:pre;z-index:1}\
@media(prefers-color-scheme:dark){body{color:#e4e4e4;background:#15191d}ul{color:#bbb}\
th,td{border-color:#333a40}th{border-bottom-color:#777}.b{fill:#15191d}.charts svg text{fill:#d8d8d8}\
line[stroke=\"#dddddd\"]{stroke:#2c333a}line[stroke=\"#555555\"]{stroke:#98a2ab}.p:hover{stroke:#fff}\
[stroke=\"#000000\"]{stroke:#f0f0f0}[fill=\"#000000\"]{fill:#f0f0f0}[stroke=\"#0072b2\"]{stroke:#4aa3dd}\
[fill=\"#0072b2\"]{fill:#4aa3dd}[fill=\"#cfe5f5\"]{fill:#173a52}#tip{background:#e8e8e8;color:#111}}";

/// Values under the pointer, the choice of curves and sections, and parts of the time.
const SCRIPT: &str = include_str!("page.js");
/// Pages with fewer sections of charts have no choice of them.
const CHOICE_MIN: usize = 3;

pub(super) fn html(title: &str, sections: &[Section]) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>{0}</title><style>{STYLE}</style></head>\n<body><h1>{0}</h1>\n",
        escaped(title)
    );
    choice(&mut page, sections);
    for (number, section) in sections.iter().enumerate() {
        push(&mut page, format_args!("<section id=\"s{number}\"><h2>{}</h2>\n", escaped(&section.title)));
        if !section.charts.is_empty() {
            page.push_str("<div class=\"charts\">\n");
            section.charts.iter().for_each(|chart| push(&mut page, format_args!("{}\n", chart.in_page())));
            page.push_str("</div>\n");
        }
        section.tables.iter().for_each(|table| html_table(&mut page, table));
        if !section.notes.is_empty() {
            page.push_str("<ul>");
            let note = |note: &String| format!("<li>{}</li>\n", escaped(note));
            page.extend(section.notes.iter().map(note));
            page.push_str("</ul>\n");
        }
        page.push_str("</section>\n");
    }
    push(
        &mut page,
        format_args!("<div id=\"tip\"></div><script type=\"module\">{SCRIPT}</script></body></html>\n"),
    );
    page
}

/// Writes a box for each section with charts, which shows and hides it.
fn choice(page: &mut String, sections: &[Section]) {
    let with_charts = || sections.iter().enumerate().filter(|(_, section)| !section.charts.is_empty());
    if with_charts().count() < CHOICE_MIN {
        return;
    }
    page.push_str("<nav aria-label=\"sections\">");
    for (number, section) in with_charts() {
        push(
            page,
            format_args!(
                "<label><input type=\"checkbox\" value=\"s{number}\" checked> {}</label>\n",
                escaped(&section.title)
            ),
        );
    }
    page.push_str("</nav>\n");
}

fn html_table(page: &mut String, table: &Grid) {
    // Texts are aligned left, numbers right.
    let letters = |cell: &String| cell.chars().filter(|c| c.is_alphabetic()).count();
    let is_text: Vec<bool> = (0..table.titles.len())
        .map(|i| table.rows.iter().filter_map(|row| row.get(i)).any(|cell| letters(cell) > LETTERS_MAX))
        .collect();
    let row = |tag: &str, cells: &[String]| {
        let cell = |(cell, is_text): (&String, &bool)| {
            let class = if *is_text { " class=\"t\"" } else { "" };
            format!("<{tag}{class}>{}</{tag}>", escaped(cell))
        };
        let cells: String = cells.iter().zip(&is_text).map(cell).collect();
        format!("<tr>{cells}</tr>\n")
    };
    push(page, format_args!("<table>{}", row("th", &table.titles)));
    table.rows.iter().for_each(|cells| page.push_str(&row("td", cells)));
    page.push_str("</table>\n");
}

pub(super) fn markdown(title: &str, sections: &[Section]) -> String {
    let mut text = format!("# {title}\n");
    // A section of charts alone has nothing in a text.
    for section in sections.iter().filter(|section| !section.tables.is_empty() || !section.notes.is_empty()) {
        push(&mut text, format_args!("\n## {}\n", section.title));
        for table in &section.tables {
            let cells = |cells: &[String]| {
                cells.iter().map(|c| c.replace('|', "\\|")).collect::<Vec<_>>().join(" | ")
            };
            push(
                &mut text,
                format_args!("\n| {} |\n|{}\n", table.titles.join(" | "), "---|".repeat(table.titles.len())),
            );
            table.rows.iter().for_each(|row| push(&mut text, format_args!("| {} |\n", cells(row))));
        }
        text.push('\n');
        section.notes.iter().for_each(|note| push(&mut text, format_args!("- {note}\n")));
    }
    text
}

pub(super) fn svg(sections: &[Section]) -> String {
    let charts: Vec<&Chart> = sections.iter().flat_map(|section| &section.charts).collect();
    let height: f64 = charts.iter().map(|chart| chart.height()).sum();
    let height = height.max(1.0);
    let mut image = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{height}\">",
        Chart::width()
    );
    let mut top = 0.0;
    for chart in charts {
        image.push_str(&chart.svg(top));
        top += chart.height();
    }
    image.push_str("</svg>\n");
    image
}

fn push(text: &mut String, piece: std::fmt::Arguments<'_>) {
    text.write_fmt(piece).expect("a String takes all");
}
