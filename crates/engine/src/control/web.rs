//! The dashboard: a page that shows and changes the network in a browser.
//!
//! Its files are part of the program. They contain nothing about the network, so they need no
//! token. The page takes the token from its own address (`#token=…`, which a browser does not send)
//! and requests nothing from elsewhere.

use super::{HttpAddress, Nodes};
use axum::Router;
use axum::http::{HeaderName, header};
use axum::routing::get;
use fastpath_spec::Topology;
use serde_json::Value;

/// The settings of the dashboard.
#[derive(Clone, Debug)]
pub struct Dashboard {
    /// The address on which to serve it, with the whole control interface.
    pub address: HttpAddress,
    /// Returns the places of nodes on a map as the answer to `GET /picture`.
    pub picture: fn(&Topology) -> Value,
    /// What a lab tells of its nodes; `None`: no programs run on hosts.
    pub nodes: Option<Nodes>,
}

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

/// The files: path, kind, and content. uPlot is by Leon Sorokin (MIT, see `web/uplot.LICENSE`).
const FILES: [(&str, &str, &str); 14] = [
    ("/", HTML, include_str!("web/index.html")),
    ("/dashboard.js", SCRIPT, include_str!("web/dashboard.js")),
    ("/state.js", SCRIPT, include_str!("web/state.js")),
    ("/map.js", SCRIPT, include_str!("web/map.js")),
    ("/shapes.js", SCRIPT, include_str!("web/shapes.js")),
    ("/inspect.js", SCRIPT, include_str!("web/inspect.js")),
    ("/download.js", SCRIPT, include_str!("web/download.js")),
    ("/tables.js", SCRIPT, include_str!("web/tables.js")),
    ("/switch.js", SCRIPT, include_str!("web/switch.js")),
    ("/charts.js", SCRIPT, include_str!("web/charts.js")),
    ("/controls.js", SCRIPT, include_str!("web/controls.js")),
    ("/style.css", STYLE, include_str!("web/style.css")),
    ("/uplot.js", SCRIPT, include_str!("web/uplot.js")),
    ("/uplot.css", STYLE, include_str!("web/uplot.css")),
];

/// The page of a switch, which is `/` there.
const SWITCH_PAGE: (&str, &str, &str) = ("/", HTML, include_str!("web/switch.html"));

/// Content Security Policy (W3C CSP 3): nothing from elsewhere, no scripts in texts.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Whether `path` is a file of the page.
pub(super) fn is_file(path: &str) -> bool {
    FILES.iter().any(|(file, ..)| *file == path)
}

/// Adds the files of the page of a network.
pub(super) fn add_files<S: Clone + Send + Sync + 'static>(router: Router<S>) -> Router<S> {
    add(router, FILES)
}

/// Adds the files of the page of a switch.
pub(super) fn add_switch_files<S: Clone + Send + Sync + 'static>(router: Router<S>) -> Router<S> {
    add(router, FILES.map(|file| if file.0 == "/" { SWITCH_PAGE } else { file }))
}

fn add<S: Clone + Send + Sync + 'static>(
    router: Router<S>,
    files: [(&'static str, &'static str, &'static str); FILES.len()],
) -> Router<S> {
    files.into_iter().fold(router, |router, (path, kind, content)| {
        let headers: [(HeaderName, &str); 5] = [
            (header::CONTENT_TYPE, kind),
            (header::CONTENT_SECURITY_POLICY, POLICY),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::REFERRER_POLICY, "no-referrer"),
            (header::CACHE_CONTROL, "no-store"),
        ];
        router.route(path, get(move || std::future::ready((headers, content))))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_small_and_names_no_other_site() {
        let bytes: usize = FILES.iter().map(|(.., content)| content.len()).sum();
        assert!(bytes <= 200 << 10, "{bytes} bytes");
        for (path, _, content) in
            FILES.iter().chain([&SWITCH_PAGE]).filter(|(path, ..)| !path.starts_with("/uplot"))
        {
            let elsewhere = content.replace("http://www.w3.org/2000/svg", "");
            assert!(!elsewhere.contains("http://") && !elsewhere.contains("https://"), "{path}");
            assert!(!content.contains("innerHTML") && !content.contains("eval("), "{path}");
        }
    }
}
