use outlast::Command;

pub struct Local;

#[outlast::service]
trait BuildFarm {
    fn restart(&self, id: Local) -> Command;
}

fn main() {}
