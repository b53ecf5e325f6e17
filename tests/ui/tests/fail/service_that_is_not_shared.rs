use std::cell::Cell;

use outlast::Command;
use outlast::server::Events;

#[outlast::service]
trait BuildFarm {
    fn restart(&self, id: u64) -> Command;
}

struct Farm {
    _builds: Cell<u64>,
}

#[outlast::handlers(BuildFarm)]
impl Farm {
    async fn restart(&self, _id: u64) -> Events {
        Events::none()
    }
}

fn main() {}
