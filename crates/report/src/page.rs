//! Sections as HTML, Markdown or SVG.

use crate::chart::Chart;
use crate::{Grid, Section};
use fastpath_record::escaped;
use std::fmt::Write;

/// Maximum number of letters in a cell that is a number with its unit.
const LETTERS_MAX: usize = 12;

const STYLE: &str = "body{font-family:sans-serif;max-width:1400px;margin:2em auto;padding:0 1em;color:#222}\
table{border-collapse:collapse;margin:1em 0;font-size:13px}\
th,td{padding:3px 10px;text-align:right;border-bottom:1px solid #ddd}th:first-child,td:first-child,.t{text-align:left}\
th{border-bottom:2px solid #888}svg{margin:6px}.p:hover{stroke:#000;stroke-width:2}\
ul{font-size:13px;color:#444}#tip{position:fixed;display:none;background:#222;color:#fff;padding:4px 8px;\
border-radius:4px;font-size:12px;pointer-events:none}";

/// Shows the title of a point at once. Browsers wait a second.
const SCRIPT: &str = "const tip=document.getElementById('tip');\
document.querySelectorAll('.p').forEach(p=>{const t=p.querySelector('title');if(!t)return;const s=t.textContent;t.remove();\
p.addEventListener('mousemove',e=>{tip.textContent=s;tip.style.display='block';tip.style.left=(e.clientX+12)+'px';tip.style.top=(e.clientY+12)+'px'});\
p.addEventListener('mouseleave',()=>tip.style.display='none')});";

pub(super) fn html(title: &str, sections: &[Section]) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title><style>{STYLE}</style></head>\n<body><h1>{0}</h1>\n",
        escaped(title)
    );
    for section in sections {
        push(&mut page, format_args!("<h2>{}</h2>\n", escaped(&section.title)));
        section.charts.iter().for_each(|chart| push(&mut page, format_args!("{}\n", chart.svg(0.0))));
        section.tables.iter().for_each(|table| html_table(&mut page, table));
        push(&mut page, format_args!("<ul>"));
        section.notes.iter().for_each(|note| push(&mut page, format_args!("<li>{}</li>\n", escaped(note))));
        push(&mut page, format_args!("</ul>\n"));
    }
    push(&mut page, format_args!("<div id=\"tip\"></div><script>{SCRIPT}</script></body></html>\n"));
    page
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
    for section in sections {
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
    let height = Chart::height() * charts.len().max(1) as f64;
    let mut image = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{height}\">",
        Chart::width()
    );
    for (i, chart) in charts.iter().enumerate() {
        image.push_str(&chart.svg(Chart::height() * i as f64));
    }
    image.push_str("</svg>\n");
    image
}

fn push(text: &mut String, piece: std::fmt::Arguments<'_>) {
    text.write_fmt(piece).expect("a String takes all");
}
