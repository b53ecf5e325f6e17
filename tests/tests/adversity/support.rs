//! What the modules share.

use std::time::Duration;

use tokio::time::sleep;

pub const HOUR: Duration = Duration::from_secs(3600);

pub async fn settle() {
    sleep(Duration::from_millis(1)).await;
}
