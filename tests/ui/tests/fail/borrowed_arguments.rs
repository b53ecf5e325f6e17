use std::borrow::Cow;

use outlast::Command;

#[outlast::service]
trait BuildFarm {
    fn list(&self) -> Command;
    fn restart(&self, id: &str) -> Command;
    fn rename(&self, id: u64, name: Option<&'static str>) -> Command;
    fn note(&self, id: u64, note: Cow<'_, str>) -> Command;
    fn all(&self, ids: impl Iterator<Item = u64>) -> Command;
}

fn main() {
    let _: Option<Cow<'static, str>> = None;
}
