//! Bytes into lines.

use std::collections::VecDeque;

use bytes::Bytes;
use futures::Stream;
use futures::stream::{BoxStream, StreamExt as _, unfold};

use super::item::FeedItem;

/// The most bytes of one line. A longer one, such as a progress bar without an end, comes in parts.
const LONGEST: usize = 1 << 20;

/// The lines of a feed of bytes.
pub(super) fn of(items: BoxStream<'static, FeedItem<Bytes>>) -> impl Stream<Item = FeedItem<String>> + Send + 'static {
    unfold((items, Splitter::default()), |(mut items, mut splitter)| async move {
        loop {
            if let Some(line) = splitter.lines.pop_front() {
                return Some((line, (items, splitter)));
            }
            // A feed ends with an item of its own: what is left was delivered with it.
            splitter.push(items.next().await?);
        }
    })
}

#[derive(Debug, Default)]
struct Splitter {
    line: Vec<u8>,
    lines: VecDeque<FeedItem<String>>,
}

impl Splitter {
    fn push(&mut self, item: FeedItem<Bytes>) {
        match item {
            FeedItem::Item(bytes) => self.split(&bytes),
            FeedItem::Gap { from, to } => {
                self.flush();
                self.lines.push_back(FeedItem::Gap { from, to });
            }
            FeedItem::Ended(end) => {
                self.flush();
                self.lines.push_back(FeedItem::Ended(end));
            }
        }
    }

    fn split(&mut self, mut rest: &[u8]) {
        while let Some(end) = memchr::memchr(b'\n', rest) {
            self.extend(&rest[..end]);
            rest = &rest[end + 1..];
            if self.line.last() == Some(&b'\r') {
                self.line.pop();
            }
            let line = std::mem::take(&mut self.line);
            self.emit(&line);
        }
        self.extend(rest);
    }

    fn extend(&mut self, bytes: &[u8]) {
        self.line.extend_from_slice(bytes);
        while self.line.len() > LONGEST {
            let end = boundary(&self.line, LONGEST);
            let rest = self.line.split_off(end);
            let part = std::mem::replace(&mut self.line, rest);
            self.emit(&part);
        }
    }

    fn flush(&mut self) {
        if !self.line.is_empty() {
            let line = std::mem::take(&mut self.line);
            self.emit(&line);
        }
    }

    /// A line is whole, so a character cannot be cut, and what is invalid is.
    fn emit(&mut self, line: &[u8]) {
        self.lines.push_back(FeedItem::Item(String::from_utf8_lossy(line).into_owned()));
    }
}

/// The last place at or before `end` that is not inside a character.
fn boundary(bytes: &[u8], end: usize) -> usize {
    (end.saturating_sub(3)..=end).rev().find(|&at| bytes[at] & 0xc0 != 0x80).unwrap_or(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_too_long_comes_in_parts_at_characters() {
        let mut splitter = Splitter::default();
        let text = "x".repeat(LONGEST - 1) + "€" + &"y".repeat(LONGEST) + "\nz";
        splitter.push(FeedItem::Item(text.clone().into()));
        splitter.push(FeedItem::Ended(super::super::item::FeedEnd::Closed));
        let lines: Vec<String> = splitter.lines.drain(..).filter_map(FeedItem::item).collect();
        assert_eq!(lines.len(), 4);
        assert_eq!(lines[..3].concat() + "\n" + &lines[3], text);
    }
}
