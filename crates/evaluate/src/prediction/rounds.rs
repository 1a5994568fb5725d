//! Measures platforms in turn. Each measurement is a run of a `fastpath` program (`measure host`,
//! `measure pipeline`), because the C library reads its tunables at start and because another build
//! is another program.

use super::forecast::Forecast;
use super::platform::{HERE, MeasuredPlatform, files};
use super::{PredictionError, PredictionOptions, RestrictedPlatform};
use crate::temporary::TemporaryDirectory;
use fastpath_measure::{Effort, Progress};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// The grid: frame sizes, and steps per packet.
const GRID: [&str; 2] = ["64,128,192,256,384,512,768,1024,1280,1514", "0,5,10,15,20,30,50"];
/// Packets per point and round: quick, and full.
const PACKETS: [&str; 2] = ["200000", "400000"];
/// Rounds over all platforms: quick, and full.
const ROUNDS: [usize; 2] = [3, 5];
/// The tunables of glibc that exclude copies with vectors of more than 16 bytes and `rep movsb`.
const NARROW: &str =
    "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX2,-AVX2_Usable,-AVX_Fast_Unaligned_Load,-ERMS,-FSRM";

/// A program that measures, and what restricts it.
struct TestPlatform {
    name: String,
    program: PathBuf,
    slowdown: f64,
    tunables: Option<&'static str>,
}

/// Measures every platform in every round. The first result is [`HERE`].
pub(super) fn measure(
    options: &PredictionOptions,
    progress: Progress<'_>,
) -> Result<Vec<MeasuredPlatform>, PredictionError> {
    let platforms = platforms(options)?;
    let temporary;
    let directory = match &options.output {
        Some(directory) => directory.as_path(),
        None => {
            temporary = TemporaryDirectory::new("prediction")
                .map_err(|(path, source)| PredictionError::File { path, source })?;
            temporary.path()
        }
    };
    std::fs::create_dir_all(directory).map_err(PredictionError::file(directory))?;
    let measured = |platform: &TestPlatform| MeasuredPlatform {
        name: platform.name.clone(),
        ..MeasuredPlatform::default()
    };
    let mut measured: Vec<MeasuredPlatform> = platforms.iter().map(measured).collect();
    let rounds = ROUNDS[options.effort as usize];
    let mut forecast = Forecast::new(platforms.len(), rounds);
    for round in 0..rounds {
        for (i, (platform, measured)) in platforms.iter().zip(&mut measured).enumerate() {
            let step = format!("{}: {}", platform.name, forecast.words());
            progress(&step, round * platforms.len() + i, rounds * platforms.len());
            let start = Instant::now();
            let [host, costs] = files(directory, &platform.name, round);
            platform.measure(options.effort, &host, &costs)?;
            measured.read(&host, &costs)?;
            forecast.done(start.elapsed().as_secs_f64());
        }
    }
    Ok(measured)
}

fn platforms(options: &PredictionOptions) -> Result<Vec<TestPlatform>, PredictionError> {
    let restricted = |name: &str, slowdown, tunables| TestPlatform {
        name: name.to_owned(),
        program: options.program.clone(),
        slowdown,
        tunables,
    };
    let mut platforms = vec![restricted(HERE, 1.0, None)];
    platforms.extend(options.platforms.iter().map(|platform| match platform {
        RestrictedPlatform::SlowerCore(slowdown) => restricted("slower-core", slowdown.factor(), None),
        RestrictedPlatform::NarrowCopies => restricted("narrow-copies", 1.0, Some(NARROW)),
    }));
    for (i, build) in options.builds.iter().enumerate() {
        let program = build.canonicalize().map_err(PredictionError::file(build))?;
        platforms.push(TestPlatform {
            name: format!("build-{}", i + 1),
            program,
            slowdown: 1.0,
            tunables: None,
        });
    }
    Ok(platforms)
}

impl TestPlatform {
    /// Writes the host record and the grid of a round to these files.
    fn measure(&self, effort: Effort, host: &Path, costs: &Path) -> Result<(), PredictionError> {
        for file in [host, costs] {
            // The program appends records.
            std::fs::write(file, "").map_err(PredictionError::file(file))?;
        }
        let [sizes, steps] = GRID;
        let packets = PACKETS[effort as usize];
        self.run(&["measure", "host", "--quick"], host)?;
        self.run(&["measure", "pipeline", "--size", sizes, "--h", steps, "--packets", packets], costs)
    }

    fn run(&self, arguments: &[&str], records: &Path) -> Result<(), PredictionError> {
        let mut command = Command::new(&self.program);
        command.args(arguments).arg("-o").arg(records).stdin(Stdio::null());
        if self.slowdown != 1.0 {
            command.args(["--slowdown", &self.slowdown.to_string()]);
        }
        if let Some(tunables) = self.tunables {
            command.env("GLIBC_TUNABLES", tunables);
        }
        let output = command.output().map_err(PredictionError::file(&self.program))?;
        if output.status.success() {
            return Ok(());
        }
        Err(PredictionError::Program {
            platform: self.name.clone(),
            command: format!("{} {}", self.program.display(), arguments.join(" ")),
            message: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        })
    }
}
