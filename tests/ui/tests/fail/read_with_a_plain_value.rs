use outlast::Observable;

#[outlast::service]
trait BuildFarm {
    fn build(&self, id: u64) -> Observable<String>;
}

struct Farm;

#[outlast::handlers(BuildFarm)]
impl Farm {
    fn build(&self, id: u64) -> String {
        id.to_string()
    }
}

fn main() {}
