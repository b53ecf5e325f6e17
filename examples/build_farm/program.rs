//! The build that is submitted: a small Rust program, compiled with rustc, which then checks itself.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::build_farm::cli::Options;
use crate::build_farm::domain::BuildSpec;

/// The program's source.
const SOURCE: &str = include_str!("program/varint.rs");

/// The file to which the build appends a line whenever it starts.
const STARTS: &str = "starts";

/// The build's sources on disk.
#[derive(Debug)]
pub(crate) struct Program {
    directory: PathBuf,
}

/// Why the build could not be prepared.
#[derive(Debug)]
pub(crate) enum ProgramError {
    /// There is no compiler.
    NoCompiler(io::Error),
    /// The compiler is there and does not work.
    BrokenCompiler(String),
    /// The sources could not be written.
    Sources(io::Error),
}

impl Program {
    /// Writes the sources into a directory of their own below `directory`.
    pub(crate) fn write(directory: &Path) -> Result<Self, ProgramError> {
        check_compiler()?;
        let directory = directory.join("program");
        std::fs::create_dir(&directory)
            .and_then(|()| std::fs::write(directory.join("varint.rs"), SOURCE))
            .map_err(ProgramError::Sources)?;
        Ok(Self { directory })
    }

    /// What a worker is to do: the first thing that it does is to leave a trace on disk.
    pub(crate) fn spec(&self, options: &Options) -> BuildSpec {
        let Options { checks, fail, .. } = options;
        let (pace, fail) = (options.pace.as_millis(), if *fail { " fail" } else { "" });
        let command = format!(
            "set -e\n\
             echo \"start $$\" >> {STARTS}\n\
             echo 'compiling varint.rs'\n\
             {compiler} --edition 2024 varint.rs -o varint\n\
             echo 'checking varint'\n\
             exec ./varint {checks} {pace}{fail}\n",
            compiler = quoted(&compiler()),
        );
        BuildSpec { directory: self.directory.clone(), command }
    }

    /// How often the build was started, counted from the traces.
    pub(crate) fn executions(&self) -> usize {
        let starts = std::fs::read_to_string(self.directory.join(STARTS)).unwrap_or_default();
        starts.lines().filter(|line| line.starts_with("start ")).count()
    }
}

fn compiler() -> String {
    std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned())
}

fn check_compiler() -> Result<(), ProgramError> {
    let said = Command::new(compiler()).arg("--version").output().map_err(ProgramError::NoCompiler)?;
    if said.status.success() {
        Ok(())
    } else {
        Err(ProgramError::BrokenCompiler(String::from_utf8_lossy(&said.stderr).trim().to_owned()))
    }
}

/// One word for the shell, whatever it holds.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

impl fmt::Display for ProgramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCompiler(e) => write!(
                f,
                "`{}` could not be run ({e}): the build farm compiles a real program; install Rust (https://rustup.rs), \
                 or name the compiler in RUSTC",
                compiler()
            ),
            Self::BrokenCompiler(said) => write!(f, "`{} --version` failed: {said}", compiler()),
            Self::Sources(e) => write!(f, "the build's sources could not be written: {e}"),
        }
    }
}

impl std::error::Error for ProgramError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NoCompiler(e) | Self::Sources(e) => Some(e),
            Self::BrokenCompiler(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn built(options: &Options) -> (std::process::Output, usize) {
        let directory = tempfile::tempdir().unwrap();
        let program = Program::write(directory.path()).unwrap();
        assert_eq!(program.executions(), 0);
        let spec = program.spec(options);
        let output = Command::new("sh").arg("-c").arg(spec.command).current_dir(spec.directory).output().unwrap();
        (output, program.executions())
    }

    #[test]
    fn the_program_compiles_and_its_checks_pass() {
        let quick = Options { checks: 7, pace: Duration::ZERO, ..Options::default() };
        let (output, executions) = built(&quick);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(executions, 1);
        assert_eq!(text.lines().count(), 2 + 7, "{text}");

        let (output, executions) = built(&Options { fail: true, ..quick });
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!((output.status.code(), executions), (Some(1), 1), "{text}");
        let last = text.lines().last().unwrap();
        assert!(last.starts_with("check 7/7") && last.contains("FAILED"), "only the last one fails: {text}");
        assert_eq!(text.matches("FAILED").count(), 1);
    }

    #[test]
    fn any_name_is_one_word() {
        let output = Command::new("sh").arg("-c").arg(format!("printf %s {}", quoted("a b'c$d"))).output().unwrap();
        assert_eq!(output.stdout, b"a b'c$d");
    }
}
