//! Whether the parts of a profile fit together.

mod log;

use std::collections::BTreeSet;

use super::{Cancel, Order, Profile, Question, Stage, Submit, Template, When, Word};
use crate::error::Error;

pub(super) fn check(profile: &Profile) -> Result<(), Error> {
    if !is_name(&profile.name) {
        return Err(Error::invalid("name", NAME));
    }
    if profile.stages.is_empty() {
        return Err(Error::invalid("stage", "at least one stage"));
    }
    for (i, stage) in profile.stages.iter().enumerate() {
        let path = format!("stage[{i}].name");
        if !is_name(&stage.name) {
            return Err(Error::invalid(&path, NAME));
        }
        if profile.stages[..i].iter().any(|earlier| earlier.name == stage.name) {
            return Err(Error::invalid(&path, "a name that no stage before has"));
        }
    }
    for (i, stage) in profile.stages.iter().enumerate() {
        self::stage(profile, stage, &format!("stage[{i}]"))?;
    }
    for (i, address) in profile.addresses.iter().enumerate() {
        let path = format!("address[{i}]");
        let stage = named(profile, &address.stage, &format!("{path}.stage"))?;
        let mut given = address.like.names();
        given.insert("base");
        let read_at = address.path.as_ref().unwrap_or(&stage.path);
        bound(read_at, &given, &format!("{path}.like"))?;
        if let Some(host) = &address.host {
            let holes = host.split('.').filter_map(|label| label.strip_prefix('{')?.strip_suffix('}'));
            if host.is_empty() || !address.like.has_host() || !holes.into_iter().all(|hole| given.contains(hole)) {
                let expected = "a host, for an address whose own host is stated, with placeholders of that only";
                return Err(Error::invalid(&format!("{path}.host"), expected));
            }
        }
    }
    for (i, stream) in profile.read.streams.iter().enumerate() {
        let path = format!("read.stream[{i}]");
        let stage = named(profile, &stream.stage, &format!("{path}.stage"))?;
        bound(&stream.path, &given(stage), &format!("{path}.path"))?;
    }
    if let Some(log) = &profile.log {
        log::log(profile, log)?;
    }
    if let Some(submit) = &profile.submit {
        self::submit(profile, submit)?;
    }
    for (i, cancel) in profile.cancel.iter().enumerate() {
        self::cancel(profile, cancel, &format!("cancel[{i}]"))?;
    }
    Ok(())
}

fn stage(profile: &Profile, stage: &Stage, path: &str) -> Result<(), Error> {
    if stage.path.has_host() {
        return Err(Error::invalid(&format!("{path}.path"), "a path: the host is that of the user's address"));
    }
    for (i, question) in stage.status.iter().enumerate() {
        self::question(question, &format!("{path}.status[{i}]"))?;
        if question.when.is_none() && i + 1 < stage.status.len() {
            let expected = "when it applies: without that, no question after it is ever asked";
            return Err(Error::invalid(&format!("{path}.status[{i}].when"), expected));
        }
    }
    let has = |list: fn(&Question) -> &Vec<Word>| stage.status.iter().any(|question| !list(question).is_empty());
    if stage.status.is_empty() && stage.next.is_empty() {
        return Err(Error::invalid(&format!("{path}.status"), "how its status is read, or a next stage"));
    }
    let decides = stage.next.iter().all(|next| next.attempt);
    for (field, there) in [("ok", has(|q| &q.ok)), ("failed", has(|q| &q.failed))] {
        if decides && !there {
            let expected = format!("at least one word for {field}: no stage follows that could decide");
            return Err(Error::invalid(&format!("{path}.status"), expected));
        }
    }
    let given = given(stage);
    if let Some(find) = &stage.find
        && (stage.path.names().contains(&*find.equals) || find.equals.is_empty())
    {
        return Err(Error::invalid(&format!("{path}.find.equals"), "a placeholder of an earlier stage"));
    }
    for (i, next) in stage.next.iter().enumerate() {
        let path = format!("{path}.next[{i}]");
        let to = named(profile, &next.stage, &format!("{path}.stage"))?;
        let mut given = given.clone();
        given.extend(next.bind.keys().map(|name| &**name));
        bound(&to.path, &given, &format!("{path}.bind"))?;
        meant(to, &given, &format!("{path}.bind"))?;
    }
    if let Some(missing) = &stage.missing {
        let path = format!("{path}.missing");
        let to = named(profile, missing, &path)?;
        if to.name == stage.name {
            return Err(Error::invalid(&path, "another stage"));
        }
        bound(&to.path, &given, &path)?;
        meant(to, &given, &path)?;
    }
    if let Some(vanishes) = stage.vanishes_after
        && (vanishes.is_zero() || vanishes / 2 < profile.pace.least)
    {
        let expected = format!("at least {:?}, twice pace.least: its end is missed otherwise", 2 * profile.pace.least);
        return Err(Error::invalid(&format!("{path}.vanishes_after"), expected));
    }
    match &stage.order {
        Order::Monotone(_) | Order::Coarse(_) if stage.status.is_empty() => {
            Err(Error::invalid(&format!("{path}.order"), "nothing, for a stage without a status"))
        }
        Order::Monotone(_) | Order::Coarse(_) | Order::Opaque => Ok(()),
    }
}

fn question(question: &Question, path: &str) -> Result<(), Error> {
    let mut seen: Vec<(&str, &Word)> = Vec::new();
    for (field, list) in question.lists() {
        for word in list {
            let field_path = format!("{path}.{field}");
            if let Some((_, first)) = seen.first()
                && !first.is_like(word)
            {
                return Err(Error::invalid(&field_path, format_args!("{}, as the words before", first.kind())));
            }
            if let Some((other, _)) = seen.iter().find(|(_, each)| *each == word) {
                return Err(Error::invalid(&field_path, format_args!("no \"{word}\", which {other} has already")));
            }
            seen.push((field, word));
        }
    }
    if seen.is_empty() {
        return Err(Error::invalid(path, "words of at least one of queued, running, parked, ok, failed, canceled"));
    }
    match &question.when {
        Some(When { is, .. }) if is.is_empty() => Err(Error::invalid(&format!("{path}.when.is"), "at least one word")),
        Some(_) | None => Ok(()),
    }
}

fn submit(profile: &Profile, submit: &Submit) -> Result<(), Error> {
    let stage = named(profile, &submit.stage, "submit.stage")?;
    let mut given = submit.call.path.names();
    given.extend(submit.bind.keys().map(|name| &**name));
    bound(&stage.path, &given, "submit.bind")?;
    if let Some(correlate) = &submit.correlate {
        let mut given = submit.call.path.names();
        given.insert("since");
        bound(&correlate.path, &given, "submit.correlate.path")?;
        given.extend(correlate.bind.keys().map(|name| &**name));
        // What the list finds is the work itself, which may be a stage further on.
        if !profile.stages.iter().any(|stage| stage.path.names().is_subset(&given)) {
            return Err(Error::invalid("submit.correlate.bind", "what the path of a stage needs"));
        }
    }
    Ok(())
}

fn cancel(profile: &Profile, cancel: &Cancel, path: &str) -> Result<(), Error> {
    let stage = named(profile, &cancel.stage, &format!("{path}.stage"))?;
    let given = given(stage);
    bound(&cancel.call.path, &given, &format!("{path}.path"))?;
    cancel.force.as_ref().map_or(Ok(()), |force| bound(&force.path, &given, &format!("{path}.force.path")))
}

/// What is known once a stage was read.
fn given(stage: &Stage) -> BTreeSet<&str> {
    let mut names = stage.path.names();
    names.extend(stage.bind.keys().map(|name| &**name));
    names.extend(stage.find.iter().map(|find| &*find.equals));
    names
}

fn named<'a>(profile: &'a Profile, name: &str, path: &str) -> Result<&'a Stage, Error> {
    profile.stage(name).ok_or_else(|| {
        let known: Vec<&str> = profile.stages.iter().map(|stage| &*stage.name).collect();
        Error::invalid(path, format_args!("the name of a stage: {}", known.join(", ")))
    })
}

/// Each placeholder of a path is among what is given.
fn bound(template: &Template, given: &BTreeSet<&str>, path: &str) -> Result<(), Error> {
    match template.names().into_iter().find(|name| !given.contains(name)) {
        Some(name) => Err(Error::invalid(path, format_args!("something that gives {{{name}}} of {template}"))),
        None => Ok(()),
    }
}

/// What a list is searched by is among what is given.
fn meant(stage: &Stage, given: &BTreeSet<&str>, path: &str) -> Result<(), Error> {
    match &stage.find {
        Some(find) if !given.contains(&*find.equals) => Err(Error::invalid(
            path,
            format_args!("something that gives {{{}}}, by which stage {} is found", find.equals, stage.name),
        )),
        Some(_) | None => Ok(()),
    }
}

const NAME: &str = "a name of lower-case letters, digits and dashes";

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}
