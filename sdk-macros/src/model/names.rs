//! Names made of names.

use syn::Ident;
use syn::ext::IdentExt;

/// `BuildFarm` as `build_farm`, `HTTPFarm` as `http_farm`.
pub(super) fn snake_case(name: &Ident) -> String {
    let letters: Vec<char> = name.unraw().to_string().chars().collect();
    let mut snake = String::new();
    for (i, letter) in letters.iter().enumerate() {
        let after_lower = i > 0 && !letters[i - 1].is_uppercase() && letters[i - 1] != '_';
        let before_lower = i > 0 && letters[i - 1] != '_' && letters.get(i + 1).is_some_and(|next| next.is_lowercase());
        if letter.is_uppercase() && (after_lower || before_lower) {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

/// `submit_build` as `SUBMIT_BUILD`.
pub(super) fn constant(name: &Ident) -> Ident {
    Ident::new(&name.unraw().to_string().to_uppercase(), name.span())
}

#[cfg(test)]
mod tests {
    use proc_macro2::Span;

    use super::*;

    #[test]
    fn names_are_split_where_a_word_begins() {
        let snake = |name| snake_case(&Ident::new(name, Span::call_site()));
        assert_eq!(
            ["BuildFarm", "HTTPFarm", "A", "Farm2", "Build_Farm"].map(snake),
            ["build_farm", "http_farm", "a", "farm2", "build_farm"]
        );
    }
}
