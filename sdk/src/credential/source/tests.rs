use ::http::HeaderMap;

use super::*;
use crate::credential::text::MOST;

async fn asked(source: &Source) -> Result<(String, String), Error> {
    let credential = source.credential().await?;
    let mut headers = HeaderMap::new();
    credential.apply(&mut headers);
    let (name, value) = headers.iter().next().unwrap();
    Ok((name.to_string(), value.to_str().unwrap().to_owned()))
}

async fn value(source: &Source) -> String {
    asked(source).await.unwrap().1
}

/// Every test process of cargo has this one.
const SET: &str = "CARGO_PKG_NAME";

#[tokio::test]
async fn a_variable_is_a_bearer_token() {
    assert_eq!(asked(&variable(SET)).await.unwrap(), ("authorization".into(), "Bearer outlast".into()));
}

#[tokio::test]
async fn a_source_makes_what_it_is_told_to() {
    let source = variable(SET);
    assert_eq!(value(&source.clone().as_basic("ci").unwrap()).await, "Basic Y2k6b3V0bGFzdA==");
    let gitlab = source.clone().as_header("PRIVATE-TOKEN").unwrap();
    assert_eq!(asked(&gitlab).await.unwrap(), ("private-token".into(), "outlast".into()));
    assert_eq!(value(&gitlab.as_bearer()).await, "Bearer outlast");
    let got = crate::machine::Wall::from_millis(1);
    let lasting = source.clone().lasting(Duration::from_secs(1)).credential().await.unwrap();
    assert_eq!(lasting.expires(got), Some(got + Duration::from_secs(1)));
    assert_eq!(source.credential().await.unwrap().expires(got), None);
}

#[test]
fn what_a_source_is_told_is_checked_at_once() {
    let e = variable(SET).as_header("no header").unwrap_err();
    assert!(e.is_invalid() && e.to_string().starts_with("credential.name: expected"), "{e}");
    let e = variable(SET).as_basic("a:b").unwrap_err();
    assert!(e.is_invalid() && e.to_string().starts_with("credential.user: expected"), "{e}");
}

/// A token that is renewed behind the program is found: the file is read anew each time (FC-51).
#[tokio::test]
async fn fc51_a_file_is_read_anew() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("token");
    let source = file(&path);
    let e = source.credential().await.unwrap_err();
    assert!(e.is_retryable() && e.to_string().contains("token"), "{e}");
    std::fs::write(&path, "one\n").unwrap();
    assert_eq!(value(&source).await, "Bearer one");
    std::fs::write(dir.path().join("next"), "  two \r\n").unwrap();
    std::fs::rename(dir.path().join("next"), &path).unwrap();
    assert_eq!(value(&source).await, "Bearer two");
}

#[tokio::test]
async fn a_file_is_read_up_to_its_bound() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("token");
    std::fs::write(&path, "x".repeat(MOST)).unwrap();
    assert_eq!(value(&file(&path)).await.len(), "Bearer ".len() + MOST);
    std::fs::write(&path, "x".repeat(MOST + 1)).unwrap();
    let e = file(&path).credential().await.unwrap_err();
    assert!(e.to_string().ends_with("more than 65536 bytes"), "{e}");
}

#[cfg(unix)]
mod unix {
    use super::*;

    fn sh(script: &str) -> Source {
        command("sh", ["-c", script])
    }

    /// FC-51: a token that is renewed is found.
    #[tokio::test]
    async fn fc51_a_command_is_run_anew() {
        let dir = tempfile::tempdir().unwrap();
        let script = "cd \"$0\"; echo x >> runs; echo token$(wc -l < runs | tr -d ' ')";
        let source = command("sh", ["-c".as_ref(), script.as_ref(), dir.path().as_os_str()]);
        assert_eq!(value(&source).await, "Bearer token1");
        assert_eq!(value(&source).await, "Bearer token2");
    }

    /// No shell has a say in the arguments, and there is nothing to read for the program.
    #[tokio::test]
    async fn a_command_is_run_as_it_is_written() {
        assert_eq!(value(&command("echo", ["$HOME;*"])).await, "Bearer $HOME;*");
        let e = command("cat", Vec::<String>::new()).credential().await.unwrap_err();
        assert_eq!(e.to_string(), "command cat: printed nothing, exit status: 0");
    }

    /// One that prints without an end is killed.
    #[tokio::test]
    async fn a_command_that_does_not_stop_is_stopped() {
        let e = command("yes", ["s3cret"]).credential().await.unwrap_err();
        assert_eq!(e.to_string(), "command yes: more than 65536 bytes");
    }

    /// An ask that is given up ends the program: the pipe that only it writes to comes to its end.
    #[tokio::test]
    async fn a_command_is_killed_when_nobody_waits_for_it() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let script = "exec 3> \"$0\"; echo begun >&3; exec sleep 300";
        let source = command("sh", ["-c".as_ref(), script.as_ref(), pipe.as_os_str()]);
        let (begun, mut has_begun) = tokio::sync::mpsc::unbounded_channel();
        let reads = tokio::task::spawn_blocking(move || {
            let mut lines = std::io::BufRead::lines(std::io::BufReader::new(std::fs::File::open(pipe).unwrap()));
            begun.send(lines.next().unwrap().unwrap()).unwrap();
            lines.count()
        });
        let mut ask = source.credential();
        tokio::select! {
            answer = &mut ask => panic!("{answer:?}"),
            line = has_begun.recv() => assert_eq!(line.unwrap(), "begun"),
        }
        drop(ask);
        assert_eq!(reads.await.unwrap(), 0, "it has ended");
    }

    /// Whatever goes wrong, what was read, printed or handed over as an argument is not told.
    #[tokio::test]
    async fn no_error_of_a_source_tells_a_secret() {
        let dir = tempfile::tempdir().unwrap();
        let with = |name: &str, content: &[u8]| {
            let path = dir.path().join(name);
            std::fs::write(&path, content).unwrap();
            path
        };
        let sources = [
            (variable("OUTLAST_NOT_SET"), "variable OUTLAST_NOT_SET: not set"),
            (variable("OUTLAST=\0"), "not set"),
            (file(dir.path().join("none")), "none: No such file"),
            (file(dir.path()), "directory"),
            (file(with("empty", b" \n")), "empty: text: expected a credential, found nothing"),
            (file(with("lines", b"s3cret\ns3cret")), "lines: credential: expected a token"),
            (file(with("binary", b"s3cret\xff")), "binary: text: expected UTF-8"),
            (file(with("large", &b"s3cret".repeat(MOST))), "large: more than 65536 bytes"),
            (file(with("h", b"s3cret\x01")).as_header("X").unwrap(), "h: credential: expected a value"),
            (file(with("b", b"s3cret\x01")).as_basic("ci").unwrap(), "b: credential.password: expected no control"),
            (command("outlast-no-such-program", ["s3cret"]), "command outlast-no-such-program: No such file"),
            (sh("echo s3cret; echo s3cret >&2; exit 3"), "command sh: exit status: 3"),
            (sh("echo s3cret; kill -9 $$"), "command sh: signal: 9"),
            (sh("echo s3cret >&2"), "command sh: printed nothing, exit status: 0"),
            (sh("echo s3cret; echo s3cret"), "command sh: credential: expected a token"),
            (sh("printf 's3cret\\377'"), "command sh: text: expected UTF-8"),
        ];
        for (source, expected) in sources {
            let e = source.credential().await.unwrap_err();
            assert!(e.to_string().contains(expected), "{e}: not {expected}");
            assert!(e.is_retryable(), "{e}: a source that cannot be reached now");
            let printed = format!("{e} {e:?} {source:?}");
            assert!(!printed.contains("s3cret"), "{printed}");
        }
    }
}
