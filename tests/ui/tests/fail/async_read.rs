use outlast::Observable;
use outlast::server::{Cell, Live};

#[outlast::service]
trait BuildFarm {
    fn build(&self, id: u64) -> Observable<String>;
}

struct Farm(Cell<String>);

#[outlast::handlers(BuildFarm)]
impl Farm {
    async fn build(&self, _id: u64) -> Live<String> {
        self.0.live()
    }
}

fn main() {}
