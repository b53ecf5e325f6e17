//! Ctrl-C, counted.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// How often Ctrl-C was pressed. Cloning shares it.
#[derive(Clone, Debug)]
pub(crate) struct Interrupts {
    pressed: watch::Receiver<u32>,
}

impl Interrupts {
    /// Counts from now on; Ctrl-C does not end the process any more.
    pub(crate) fn listen() -> io::Result<Self> {
        let mut interrupts = signal(SignalKind::interrupt())?;
        let (sender, pressed) = watch::channel(0);
        tokio::spawn(async move {
            while interrupts.recv().await.is_some() {
                sender.send_modify(|pressed| *pressed += 1);
            }
        });
        Ok(Self { pressed })
    }

    /// Completes when Ctrl-C has been pressed `times` times.
    pub(crate) async fn pressed(&self, times: u32) {
        if self.pressed.clone().wait_for(|pressed| *pressed >= times).await.is_err() {
            // Signals are not delivered any more; so nobody presses.
            std::future::pending::<()>().await;
        }
    }
}
