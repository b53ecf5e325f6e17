#[service(crate = "crate::vendor::outlast", name = "greetings")]
trait Greeter: Send + Sync {
    fn greeting(&self, r#type: String) -> Read<String>;
}

#[handlers(api::Greeter, crate = "crate::vendor::outlast")]
impl Hall {
    fn greeting(&self, _: String) -> Result<Live<String>, Error> {
        Ok(self.greeting.live())
    }
}
