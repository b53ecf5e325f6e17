use outlast::{Command, Observable};

#[outlast::service]
trait Farm: Clone + Send {
    fn plant(&self, a: Self) -> Command;
    fn grow(&self, b: Vec<Self>) -> Command;
    fn grown(&self) -> Observable<Self>;
    fn mow(&self) -> Command;
    fn Mow(&self) -> Command;
    fn RAKE(&self) -> Command;
    fn r#from(&self) -> Command;
    fn grass(&self) -> Observable<u8>;
}

fn main() {}
