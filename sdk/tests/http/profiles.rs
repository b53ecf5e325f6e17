//! Files of profiles come from others, with a repository say: what they hold takes no time and says little.

use outlast::profile::Profile;
use url::Url;

use crate::world::in_time;

fn file(like: &str) -> String {
    format!(
        "name = \"x\"\n[[stage]]\nname = \"a\"\npath = \"/a/{{n}}\"\n[[stage.status]]\nat = \"/s\"\nok = [\"y\"]\n\
         failed = [\"n\"]\n[[address]]\nlike = \"{like}\"\nstage = \"a\"\n"
    )
}

/// A template of many wildcards is refused, and the most that a file may have take no time against a long address.
#[test]
fn the_wildcards_of_a_file_take_no_time() {
    let many = Profile::parse(&file(&format!("{}/{{n}}/end", "/{_:any}".repeat(24)))).unwrap_err().to_string();
    assert!(many.starts_with("address[0].like: expected at most 4 "), "{many}");
    let most = Profile::parse(&file(&format!("{}/{{n}}/end", "/{_:any}".repeat(4)))).unwrap();
    let address = |end: &str| Url::parse(&format!("http://h{}{end}", "/s".repeat(1_000))).unwrap();
    let (none, one) = (address(""), address("/end"));
    let (none, one) = in_time(move || (most.locate(&none).is_ok(), most.locate(&one).is_ok()));
    assert_eq!((none, one), (false, true));
}

/// Deep and long files are refused, in few words.
#[test]
fn hostile_files_are_refused() {
    for file in [
        format!("name = \"x\"\na = {}", "[".repeat(100_000)),
        format!("name = \"x\"\na = {}", "{a=".repeat(100_000)),
        format!("{} = 1", "a.".repeat(50_000) + "a"),
        format!("name = \"x\"\n[[stage]]\nname = \"a\"\npath = \"{}\"", "/x".repeat(200_000)),
    ] {
        let refused = in_time(move || Profile::parse(&file).unwrap_err().to_string());
        assert!(refused.len() < 2_000, "{} bytes", refused.len());
    }
}
