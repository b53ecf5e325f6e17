//! A profile as a file in TOML.
#![expect(clippy::wildcard_enum_match_arm, reason = "whatever else TOML has is of the wrong type, and told so")]

mod fields;

use std::collections::BTreeMap;
use std::sync::Arc;

use ::http::{HeaderName, HeaderValue, Method};
use toml::{Table, Value};

use self::fields::{Fields, is_credential, kind, place};
use super::{
    Acknowledged, Address, Call, Cancel, Correlate, Dedupe, Find, Log, LogAbout, LogKind, LogSource, Next, Order,
    Profile, Question, Reads, Replies, Scheme, Stage, Stream, StreamKind, Submit, Taken, Webhook, When,
};
use crate::error::Error;
use crate::http::fields::{is_framing, is_own};
use crate::http::poll::{Pace, Settings};

/// Who wrote a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// This library: its profiles may say that a page's interface is at another host.
    Shipped,
    /// Anybody: it may come with a repository, and no credential goes where it says.
    File,
}

pub(super) fn parse(text: &str, trust: Trust) -> Result<Profile, Error> {
    let table: Table = text.parse().map_err(|e: toml::de::Error| {
        // Without the excerpt that its `Display` has: a mistaken file may hold anything.
        let line = e.span().map_or(1, |span| 1 + text.bytes().take(span.start).filter(|b| *b == b'\n').count());
        Error::invalid("profile", format_args!("TOML; line {line}: {}", e.message()))
    })?;
    let profile = profile(Fields::new(String::new(), table), trust)?;
    profile.check()?;
    Ok(profile)
}

fn profile(mut file: Fields, trust: Trust) -> Result<Profile, Error> {
    let stages = file.tables("stage")?.into_iter().map(stage).collect::<Result<Vec<_>, _>>()?;
    let mut profile = Profile::new(file.need_text("name")?, stages);
    profile.addresses =
        file.tables("address")?.into_iter().map(|each| address(each, trust)).collect::<Result<_, _>>()?;
    if let Some(fields) = file.table("read")? {
        profile.read = reads(fields)?;
    }
    if let Some(fields) = file.table("pace")? {
        profile.pace = pace(fields)?;
    }
    profile.grace = file.duration("grace")?.unwrap_or(Settings::default().grace);
    profile.reopens = file.flag("reopens")?.unwrap_or(false);
    profile.log = file.table("log")?.map(log).transpose()?;
    profile.submit = file.table("submit")?.map(submit).transpose()?;
    profile.cancel = file.tables("cancel")?.into_iter().map(cancel).collect::<Result<_, _>>()?;
    profile.webhook = file.table("webhook")?.map(webhook).transpose()?;
    file.done()?;
    Ok(profile)
}

fn stage(mut fields: Fields) -> Result<Stage, Error> {
    let mut stage = Stage::new(fields.need_text("name")?, fields.need_template("path")?);
    stage.status = fields.tables("status")?.into_iter().map(question).collect::<Result<_, _>>()?;
    stage.attempt = fields.place("attempt")?;
    stage.order = fields.table("order")?.map(order).transpose()?.unwrap_or_default();
    stage.bind = bind(&mut fields, Headers::No)?;
    stage.find = fields.table("find")?.map(find).transpose()?;
    stage.next = fields.tables("next")?.into_iter().map(next).collect::<Result<_, _>>()?;
    stage.missing = fields.text("missing")?.map(Arc::from);
    stage.vanishes_after = fields.duration("vanishes_after")?;
    fields.done()?;
    Ok(stage)
}

fn question(mut fields: Fields) -> Result<Question, Error> {
    let mut question = Question::new(fields.need_place("at")?);
    question.when = fields.table("when")?.map(when).transpose()?;
    question.queued = fields.words("queued")?;
    question.running = fields.words("running")?;
    question.parked = fields.words("parked")?;
    question.ok = fields.words("ok")?;
    question.failed = fields.words("failed")?;
    question.canceled = fields.words("canceled")?;
    if let Some(names) = fields.table("names")? {
        for (path, word, name) in names.entries() {
            let listed = question.lists().into_iter().flat_map(|(_, list)| list).find(|each| each.to_string() == word);
            let listed = listed.cloned().ok_or_else(|| Error::invalid(&path, "a word of one of the lists"))?;
            question.names.insert(listed, text(&path, name)?.into());
        }
    }
    fields.done()?;
    Ok(question)
}

fn when(mut fields: Fields) -> Result<When, Error> {
    let when = When::new(fields.need_place("at")?, fields.words("is")?);
    if when.is.is_empty() {
        return Err(fields.missing("is", "a list of words"));
    }
    fields.done()?;
    Ok(when)
}

fn order(mut fields: Fields) -> Result<Order, Error> {
    #[derive(Clone, Copy)]
    enum Kind {
        Monotone,
        Coarse,
        Opaque,
    }
    let kinds = [("monotone", Kind::Monotone), ("coarse", Kind::Coarse), ("opaque", Kind::Opaque)];
    let order = match fields.need_one_of("kind", &kinds)? {
        Kind::Monotone => Order::Monotone(fields.need_place("at")?),
        Kind::Coarse => Order::Coarse(fields.need_place("at")?),
        Kind::Opaque => Order::Opaque,
    };
    fields.done()?;
    Ok(order)
}

fn find(mut fields: Fields) -> Result<Find, Error> {
    let find = Find {
        each: fields.need_pointer("each")?,
        key: fields.need_pointer("key")?,
        equals: fields.need_text("equals")?.into(),
    };
    fields.done()?;
    Ok(find)
}

fn next(mut fields: Fields) -> Result<Next, Error> {
    let next = Next {
        stage: fields.need_text("stage")?.into(),
        bind: bind(&mut fields, Headers::No)?,
        attempt: fields.flag("attempt")?.unwrap_or(false),
    };
    if next.bind.is_empty() {
        return Err(fields.missing("bind", "at least one placeholder: it says whether the next stage has begun"));
    }
    fields.done()?;
    Ok(next)
}

/// Whether a header can say what a placeholder stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Headers {
    Yes,
    No,
}

fn bind(fields: &mut Fields, headers: Headers) -> Result<BTreeMap<Arc<str>, Taken>, Error> {
    let mut all = BTreeMap::new();
    for (path, name, value) in fields.table("bind")?.into_iter().flat_map(Fields::entries) {
        let taken = match value {
            Value::Table(table) => taken(Fields::new(path, table), &name, headers)?,
            other => Taken::At(place(&path, &other)?),
        };
        all.insert(Arc::from(name), taken);
    }
    Ok(all)
}

fn taken(mut fields: Fields, name: &str, headers: Headers) -> Result<Taken, Error> {
    let like = fields.need_template("like")?;
    if !like.names().contains(name) {
        return Err(fields.invalid("like", format_args!("an address with {{{name}}} in it")));
    }
    let taken = if headers == Headers::Yes && fields.has("header") {
        match header(&mut fields, "header")? {
            Some(header) => Taken::Header(header, like),
            None => return Err(fields.missing("header", "the name of a header")),
        }
    } else {
        Taken::Like(fields.need_place("at")?, like)
    };
    fields.done()?;
    Ok(taken)
}

fn address(mut fields: Fields, trust: Trust) -> Result<Address, Error> {
    let mut address = Address::new(fields.need_template("like")?, fields.need_text("stage")?);
    address.path = fields.template("path")?;
    address.base = fields.text("base")?.map(Arc::from);
    if trust == Trust::File && fields.has("host") {
        let expected = "nothing: a profile in a file sends no credential to another host than that of the address";
        return Err(fields.invalid("host", expected));
    }
    address.host = fields.text("host")?.map(Arc::from);
    fields.done()?;
    Ok(address)
}

fn reads(mut fields: Fields) -> Result<Reads, Error> {
    let mut reads = Reads::default();
    for (path, name, value) in fields.table("headers")?.into_iter().flat_map(Fields::entries) {
        if is_credential(&name) {
            return Err(Error::invalid(&path, "no credential: those come from whoever runs the program"));
        }
        let name: HeaderName = name.parse().map_err(|_| Error::invalid(&path, "the name of a header"))?;
        if is_framing(&name) || is_own(&name) {
            let expected = "no header that frames or routes a request, or that the library sets itself";
            return Err(Error::invalid(&path, expected));
        }
        let value: HeaderValue =
            text(&path, value)?.parse().map_err(|_| Error::invalid(&path, "the value of a header, visible ASCII"))?;
        reads.headers.push((name, value));
    }
    reads.streams = fields.tables("stream")?.into_iter().map(stream).collect::<Result<_, _>>()?;
    fields.done()?;
    Ok(reads)
}

fn stream(mut fields: Fields) -> Result<Stream, Error> {
    let stream = Stream {
        stage: fields.need_text("stage")?.into(),
        kind: fields.need_one_of("kind", &[("sse", StreamKind::Sse), ("websocket", StreamKind::WebSocket)])?,
        path: fields.need_template("path")?,
        first: fields.text("first")?.map(Arc::from),
    };
    if stream.kind == StreamKind::Sse && stream.first.is_some() {
        return Err(fields.invalid("first", "nothing: an event stream is only listened to"));
    }
    fields.done()?;
    Ok(stream)
}

fn pace(mut fields: Fields) -> Result<Pace, Error> {
    let by_default = Pace::default();
    let least = fields.duration("least")?.unwrap_or(by_default.least);
    let most = fields.duration("most")?.unwrap_or_else(|| by_default.most.max(least));
    if least.is_zero() {
        return Err(fields.invalid("least", "more than nothing"));
    }
    if most < least {
        return Err(fields.invalid("most", format_args!("at least {least:?}, as pace.least says")));
    }
    let share = fields.count("share")?.unwrap_or(by_default.share);
    fields.done()?;
    Ok(Pace { share, ..Pace::between(least, most) })
}

fn log(mut fields: Fields) -> Result<Log, Error> {
    let kinds = [
        ("bytes", LogKind::Bytes),
        ("lines", LogKind::Lines),
        ("token", LogKind::Token),
        ("time", LogKind::Time),
        ("whole", LogKind::Whole),
        ("at-end", LogKind::AtEnd),
    ];
    let log = Log {
        kind: fields.need_one_of("kind", &kinds)?,
        stage: fields.need_text("stage")?.into(),
        sources: fields.tables("source")?.into_iter().map(source).collect::<Result<_, _>>()?,
        path: fields.need_template("path")?,
        each: fields.pointer("each")?,
        text: fields.pointer("text")?,
        first: fields.pointer("first")?,
        about: fields.table("about")?.map(about).transpose()?,
        token: fields.pointer("token")?,
        size: header(&mut fields, "size")?,
        more: header(&mut fields, "more")?,
        exact: fields.flag("exact")?.unwrap_or(true),
        tagged: fields.table("tagged")?.map(when).transpose()?,
    };
    fields.done()?;
    Ok(log)
}

fn about(mut fields: Fields) -> Result<LogAbout, Error> {
    let about = LogAbout {
        path: fields.need_template("path")?,
        lines: fields.need_pointer("lines")?,
        complete: fields.need_pointer("complete")?,
    };
    fields.done()?;
    Ok(about)
}

fn source(mut fields: Fields) -> Result<LogSource, Error> {
    let source = LogSource {
        path: fields.need_template("path")?,
        each: fields.need_pointer("each")?,
        total: fields.pointer("total")?,
        bind: bind(&mut fields, Headers::No)?,
        name: fields.pointer("name")?,
    };
    fields.done()?;
    Ok(source)
}

fn submit(mut fields: Fields) -> Result<Submit, Error> {
    let submit = Submit {
        call: call(&mut fields)?,
        stage: fields.need_text("stage")?.into(),
        bind: bind(&mut fields, Headers::Yes)?,
        dedupe: fields.table("dedupe")?.map(dedupe).transpose()?.unwrap_or_default(),
        correlate: fields.table("correlate")?.map(correlate).transpose()?,
    };
    fields.done()?;
    Ok(submit)
}

fn call(fields: &mut Fields) -> Result<Call, Error> {
    const METHODS: [(&str, Method); 4] =
        [("POST", Method::POST), ("PUT", Method::PUT), ("PATCH", Method::PATCH), ("DELETE", Method::DELETE)];
    Ok(Call {
        method: fields.one_of("method", &METHODS)?.unwrap_or(Method::POST),
        path: fields.need_template("path")?,
        rpc: fields.text("rpc")?.map(Arc::from),
    })
}

fn dedupe(mut fields: Fields) -> Result<Dedupe, Error> {
    let dedupe = match fields.need_one_of("by", &[("name", true), ("token", false)])? {
        true => Dedupe::Name { at: fields.need_pointer("at")? },
        false => {
            let at = fields.need_pointer("at")?;
            let window = fields.duration("window")?.ok_or_else(|| fields.missing("window", "a duration"))?;
            Dedupe::Token { at, window }
        }
    };
    fields.done()?;
    Ok(dedupe)
}

fn correlate(mut fields: Fields) -> Result<Correlate, Error> {
    let correlate = Correlate {
        inject: fields.need_pointer("inject")?,
        path: fields.need_template("path")?,
        each: fields.need_pointer("each")?,
        holds: fields.need_pointer("holds")?,
        bind: bind(&mut fields, Headers::No)?,
    };
    fields.done()?;
    Ok(correlate)
}

fn cancel(mut fields: Fields) -> Result<Cancel, Error> {
    let means =
        [("queued", Acknowledged::Queued), ("stopped", Acknowledged::Stopped), ("nothing", Acknowledged::Nothing)];
    let cancel = Cancel {
        stage: fields.need_text("stage")?.into(),
        call: call(&mut fields)?,
        acknowledged: fields.need_one_of("acknowledged", &means)?,
        force: match fields.table("force")? {
            Some(mut force) => {
                let call = call(&mut force)?;
                force.done()?;
                Some(call)
            }
            None => None,
        },
    };
    fields.done()?;
    Ok(cancel)
}

fn webhook(mut fields: Fields) -> Result<Webhook, Error> {
    let schemes = [
        ("hmac-sha256", Scheme::HmacSha256),
        ("timestamped-hmac-sha256", Scheme::TimestampedHmacSha256),
        ("token", Scheme::Token),
    ];
    let webhook = Webhook {
        scheme: fields.need_one_of("scheme", &schemes)?,
        header: header(&mut fields, "header")?.ok_or_else(|| fields.missing("header", "the name of a header"))?,
        delivery_id: header(&mut fields, "delivery_id")?,
        redelivers: fields.flag("redelivers")?.unwrap_or(false),
        replies: fields.need_one_of("replies", &[("status", Replies::Status), ("accept", Replies::Accept)])?,
    };
    fields.done()?;
    Ok(webhook)
}

fn header(fields: &mut Fields, field: &'static str) -> Result<Option<HeaderName>, Error> {
    fields.parsed(field, "the name of a header")
}

fn text(path: &str, value: Value) -> Result<String, Error> {
    match value {
        Value::String(text) => Ok(text),
        other => Err(Error::invalid(path, format_args!("a string, found {}", kind(&other)))),
    }
}
