use outlast::Command;
use outlast::server::Events;

#[outlast::service]
trait BuildFarm {
    fn restart(&self, id: u64) -> Command;
}

struct Farm;

#[outlast::handlers(BuildFarm)]
impl Farm {
    async fn restart(&self, _name: &String, _id: u64) -> Events {
        Events::none()
    }
}

fn main() {}
