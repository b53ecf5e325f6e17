//! A condition on an answer, in jq, without the environment, files or further input.

use jaq_core::data::JustLut;
use jaq_core::load::{Arena, File, Loader};
use jaq_core::{Compiler, Ctx, Native, Vars, unwrap_valr};
use jaq_json::{Val, read};
use serde::{Deserialize, Serialize};

type Data = JustLut<Val>;

/// What an expression may not ask for: it is about the answer alone, and ends nothing.
const REFUSED: [&str; 3] = ["env", "halt", "halt_error"];

/// What the conditions say of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Verdict {
    /// The work goes on.
    Running,
    /// It ended well.
    Succeeded,
    /// It ended badly.
    Failed,
    /// Neither yes nor no, with the reason. It never ends a wait (R3).
    Unreadable(String),
}

/// The conditions of the command line.
pub(crate) struct Conditions {
    /// Whether the work is over.
    done: Predicate,
    /// Whether it ended well; without it, every end is a good one.
    ok: Option<Predicate>,
}

impl Conditions {
    /// Compiles both; an error names the flag, and what was expected.
    pub(crate) fn compile(done: &str, ok: Option<&str>) -> Result<Self, (&'static str, String)> {
        let done = Predicate::compile(done).map_err(|e| ("--done", e))?;
        let ok = ok.map(Predicate::compile).transpose().map_err(|e| ("--ok", e))?;
        Ok(Self { done, ok })
    }

    /// What they say of `body`, which is JSON.
    pub(crate) fn judge(&self, body: &str) -> Verdict {
        match self.done.holds(body) {
            Ok(false) => Verdict::Running,
            Ok(true) => match self.ok.as_ref().map_or(Ok(true), |ok| ok.holds(body)) {
                Ok(true) => Verdict::Succeeded,
                Ok(false) => Verdict::Failed,
                Err(why) => Verdict::Unreadable(format!("--ok: {why}")),
            },
            Err(why) => Verdict::Unreadable(format!("--done: {why}")),
        }
    }
}

/// A compiled expression.
struct Predicate {
    filter: jaq_core::compile::Filter<Native<Data>>,
}

impl Predicate {
    /// Compiles `text`; an error says what was expected and where.
    fn compile(text: &str) -> Result<Self, String> {
        let defs = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs());
        let defs = defs.filter(|def| !REFUSED.contains(&def.name));
        let funs = jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs());
        let funs = funs.filter(|(name, ..)| !REFUSED.contains(name));
        let arena = Arena::default();
        let modules = Loader::new(defs)
            .load(&arena, File { code: text, path: () })
            .map_err(|_| "expected a jq expression".to_owned())?;
        let filter = Compiler::default().with_funs(funs).compile(modules).map_err(|errors| {
            let undefined = errors.first().and_then(|(_, errors)| errors.first());
            match undefined {
                Some((name, kind)) => format!("expected a known {}, got `{name}`", kind.as_str()),
                None => "expected a jq expression".to_owned(),
            }
        })?;
        Ok(Self { filter })
    }

    /// What it says of `body`, which is JSON; an error says what was expected.
    fn holds(&self, body: &str) -> Result<bool, String> {
        let input = read::parse_single(body.as_bytes()).map_err(|e| format!("expected JSON: {e}"))?;
        let ctx = Ctx::<Data>::new(&self.filter.lut, Vars::new([]));
        let mut out = self.filter.id.run((ctx, input)).map(unwrap_valr);
        match (out.next(), out.next()) {
            (Some(Ok(Val::Bool(holds))), None) => Ok(holds),
            (Some(Ok(Val::Bool(_))), Some(_)) => Err("expected one boolean, got several results".into()),
            (Some(Ok(Val::Null)), _) => Err("expected a boolean, got null".into()),
            (Some(Ok(other)), _) => Err(format!("expected a boolean, got {}", kind(&other))),
            (Some(Err(e)), _) => Err(format!("the expression failed: {e}")),
            (None, _) => Err("expected a boolean, got nothing".into()),
        }
    }
}

/// What a value is called in JSON.
fn kind(value: &Val) -> &'static str {
    match value {
        Val::Null => "null",
        Val::Bool(_) => "a boolean",
        Val::Num(_) => "a number",
        Val::BStr(_) | Val::TStr(_) => "a string",
        Val::Arr(_) => "an array",
        Val::Obj(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(expression: &str, body: &str) -> Result<bool, String> {
        Predicate::compile(expression)?.holds(body)
    }

    #[test]
    fn an_expression_of_the_standard_definitions_is_asked() {
        assert_eq!(holds(r#".status == "completed""#, r#"{"status":"completed"}"#), Ok(true));
        assert_eq!(holds(r#".status == "completed""#, r#"{"status":"queued"}"#), Ok(false));
        assert_eq!(holds("[.jobs[] | .state] | all(. == 2)", r#"{"jobs":[{"state":2},{"state":2}]}"#), Ok(true));
        assert_eq!(holds(r#".name | test("^re")"#, r#"{"name":"release"}"#), Ok(true));
        assert_eq!(holds("any(.builds[]; .complete)", r#"{"builds":[]}"#), Ok(false));
    }

    /// R3: null, an error and what is no boolean are unreadable, never an end.
    #[test]
    fn r3_what_is_no_boolean_is_unreadable() {
        for (expression, said) in [
            (".done", "expected a boolean, got null"),
            (".status", "expected a boolean, got a string"),
            (".count", "expected a boolean, got a number"),
            (".status[0].x", "the expression failed"),
            ("error(\"no\")", "the expression failed"),
            ("empty", "expected a boolean, got nothing"),
            (".count == 1, .count == 2", "expected one boolean, got several results"),
        ] {
            let got = holds(expression, r#"{"status":"x","count":1}"#).unwrap_err();
            assert!(got.starts_with(said), "{expression}: {got}");
        }
        assert!(holds(".a == 1", "<html>").unwrap_err().starts_with("expected JSON"));
        assert!(holds(".a == 1", r#"{"a":1"#).unwrap_err().starts_with("expected JSON"));
    }

    #[test]
    fn neither_the_environment_nor_files_can_be_asked_for() {
        for expression in [
            "env.HOME == null",
            "$ENV.HOME == null",
            "halt",
            "halt_error",
            "input == 1",
            "include \"x\"; true",
            "import \"x\" as x; true",
            "input_filename == null",
        ] {
            assert!(Predicate::compile(expression).is_err(), "{expression}");
        }
        assert_eq!(Predicate::compile(".a ==").err().unwrap(), "expected a jq expression");
        assert_eq!(Predicate::compile("nosuch").err().unwrap(), "expected a known filter, got `nosuch`");
    }

    /// R3: only a yes ends it, and only a no of `--ok` is a failure.
    #[test]
    fn r3_only_a_boolean_is_a_verdict() {
        let judge = |ok, body| Conditions::compile(".done", ok).unwrap_or_else(|e| panic!("{e:?}")).judge(body);
        let ok = Some(".good");
        assert_eq!(judge(ok, r#"{"done":false}"#), Verdict::Running);
        assert_eq!(judge(ok, r#"{"done":true,"good":true}"#), Verdict::Succeeded);
        assert_eq!(judge(ok, r#"{"done":true,"good":false}"#), Verdict::Failed);
        assert_eq!(judge(None, r#"{"done":true}"#), Verdict::Succeeded);
        for body in [r#"{"done":null}"#, r#"{"done":true,"good":null}"#, r#"[]"#, r#"{"done":"true"}"#] {
            assert!(matches!(judge(ok, body), Verdict::Unreadable(_)), "{body}");
        }
    }

    /// An expression without an end is asked for two results, and no more.
    #[test]
    fn no_more_is_computed_than_is_needed() {
        assert_eq!(holds("repeat(true)", "1").unwrap_err(), "expected one boolean, got several results");
        assert_eq!(holds("any(range(1e12); . == 3)", "1"), Ok(true));
    }
}
