//! Queries of URLs.

use url::Url;

/// Sets parameters of the query; those of the same names are replaced.
pub(super) fn set<'a>(url: &mut Url, parameters: impl IntoIterator<Item = (&'a str, &'a str)>) {
    let parameters: Vec<(&str, &str)> = parameters.into_iter().collect();
    let others: Vec<(String, String)> = url
        .query_pairs()
        .filter(|(name, _)| parameters.iter().all(|(set, _)| name != set))
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect();
    url.query_pairs_mut().clear().extend_pairs(others).extend_pairs(parameters);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_replaces_what_has_its_name() {
        let mut url = Url::parse("http://ci.example/log?start=1&a=b%20c&start=2#x").unwrap();
        set(&mut url, [("start", "3&4"), ("limit", "5")]);
        assert_eq!(url.as_str(), "http://ci.example/log?a=b+c&start=3%264&limit=5#x");
    }
}
