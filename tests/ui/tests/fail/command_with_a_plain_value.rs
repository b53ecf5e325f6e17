use outlast::Command;

#[outlast::service]
trait BuildFarm {
    fn restart(&self, id: u64) -> Command;
    fn stop(&self) -> Command;
}

struct Farm;

#[outlast::handlers(BuildFarm)]
impl Farm {
    async fn restart(&self, id: u64) -> Result<String, outlast::Error> {
        Ok(id.to_string())
    }

    async fn stop(&self) {}
}

fn main() {}
