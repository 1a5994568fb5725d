//! Lists the shipped machines and programs: each file of `machines/` and `programs/` is shipped
//! under its name, in the order of the names.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?;
    let out = env::var("OUT_DIR").map_err(io::Error::other)?;
    let mut code = String::new();
    for (folder, list) in [("machines", "MACHINES"), ("programs", "PROGRAMS")] {
        println!("cargo::rerun-if-changed={folder}");
        let mut names = Vec::new();
        for entry in fs::read_dir(Path::new(&root).join(folder))? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "toml") {
                names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
            }
        }
        names.sort();
        writeln!(code, "/// Name and text of each file of `{folder}/`.").map_err(io::Error::other)?;
        writeln!(code, "pub const {list}: [(&str, &str); {}] = [", names.len()).map_err(io::Error::other)?;
        for name in names {
            let path = format!("concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/{folder}/{name}.toml\")");
            writeln!(code, "    ({name:?}, include_str!({path})),").map_err(io::Error::other)?;
        }
        code.push_str("];\n");
    }
    fs::write(Path::new(&out).join("shipped.rs"), code)
}
