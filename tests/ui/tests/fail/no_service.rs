trait BuildFarm {}

struct Farm;
struct Other;

#[outlast::handlers(BuildFarm)]
impl Farm {}

#[outlast::handlers]
impl Other {}

fn main() {}
