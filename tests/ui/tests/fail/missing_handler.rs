use outlast::server::{Events, Live};
use outlast::{Command, Observable};

#[outlast::service]
trait BuildFarm {
    fn build(&self, id: u64) -> Observable<String>;
    fn restart(&self, id: u64) -> Command;
}

struct Farm;

#[outlast::handlers(BuildFarm)]
impl Farm {
    async fn restart(&self, id: u64) -> Events {
        drop(id);
        Events::none()
    }
}

fn main() {
    let _: Option<Live<u8>> = None;
    let _ = BuildFarmServer::new(Farm);
}
