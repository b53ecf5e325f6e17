use std::rc::Rc;

use outlast::Command;
use outlast::server::Events;

#[outlast::service]
trait BuildFarm {
    fn restart(&self, id: u64) -> Command;
}

struct Farm;

#[outlast::handlers(BuildFarm)]
impl Farm {
    async fn restart(&self, id: u64) -> Events {
        let id = Rc::new(id);
        std::future::ready(()).await;
        drop(id);
        Events::none()
    }
}

fn main() {}
