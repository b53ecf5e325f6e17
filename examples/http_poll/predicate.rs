//! A condition on an answer, in jq, without the environment, files or further input.

use std::fmt;

use jaq_core::data::JustLut;
use jaq_core::load::{Arena, File, Loader};
use jaq_core::{Compiler, Ctx, Native, Vars, unwrap_valr};
use jaq_json::{Val, read};

type Data = JustLut<Val>;

/// What an expression may not ask for: it is about the answer alone, and ends nothing.
const REFUSED: [&str; 3] = ["env", "halt", "halt_error"];

/// A compiled expression.
pub(crate) struct Predicate {
    filter: jaq_core::compile::Filter<Native<Data>>,
}

/// Why an answer is neither yes nor no. It never ends a wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unreadable(String);

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Predicate {
    /// Compiles `text`; an error says what was expected and where.
    pub(crate) fn compile(text: &str) -> Result<Self, String> {
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

    /// What it says of `body`, which is JSON.
    pub(crate) fn holds(&self, body: &[u8]) -> Result<bool, Unreadable> {
        let input = read::parse_single(body).map_err(|e| Unreadable(format!("not JSON: {e}")))?;
        let ctx = Ctx::<Data>::new(&self.filter.lut, Vars::new([]));
        let mut out = self.filter.id.run((ctx, input)).map(unwrap_valr);
        match (out.next(), out.next()) {
            (Some(Ok(Val::Bool(holds))), None) => Ok(holds),
            (Some(Ok(Val::Bool(_))), Some(_)) => Err(Unreadable("expected one boolean, got several results".into())),
            (Some(Ok(Val::Null)), _) => Err(Unreadable("expected a boolean, got null".into())),
            (Some(Ok(other)), _) => Err(Unreadable(format!("expected a boolean, got {}", kind(&other)))),
            (Some(Err(e)), _) => Err(Unreadable(format!("the expression failed: {e}"))),
            (None, _) => Err(Unreadable("expected a boolean, got nothing".into())),
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
        Predicate::compile(expression)?.holds(body.as_bytes()).map_err(|e| e.to_string())
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
        assert!(holds(".a == 1", "<html>").unwrap_err().starts_with("not JSON"));
        assert!(holds(".a == 1", r#"{"a":1"#).unwrap_err().starts_with("not JSON"));
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
}
