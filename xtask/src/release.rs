//! `cargo xtask release --dry-run`: everything that a release consists of, made and checked, and
//! nothing published.

use crate::dist;
use crate::process::{cargo, succeed, target};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, ExitCode};

/// Makes and checks the artefacts. The exit code is 1 if something is missing or differs.
pub(crate) fn run(arguments: &[String]) -> ExitCode {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if words != ["--dry-run"] {
        eprintln!("usage: cargo xtask release --dry-run\nPublishing is by hand: docs/internals/releasing.md");
        return ExitCode::from(2);
    }
    match check() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: release: {error}");
            ExitCode::FAILURE
        }
    }
}

fn check() -> io::Result<()> {
    let version = dist::version()?;
    let changelog = fs::read_to_string("CHANGELOG.md")?;
    changes(&changelog, &version).map_err(io::Error::other)?;
    let status = Command::new("git").args(["status", "--porcelain"]).output()?.stdout;
    if !status.is_empty() {
        let what = String::from_utf8_lossy(&status);
        return Err(io::Error::other(format!("commit first:\n{}", what.trim_end())));
    }
    let metadata = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["metadata", "--locked", "--format-version", "1"])
        .output()?
        .stdout;
    let metadata: Value = serde_json::from_slice(&metadata).map_err(io::Error::other)?;
    let order = order(&metadata);
    println!("xtask: cargo publish, in this order: {}", order.join(" "));
    let mut package = vec!["package", "--quiet", "--locked", "--no-verify"];
    package.extend(order.iter().flat_map(|name| ["--package", name]));
    cargo(&package)?;
    reproducible()?;
    if dist::run(&["--check".to_owned()]) != ExitCode::SUCCESS {
        return Err(io::Error::other("the artefacts are not good"));
    }
    let bill = Path::new("dist").join(format!("fastpath-{version}.spdx.json"));
    fs::write(&bill, format!("{:#}\n", bill_of_materials(&metadata, &version)))?;
    dist::checksums()?;
    println!("xtask: dist/ has what version {version} consists of");
    println!("xtask: README.md installs from {}", dist::archive_address(&version));
    Ok(())
}

/// Checks that the changelog has a section of this version, with Added, Changed or Fixed, and
/// nothing unreleased.
fn changes(changelog: &str, version: &str) -> Result<(), String> {
    let sections: Vec<&str> = changelog.split("\n## ").skip(1).collect();
    let own = sections.iter().find(|section| section.lines().next().unwrap_or_default().starts_with(version));
    let own = own.ok_or_else(|| format!("CHANGELOG.md: write a section '## {version} (DATE)'"))?;
    if !["### Added", "### Changed", "### Fixed"].iter().any(|kind| own.contains(kind)) {
        return Err(format!("CHANGELOG.md: {version} has no Added, Changed or Fixed"));
    }
    let rest = sections.iter().find(|section| section.starts_with("Unreleased"));
    match rest.is_some_and(|section| section.contains("\n- ")) {
        true => Err(format!("CHANGELOG.md: move what is unreleased to {version}")),
        false => Ok(()),
    }
}

/// The packages of the workspace that are published, each after those that it uses.
fn order(metadata: &Value) -> Vec<String> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let published = packages.filter(|package| package["source"].is_null() && package["publish"].is_null());
    let mut open: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in published {
        let uses = package["dependencies"].as_array().into_iter().flatten();
        // Dev-dependencies are left out of a published package if they have no version.
        let uses = uses.filter(|dependency| dependency["path"].is_string() && dependency["kind"] != "dev");
        let names = uses.filter_map(|dependency| dependency["name"].as_str()).map(str::to_owned);
        open.insert(text(&package["name"]), names.collect());
    }
    let mut order = Vec::new();
    while let Some(next) = open.iter().find(|(_, uses)| uses.iter().all(|name| order.contains(name))) {
        let name = next.0.clone();
        open.remove(&name);
        order.push(name);
    }
    assert!(open.is_empty(), "these crates use each other: {open:?}");
    order
}

/// Builds the program twice, in directories of different names, and compares the bytes.
fn reproducible() -> io::Result<()> {
    let mut programs = Vec::new();
    for name in ["reproduce-a", "reproduce-two"] {
        let tree = fs::canonicalize(target())?.join(name);
        let _ = fs::remove_dir_all(&tree);
        succeed(Command::new("git").args(["worktree", "add", "--quiet", "--detach"]).arg(&tree).arg("HEAD"))?;
        let home = env::var("CARGO_HOME").or_else(|_| env::var("HOME").map(|home| format!("{home}/.cargo")));
        let flags = format!(
            "--remap-path-prefix={}=fastpath --remap-path-prefix={}=cargo",
            tree.display(),
            home.map_err(io::Error::other)?
        );
        let mut build = Command::new("cargo");
        build.args([
            "build",
            "--quiet",
            "--locked",
            "--package",
            "fastpath-cli",
            "--features",
            "full",
            "--profile",
            "dist",
        ]);
        build.current_dir(&tree).env("RUSTFLAGS", flags).env("CARGO_TARGET_DIR", tree.join("target"));
        let built = succeed(&mut build).and_then(|()| fs::read(tree.join("target/dist/fastpath")));
        succeed(Command::new("git").args(["worktree", "remove", "--force"]).arg(&tree))?;
        programs.push(built?);
    }
    match programs[0] == programs[1] {
        true => Ok(()),
        false => Err(io::Error::other("two builds of this commit have different bytes")),
    }
}

/// Every crate that the program is made of, as SPDX 2.3.
fn bill_of_materials(metadata: &Value, version: &str) -> Value {
    let nodes = metadata["resolve"]["nodes"].as_array().cloned().unwrap_or_default();
    let packages = metadata["packages"].as_array().cloned().unwrap_or_default();
    let find = |id: &Value| nodes.iter().find(|node| node["id"] == *id);
    let root = packages.iter().find(|package| package["name"] == "fastpath-cli");
    let mut reached: Vec<Value> = root.map(|package| package["id"].clone()).into_iter().collect();
    let mut index = 0;
    while let Some(node) = reached.get(index).and_then(find) {
        index += 1;
        let uses = node["deps"].as_array().into_iter().flatten();
        let uses = uses.filter(|used| {
            used["dep_kinds"].as_array().into_iter().flatten().any(|kind| kind["kind"] != "dev")
        });
        for used in uses.map(|used| used["pkg"].clone()) {
            if !reached.contains(&used) {
                reached.push(used);
            }
        }
    }
    let listed = packages.iter().filter(|package| reached.contains(&package["id"]));
    let listed: Vec<Value> = listed
        .map(|package| {
            let (name, version) = (text(&package["name"]), text(&package["version"]));
            json!({
                "SPDXID": format!("SPDXRef-{}-{}", name.replace('_', "-"), version.replace('+', "-")),
                "name": name,
                "versionInfo": version,
                "downloadLocation": package["repository"].as_str().unwrap_or("NOASSERTION"),
                "licenseDeclared": package["license"].as_str().map_or("NOASSERTION".into(), |l| l.replace('/', " OR ")),
                "externalRefs": [{
                    "referenceCategory": "PACKAGE-MANAGER",
                    "referenceType": "purl",
                    "referenceLocator": format!("pkg:cargo/{name}@{version}"),
                }],
            })
        })
        .collect();
    json!({
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": format!("fastpath-{version}"),
        "documentNamespace": format!("https://example.invalid/fastpath/spdx/{version}"),
        "packages": listed,
    })
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_has_its_section_and_nothing_unreleased() {
        let good = "# C\n\n## Unreleased\n\n## 0.2.0 (2026-11-24)\n\n### Added\n\n- x\n";
        assert_eq!(changes(good, "0.2.0"), Ok(()));
        assert!(changes(good, "0.3.0").unwrap_err().contains("## 0.3.0"));
        assert!(changes(&good.replace("Unreleased\n", "Unreleased\n\n- y\n"), "0.2.0").is_err());
        assert!(changes(&good.replace("### Added", ""), "0.2.0").is_err());
    }

    #[test]
    fn crates_are_published_after_those_that_they_use() {
        let package = |name: &str, publish: Value, uses: &[(&str, Value)]| {
            let uses: Vec<Value> =
                uses.iter().map(|(name, kind)| json!({ "name": name, "path": "p", "kind": kind })).collect();
            json!({ "name": name, "source": null, "publish": publish, "dependencies": uses })
        };
        let metadata = json!({ "packages": [
            package("a", Value::Null, &[("b", Value::Null), ("c", json!("dev"))]),
            package("b", Value::Null, &[]),
            package("c", Value::Null, &[("a", Value::Null)]),
            package("x", json!([]), &[]),
        ]});
        assert_eq!(order(&metadata), ["b", "a", "c"]);
    }

    #[test]
    fn the_bill_of_materials_has_what_the_program_is_made_of() {
        let metadata = json!({
            "packages": [
                { "id": "1", "name": "fastpath-cli", "version": "1.0.0", "license": "MIT" },
                { "id": "2", "name": "used", "version": "2.0.0", "license": "MIT/Apache-2.0" },
                { "id": "3", "name": "tests-only", "version": "3.0.0" },
            ],
            "resolve": { "nodes": [
                { "id": "1", "deps": [
                    { "pkg": "2", "dep_kinds": [{ "kind": null }] },
                    { "pkg": "3", "dep_kinds": [{ "kind": "dev" }] },
                ]},
                { "id": "2", "deps": [] },
            ]},
        });
        let bill = bill_of_materials(&metadata, "1.0.0");
        let names: Vec<String> =
            bill["packages"].as_array().unwrap().iter().map(|p| text(&p["name"])).collect();
        assert_eq!(names, ["fastpath-cli", "used"]);
        assert_eq!(bill["packages"][1]["licenseDeclared"], "MIT OR Apache-2.0");
    }
}
