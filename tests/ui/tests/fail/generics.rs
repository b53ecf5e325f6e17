use outlast::Command;

#[outlast::service]
trait BuildFarm {
    fn list(&self) -> Command;
    fn restart<T>(&self, id: T) -> Command;
    fn note<'a>(&'a self, id: u64) -> Command;
    fn stop(&self) -> Command
    where
        Self: Send;
}

#[outlast::service]
trait Generic<T> {
    fn restart(&self, id: T) -> Command;
}

fn main() {}
