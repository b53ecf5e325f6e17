use outlast::Observable;
use outlast::server::{Cell, Live};

#[outlast::service]
trait BuildFarm {
    fn build(&self, id: u64) -> Observable<String>;
}

struct Farm(Cell<u64>);

#[outlast::handlers(BuildFarm)]
impl Farm {
    fn build(&self, _id: u64) -> Live<u64> {
        self.0.live()
    }
}

fn main() {}
