use outlast::Command;
use outlast::server::RpcScope;

#[outlast::service]
trait BuildFarm {
    fn list(&self) -> Command;
    fn restart(&self, rpc: &RpcScope, id: u64) -> Command;
}

fn main() {
    let _: Option<RpcScope> = None;
}
