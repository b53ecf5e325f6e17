#[outlast::service]
struct BuildFarm;

#[outlast::handlers(BuildFarm)]
fn farm() {}

fn main() {}
