//! The loops of today, as they are found in scripts: they ask for a build until it is `complete`.

use std::time::Duration;

use serde_json::Value;

/// What such a loop takes for the verdict.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The result of the build.
    Result(u64),
    /// That it failed to ask.
    Error(String),
}

/// One that ends with the first request that fails.
pub async fn giving_up(build: String) -> Verdict {
    loop {
        match result(&build).await {
            Ok(Some(result)) => return Verdict::Result(result),
            Ok(None) => tokio::time::sleep(Duration::from_millis(500)).await,
            Err(e) => return Verdict::Error(e.to_string()),
        }
    }
}

/// One that tries again whatever fails.
pub async fn trying_again(build: String) -> Verdict {
    loop {
        if let Ok(Some(result)) = result(&build).await {
            return Verdict::Result(result);
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

async fn result(build: &str) -> reqwest::Result<Option<u64>> {
    // What reqwest asks for even where no TLS is used; another test may have done it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().no_proxy().build()?;
    let answer = client.get(build).send().await?.error_for_status()?;
    let answer: Value = serde_json::from_slice(&answer.bytes().await?).unwrap_or_default();
    let build = &answer["builds"][0];
    Ok(if build["complete"] == true { build["results"].as_u64() } else { None })
}
