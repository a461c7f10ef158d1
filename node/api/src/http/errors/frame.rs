//! The text around an error's message.
//!
//! WebOb, the library behind the reference implementation, frames each error: the status's standard
//! sentence, an empty line, the message on one line. Nova matches on some of these sentences;
//! osc-placement shows the text after the last newline. Source: the answers of OpenStack Placement
//! 16.0.0 with WebOb 1.8.11.

use std::borrow::Cow;

use http::StatusCode;

/// The parts of a request that errors show.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestParts<'a> {
    /// The method, for 405.
    pub method: &'a str,
    /// `accept`, for 406.
    pub(crate) accept: Option<&'a str>,
    /// `content-type`, for 415.
    pub(crate) content_type: Option<&'a str>,
    /// The id of this request.
    pub(crate) request_id: &'a str,
    /// Whether the request has microversion 1.23 or later.
    pub(crate) since_23: bool,
}

/// The text before and after a message. HTML keeps its white space; plain text turns newlines into
/// blanks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Frame {
    before: String,
    after: &'static str,
}

impl Frame {
    /// The frame of a status. Sentences that quote the request contain other white space, as in
    /// WebOb.
    pub(super) fn for_status(status: StatusCode, asked: RequestParts<'_>) -> Self {
        let before = match status {
            StatusCode::METHOD_NOT_ALLOWED => {
                let method = asked.method;
                format!("The method {method} is not allowed for this resource. ")
            }
            StatusCode::NOT_ACCEPTABLE => {
                let accept = asked
                    .accept
                    .filter(|accept| !accept.is_empty())
                    .unwrap_or("application/json");
                format!(
                    "The resource could not be generated that was acceptable to your browser\n\
                     (content of type {accept}. "
                )
            }
            StatusCode::UNSUPPORTED_MEDIA_TYPE => {
                let given = asked.content_type.unwrap_or("None");
                format!("The request media type {given} is not supported by this server.\n")
            }
            _ => {
                return Self {
                    before: sentence(status).to_owned(),
                    after: "\n\n",
                };
            }
        };
        Self { before, after: "" }
    }

    /// The message in its frame as HTML.
    pub(super) fn html(&self, message: &str) -> String {
        self.marked_up(&escape_html(&self.before), &escape_html(message))
    }

    /// The framed message for the JSON of a 401: with HTML tags, but unescaped.
    pub(super) fn html_unescaped(&self, message: &str) -> String {
        self.marked_up(&self.before, message)
    }

    /// The framed message as text. The message is alone on the last line.
    pub(super) fn text(&self, message: &str) -> String {
        let [before, message, after] = [&self.before, message, self.after].map(one_line);
        format!("{before}\n\n {message}{after}")
    }

    fn marked_up(&self, before: &str, message: &str) -> String {
        format!("{before}<br /><br />\n{message}{}", self.after)
    }
}

/// The standard sentence of each status.
fn sentence(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED => {
            "This server could not verify that you are authorized to access the document you \
             requested. Either you supplied the wrong credentials (e.g., bad password), or your \
             browser does not understand how to supply the credentials required."
        }
        StatusCode::FORBIDDEN => "Access was denied to this resource.",
        StatusCode::NOT_FOUND => "The resource could not be found.",
        StatusCode::CONFLICT => "There was a conflict when trying to complete your request.",
        StatusCode::GONE => {
            "This resource is no longer available.  No forwarding address is given."
        }
        StatusCode::PRECONDITION_FAILED => "Request precondition failed.",
        StatusCode::PAYLOAD_TOO_LARGE => "The body of your request was too large for this server.",
        StatusCode::REQUEST_TIMEOUT => {
            "The server has waited too long for the request to be sent by the client."
        }
        StatusCode::URI_TOO_LONG => "The request URI was too long for this server.",
        StatusCode::TOO_MANY_REQUESTS => "The client has sent too many requests to the server.",
        StatusCode::SERVICE_UNAVAILABLE => {
            "The server is currently unavailable. Please try again at a later time."
        }
        status if status.is_server_error() => {
            "The server has either erred or is incapable of performing the requested operation."
        }
        _ => {
            "The server could not comply with the request since it is either malformed or \
             otherwise incorrect."
        }
    }
}

/// The text without newlines and HTML tags. Names chosen by clients may contain both, and some
/// programs show errors in web pages.
fn one_line(text: &str) -> String {
    let flat = text.replace('\n', " ").replace('\r', "");
    without_tags(&flat.replace("<!--", "").replace("-->", ""))
}

fn without_tags(text: &str) -> String {
    let (mut kept, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, tag)) = rest.split_once('<')
        && let Some((name, after)) = tag.split_once('>')
    {
        kept.push_str(before);
        // A line break separates words.
        let tag = name.get(..2).unwrap_or_default();
        if tag.eq_ignore_ascii_case("br") {
            kept.push(' ');
        }
        rest = after;
    }
    kept.push_str(rest);
    kept
}

fn escape_html(text: &str) -> String {
    let escaped = text.chars().map(|c| match c {
        '&' => Cow::from("&amp;"),
        '<' => "&lt;".into(),
        '>' => "&gt;".into(),
        '"' => "&quot;".into(),
        '\'' => "&#x27;".into(),
        c if c.is_ascii() => c.to_string().into(),
        c => format!("&#{};", c as u32).into(),
    });
    escaped.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ASKED: RequestParts<'static> = RequestParts {
        method: "PATCH",
        accept: None,
        content_type: None,
        request_id: "req-1",
        since_23: true,
    };

    fn framed(status: u16, message: &str) -> String {
        Frame::for_status(StatusCode::from_u16(status).unwrap(), ASKED).text(message)
    }

    #[test]
    fn a_message_stands_alone_on_the_last_line() {
        assert_eq!(
            framed(409, "update conflict: in use"),
            "There was a conflict when trying to complete your request.\n\n update conflict: in \
             use  "
        );
        assert_eq!(
            framed(405, "Use GET."),
            "The method PATCH is not allowed for this resource. \n\n Use GET."
        );
    }

    #[test]
    fn names_are_sanitized_in_text_and_html() {
        let hostile = "a<b>c\nd<br/>e\r<!-- f --> 1 < 2 é";
        assert_eq!(
            framed(404, hostile),
            "The resource could not be found.\n\n ac d e f  1 < 2 é  "
        );
        let html = Frame::for_status(StatusCode::NOT_FOUND, ASKED).html("<script>\"é\"");
        assert_eq!(
            html,
            "The resource could not be found.<br /><br />\n&lt;script&gt;&quot;&#233;&quot;\n\n"
        );
    }

    proptest! {
        #[test]
        fn message_stays_on_one_line(status in 400_u16..600, message in "(?s)[<>!br\\-\n\r]*.{0,20}") {
            let text = framed(status, &message);
            prop_assert_eq!(text.matches('\n').count(), 2);
        }
    }
}
