use outlast::Command;
use outlast::server::{Events, RpcScope};

#[outlast::service]
trait BuildFarm {
    fn restart(&self, id: u64) -> Command;
}

struct Farm;

#[outlast::handlers(BuildFarm, BuildFarm)]
impl Farm {
    const LIMIT: u64 = 1;
    async fn restart(&mut self, _id: u64, _rpc: &RpcScope) -> Events {
        loop {}
    }
    async fn again(&self, _rpc: &mut RpcScope, _id: impl Into<u64>) -> Events {
        loop {}
    }
    async unsafe fn generic<T>(&self, _id: T) -> Events {
        loop {}
    }
    fn helper() {}
}

struct Another;

#[outlast::handlers(BuildFarm)]
impl BuildFarm for Another {
    fn restart(&self, _id: u64) -> Command {
        loop {}
    }
}

fn main() {
    let _ = BuildFarmServer::new(Farm);
}
