use outlast::Command;
use outlast::server::{Events, RpcScope};

#[outlast::service]
trait BuildFarm {
    fn restart(&self, id: u64, why: String) -> Command;
}

struct Farm;

#[outlast::handlers(BuildFarm)]
impl Farm {
    async fn restart(&self, _rpc: &RpcScope, _id: u64, _why: Vec<u8>) -> Events {
        Events::none()
    }
}

fn main() {}
