//! The session cookie: a client without knowledge of read promises reads its own writes and never
//! goes back in time, on whichever node. `placement-session=EPOCH.INDEX` is the `Placement-Index`
//! of its latest answer.
//!
//! The cookie holds a log position and nothing about the client, so it is neither secret nor a
//! credential. An invalid cookie is ignored, as clients cannot repair cookies.

use http::HeaderMap;
use http::header::{COOKIE, HeaderValue, SET_COOKIE};

use super::consistency::parse_token;
use crate::backend::PlacementIndex;

const NAME: &str = "placement-session";

/// The position in the request's cookie.
pub(super) fn read(headers: &HeaderMap) -> Option<PlacementIndex> {
    let given = headers.get_all(COOKIE).iter();
    let texts = given.filter_map(|value| value.to_str().ok());
    let pairs = texts.flat_map(|text| text.split(';'));
    let named = pairs.filter_map(|pair| pair.split_once('='));
    let mut tokens = named.filter(|(name, _)| name.trim() == NAME);
    tokens.find_map(|(_, token)| parse_token(token))
}

/// Sets the cookie to the position of this answer, or to the request's position if that is later.
pub(super) fn write(
    response: &mut HeaderMap,
    request: &HeaderMap,
    index: PlacementIndex,
    path: &str,
) {
    let seen = read(request).filter(|seen| seen.epoch == index.epoch);
    let PlacementIndex { epoch, index } = seen.max(Some(index)).unwrap_or(index);
    let path = if path.is_empty() { "/" } else { path };
    let text = format!("{NAME}={epoch}.{index}; Path={path}; HttpOnly; SameSite=Lax");
    if let Ok(value) = HeaderValue::try_from(text) {
        response.append(SET_COOKIE, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(epoch: u64, index: u64) -> PlacementIndex {
        PlacementIndex { epoch, index }
    }

    fn request(cookies: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for cookie in cookies {
            headers.append(COOKIE, cookie.parse().unwrap());
        }
        headers
    }

    #[test]
    fn cookie_is_found_among_others() {
        for cookies in [
            &["placement-session=7.12"][..],
            &["a=b; placement-session=7.12;c=d"],
            &["a=b", "placement-session= 7.12"],
            &["placement-session=nonsense; placement-session=7.12"],
        ] {
            assert_eq!(read(&request(cookies)), Some(index(7, 12)), "{cookies:?}");
        }
        for cookies in [
            &[][..],
            &["placement-session"],
            &["x=7.12"],
            &["placement-session=7"],
        ] {
            assert_eq!(read(&request(cookies)), None, "{cookies:?}");
        }
    }

    #[test]
    fn session_never_goes_back_within_one_history() {
        for (cookie, expected) in [
            (
                "placement-session=7.12",
                "placement-session=7.12; Path=/p; HttpOnly; SameSite=Lax",
            ),
            (
                "placement-session=7.3",
                "placement-session=7.5; Path=/p; HttpOnly; SameSite=Lax",
            ),
            (
                "placement-session=9.12",
                "placement-session=7.5; Path=/p; HttpOnly; SameSite=Lax",
            ),
        ] {
            let mut headers = HeaderMap::new();
            write(&mut headers, &request(&[cookie]), index(7, 5), "/p");
            assert_eq!(headers[SET_COOKIE], expected);
        }
    }
}
