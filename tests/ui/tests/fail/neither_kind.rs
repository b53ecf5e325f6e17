#[outlast::service]
trait BuildFarm {
    fn build(&self, id: u64) -> String;
    fn restart(&self, id: u64);
    fn list(&self) -> impl Iterator<Item = u64>;
}

fn main() {}
