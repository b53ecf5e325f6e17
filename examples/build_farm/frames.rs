//! Reads WebSocket messages out of the bytes that pass a relay (RFC 6455, 5.2).
//!
//! It only looks: the bytes are forwarded as they came. Masked frames (client to server) and plain ones
//! (server to client) are both understood, as are messages in fragments. Compression is not: nobody in
//! this example negotiates it.

/// A message longer than this is passed over unread.
const LONGEST: u64 = 1 << 20;

const CONTINUATION: u8 = 0x0;
const TEXT: u8 = 0x1;

/// The text messages in one direction of one connection.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    /// Whether the HTTP head of the upgrade has passed.
    upgraded: bool,
    /// What has come and is not a whole frame yet.
    pending: Vec<u8>,
    /// How much of an overlong payload is still to be passed over.
    skip: u64,
    /// The fragments of a text message that is not complete yet.
    message: Option<Vec<u8>>,
}

/// The fixed part of a frame.
struct Head {
    last: bool,
    opcode: u8,
    mask: Option<[u8; 4]>,
    /// Where the payload starts.
    start: usize,
    /// How long the payload is.
    length: u64,
}

impl Frames {
    /// Takes the next bytes, and returns the text messages that they complete.
    pub(crate) fn read(&mut self, bytes: &[u8]) -> Vec<String> {
        self.pending.extend_from_slice(bytes);
        if !self.upgraded {
            let Some(end) = self.pending.windows(4).position(|four| four == b"\r\n\r\n") else {
                return Vec::new();
            };
            self.pending.drain(..end + 4);
            self.upgraded = true;
        }
        let mut messages = Vec::new();
        loop {
            if self.skip > 0 {
                let skipped = usize::try_from(self.skip).unwrap_or(usize::MAX).min(self.pending.len());
                self.pending.drain(..skipped);
                self.skip -= skipped as u64;
            }
            let Some(head) = Head::parse(&self.pending) else { return messages };
            if head.length > LONGEST {
                self.pending.drain(..head.start);
                self.skip = head.length;
                self.message = None;
                continue;
            }
            // At most LONGEST, so it fits.
            let end = head.start + head.length as usize;
            if self.pending.len() < end {
                return messages;
            }
            let mut payload: Vec<u8> = self.pending.drain(..end).skip(head.start).collect();
            if let Some(mask) = head.mask {
                payload.iter_mut().zip(mask.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
            }
            match head.opcode {
                TEXT => self.message = Some(payload),
                CONTINUATION => {
                    if let Some(message) = &mut self.message {
                        message.extend_from_slice(&payload);
                        if message.len() as u64 > LONGEST {
                            self.message = None;
                        }
                    }
                }
                // A control frame may stand between two fragments; a binary message is of no interest.
                _ => continue,
            }
            if head.last
                && let Some(message) = self.message.take()
            {
                messages.push(String::from_utf8_lossy(&message).into_owned());
            }
        }
    }
}

impl Head {
    /// The head at the start of `bytes`, once it is all there.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let (first, second) = (*bytes.first()?, *bytes.get(1)?);
        let (length, mut start) = match second & 0x7f {
            126 => (u64::from(u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?)), 4),
            127 => (u64::from_be_bytes(bytes.get(2..10)?.try_into().ok()?), 10),
            short => (u64::from(short), 2),
        };
        let mask = if second & 0x80 != 0 {
            let mask = bytes.get(start..start + 4)?.try_into().ok()?;
            start += 4;
            Some(mask)
        } else {
            None
        };
        Some(Self { last: first & 0x80 != 0, opcode: first & 0x0f, mask, start, length })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UPGRADE: &[u8] = b"GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n";

    /// A frame as RFC 6455, 5.2 draws it.
    fn frame(first: u8, payload: &[u8], mask: Option<[u8; 4]>) -> Vec<u8> {
        let masked = if mask.is_some() { 0x80 } else { 0 };
        let mut bytes = vec![first];
        match payload.len() {
            n @ 0..=125 => bytes.push(masked | n as u8),
            n @ 126..=0xffff => {
                bytes.push(masked | 126);
                bytes.extend((n as u16).to_be_bytes());
            }
            n => {
                bytes.push(masked | 127);
                bytes.extend((n as u64).to_be_bytes());
            }
        }
        let key = mask.unwrap_or_default();
        bytes.extend(mask.into_iter().flatten());
        bytes.extend(payload.iter().zip(key.iter().cycle()).map(|(byte, key)| byte ^ key));
        bytes
    }

    /// The examples of RFC 6455, 5.7.
    #[test]
    fn the_examples_of_the_rfc() {
        let plain = [0x81, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f];
        let masked = [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];
        let fragments = [0x01, 0x03, 0x48, 0x65, 0x6c, 0x80, 0x02, 0x6c, 0x6f];
        for bytes in [&plain[..], &masked, &fragments] {
            assert_eq!(Frames::default().read(&[UPGRADE, bytes].concat()), ["Hello"]);
        }
    }

    #[test]
    fn bytes_may_be_cut_anywhere() {
        let long = "x".repeat(300);
        let huge = "y".repeat(70_000);
        let mask = Some([1, 2, 3, 250]);
        let bytes = [
            UPGRADE.to_vec(),
            frame(0x81, b"one", mask),
            frame(0x89, b"ping", mask),
            frame(0x81, long.as_bytes(), None),
            frame(0x01, b"tw", mask),
            frame(0x8a, b"", mask),
            frame(0x80, b"o", mask),
            frame(0x82, b"binary", None),
            frame(0x81, huge.as_bytes(), mask),
            frame(0x81, b"", None),
        ]
        .concat();
        let expected = ["one", &long, "two", &huge, ""];
        assert_eq!(Frames::default().read(&bytes), expected);
        for size in [1, 2, 3, 7, 1000] {
            let mut frames = Frames::default();
            let read: Vec<String> = bytes.chunks(size).flat_map(|chunk| frames.read(chunk)).collect();
            assert_eq!(read, expected, "in chunks of {size}");
        }
    }

    #[test]
    fn an_overlong_message_is_passed_over() {
        let big = vec![b'z'; LONGEST as usize + 1];
        let bytes = [UPGRADE.to_vec(), frame(0x81, &big, Some([9; 4])), frame(0x81, b"next", None)].concat();
        let mut frames = Frames::default();
        let read: Vec<String> = bytes.chunks(4096).flat_map(|chunk| frames.read(chunk)).collect();
        assert_eq!(read, ["next"]);
        assert!(frames.pending.capacity() < 100_000, "nothing of it was kept");
    }

    #[test]
    fn nothing_is_read_before_the_upgrade() {
        let mut frames = Frames::default();
        assert!(frames.read(b"GET / HTTP/1.1\r\nHost: x\r\n").is_empty());
        assert_eq!(frames.read(&[&b"\r\n"[..], &frame(0x81, b"hi", Some([5; 4]))].concat()), ["hi"]);
    }
}
