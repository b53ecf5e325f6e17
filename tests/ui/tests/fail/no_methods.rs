#[outlast::service]
trait BuildFarm {}

fn main() {}
