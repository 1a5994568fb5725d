//! Links between the pages of the built book.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// Returns every link of the HTML pages below `book` that leads nowhere, as `page: target`.
pub(crate) fn dead(book: &Path) -> io::Result<Vec<String>> {
    let mut pages = HashMap::new();
    let mut directories = vec![book.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "html") {
                let text = fs::read_to_string(&path)?;
                pages.insert(path, text);
            }
        }
    }
    let anchors: HashMap<&Path, HashSet<&str>> =
        pages.iter().map(|(path, text)| (path.as_path(), attributes(text, "id"))).collect();
    let mut dead = Vec::new();
    for (path, text) in &pages {
        // Pages that repeat others, with the links of their places; the page of no address.
        if ["print.html", "404.html"].iter().any(|name| path.ends_with(name)) {
            continue;
        }
        for target in attributes(text, "href").into_iter().chain(attributes(text, "src")) {
            if target.contains(':') || target.is_empty() {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let directory = path.parent().unwrap_or(book);
            let file = if file.is_empty() { path.clone() } else { normal(&directory.join(file)) };
            let has_anchor = || anchors.get(file.as_path()).is_none_or(|known| known.contains(anchor));
            if !file.exists() || !anchor.is_empty() && !has_anchor() {
                let page = path.strip_prefix(book).unwrap_or(path).display();
                dead.push(format!("{page}: {target}"));
            }
        }
    }
    dead.sort();
    Ok(dead)
}

/// The values of an attribute.
fn attributes<'t>(text: &'t str, name: &str) -> HashSet<&'t str> {
    let start = format!(" {name}=\"");
    text.split(&*start).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

/// A path without `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => _ = normal.pop(),
            Component::CurDir => {}
            part => normal.push(part),
        }
    }
    normal
}

/// The anchor of a heading, as GitHub and mdBook make it.
pub(crate) fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn links_to_missing_pages_and_anchors_are_found() {
    let book = std::env::temp_dir().join(format!("fastpath-book-{}", std::process::id()));
    fs::create_dir_all(book.join("a")).unwrap();
    fs::write(book.join("index.html"), "<a href=\"a/b.html#x\"> <a href=\"a/b.html#y\"> <img src=\"p.svg\">")
        .unwrap();
    fs::write(book.join("a/b.html"), "<h1 id=\"x\"> <a href=\"../index.html\"> <a href=\"https://e.org/\">")
        .unwrap();
    let dead = dead(&book).unwrap();
    fs::remove_dir_all(&book).unwrap();
    assert_eq!(dead, ["index.html: a/b.html#y", "index.html: p.svg"]);
}
