use outlast::Command;

#[outlast::service]
trait BuildFarm {
    fn restart(&self, id: u64) -> Command;
}

struct Farm;

fn main() {
    let _ = BuildFarmServer::new(Farm);
}
