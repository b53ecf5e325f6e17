use outlast::Observable;

#[outlast::service]
trait BuildFarm {
    fn build(&self, #[key] id: u64) -> Observable<String>;
    #[command(without_dedupe)]
    fn queue(&self) -> Observable<String>;
}

fn main() {}
