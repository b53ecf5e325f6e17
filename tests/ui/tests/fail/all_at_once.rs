use outlast::Command;

#[outlast::service(name = "build farm", version = "two", retries = 3)]
unsafe trait BuildFarm {
    fn list(&self) -> Command;
    const LIMIT: u64;
    type Id;
    async fn build(&self, id: u64) -> Command;
    fn restart(&self, (id, _): (u64, u64)) -> Command;
    fn stop(self, #[key(1)] id: u64) -> Command;
    fn note(id: u64) -> Command;
    #[key]
    fn keyed(&self, #[cfg(all())] id: u64) -> Command;
    #[command(twice)]
    fn body(&self) -> Command {
        loop {}
    }
    #[wire(name = "one")]
    fn first(&self, id: u64, #[wire(name = "id")] other: u64) -> Command;
    fn one(&self, #[other] id: u64) -> Command;
    #[wire("two")]
    fn second(&self) -> Command;
}

fn main() {}
