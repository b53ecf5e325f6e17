use outlast::Command;

#[outlast::service]
trait BuildFarm {
    fn list(&self) -> Command;
    fn new(&self, id: u64) -> Command;
    fn with_key(&self, id: u64) -> Command;
    fn attempt(&self, id: u64) -> Command;
}

fn main() {}
