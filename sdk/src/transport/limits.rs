//! The limits of every WebSocket of this crate, on either side.

use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

use crate::wire::MAX_FRAME;

/// Both halves of a connection cost this much memory while idle; the library's own default is 32 times as much.
const READ_BUFFER: usize = 4 << 10;

/// Frames that are written together go out in pieces of about this size.
const WRITE_BUFFER: usize = 16 << 10;

/// The limits of every WebSocket of this crate.
pub(crate) fn config() -> WebSocketConfig {
    let mut config = WebSocketConfig::default();
    config.read_buffer_size = READ_BUFFER;
    config.write_buffer_size = WRITE_BUFFER;
    config.max_write_buffer_size = 4 * MAX_FRAME;
    config.max_frame_size = Some(MAX_FRAME);
    config.max_message_size = Some(MAX_FRAME);
    config
}
