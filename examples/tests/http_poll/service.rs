//! A scripted HTTP service on a real socket: what it answers is up to a closure.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use crate::PATIENCE;

/// What was asked.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) target: String,
    headers: Vec<(String, String)>,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(each, _)| each.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// What is answered.
#[derive(Clone)]
pub(crate) enum Reply {
    Answer {
        status: u16,
        headers: Vec<(String, String)>,
        body: String,
    },
    /// The connection ends without an answer.
    Close,
    /// No answer ever comes.
    Hang,
}

impl Reply {
    pub(crate) fn json(body: impl ToString) -> Self {
        Self::status(200).body("application/json", body)
    }

    pub(crate) fn status(status: u16) -> Self {
        Self::Answer { status, headers: Vec::new(), body: String::new() }
    }

    pub(crate) fn body(mut self, kind: &str, text: impl ToString) -> Self {
        if let Self::Answer { body, .. } = &mut self {
            *body = text.to_string();
        }
        self.header("Content-Type", kind)
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        if let Self::Answer { headers, .. } = &mut self {
            headers.push((name.into(), value.into()));
        }
        self
    }
}

/// It serves until the test's process ends.
pub(crate) struct Service {
    pub(crate) origin: String,
    asked: Receiver<Asked>,
}

type Handler = dyn FnMut(&Asked) -> Reply + Send;

impl Service {
    pub(crate) fn start(handler: impl FnMut(&Asked) -> Reply + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let (sender, asked) = channel();
        let handler: Arc<Mutex<Box<Handler>>> = Arc::new(Mutex::new(Box::new(handler)));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (handler, sender) = (Arc::clone(&handler), sender.clone());
                std::thread::spawn(move || serve(&stream, &handler, &sender));
            }
        });
        Self { origin, asked }
    }

    /// Answers one after the other; the last one again and again.
    pub(crate) fn replies(replies: impl IntoIterator<Item = Reply>) -> Self {
        let mut replies: Vec<Reply> = replies.into_iter().collect();
        replies.reverse();
        Self::start(move |_| if replies.len() > 1 { replies.pop().unwrap() } else { replies[0].clone() })
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.origin)
    }

    /// The next request.
    pub(crate) fn next(&self) -> Asked {
        self.asked.recv_timeout(PATIENCE).unwrap()
    }

    /// All requests that have not been looked at.
    pub(crate) fn rest(&self) -> Vec<Asked> {
        self.asked.try_iter().collect()
    }
}

fn serve(stream: &TcpStream, handler: &Mutex<Box<Handler>>, sender: &Sender<Asked>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    loop {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
            match line.trim_end() {
                "" => break,
                line => lines.push(line.to_owned()),
            }
        }
        let target = lines.first()?.split(' ').nth(1)?.to_owned();
        let headers = lines.iter().skip(1).filter_map(|line| line.split_once(": "));
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let reply = {
            let asked = Asked { target, headers };
            let reply = handler.lock().unwrap()(&asked);
            let _ = sender.send(asked);
            reply
        };
        match reply {
            Reply::Close => return None,
            Reply::Hang => {
                // Until the other side leaves.
                let _ = reader.read_line(&mut String::new());
                return None;
            }
            Reply::Answer { status, headers, body } => {
                let mut text = format!("HTTP/1.1 {status} Scripted\r\nContent-Length: {}\r\n", body.len());
                for (name, value) in headers {
                    text.push_str(&format!("{name}: {value}\r\n"));
                }
                writer.write_all(format!("{text}\r\n{body}").as_bytes()).ok()?;
            }
        }
    }
}
