//! `[auth] strategy = "proxy"`: a proxy authenticates the caller and names it in headers. The
//! headers are trusted only on connections from a configured proxy address, or with a client
//! certificate of `[api] tls_client_ca_file`.

use std::borrow::Cow;

use http::HeaderMap;
use http::header::HeaderName;

use super::super::headers;
use super::super::settings::AuthSection;
use super::identity::{
    IDENTITY_STATUS, OF_PROXIES, ROLES, SERVICE_STATUS, USER, identity_in, roles, service_in,
};
use crate::http::errors::ApiError;
use placement_audit::access::Peer;
use placement_audit::identity::{CallingService, Identity};

pub(super) fn identify(
    section: &AuthSection,
    headers: &HeaderMap,
    peer: Option<Peer>,
    is_vouched_for: bool,
) -> Result<Identity, ApiError> {
    let refused = |message: &str| ApiError::unauthenticated(message);
    let is_known = peer.is_some_and(|Peer(peer)| section.is_proxy(&peer.ip().to_canonical()));
    // Only proxies have client certificates of the configured CA.
    if !is_known && !is_vouched_for {
        return Err(refused(
            "Requests are accepted only from the authenticating proxy. Send them to the proxy.",
        ));
    }
    // If a proxy adds its headers to those of the client instead of replacing them, the client can
    // choose its identity.
    if let Some(twice) = (OF_PROXIES.iter()).find(|name| headers.get_all(*name).iter().count() > 1)
    {
        return Err(refused(&format!(
            "The proxy sent {twice} twice. It must replace the client's header."
        )));
    }
    let text = |name: HeaderName| headers::text(headers, name).filter(|text| !text.is_empty());
    let owned = |name| text(name).map(Cow::into_owned);
    if text(IDENTITY_STATUS).as_deref() != Some("Confirmed") {
        return Err(refused(
            "The proxy did not confirm the caller (X-Identity-Status).",
        ));
    }
    let user_id =
        owned(USER).ok_or_else(|| refused("The proxy did not name the caller (X-User-Id)."))?;
    let service = match text(SERVICE_STATUS).as_deref() {
        None => CallingService::default(),
        Some("Confirmed") => service_in(headers),
        Some(_) => {
            return Err(refused(
                "The proxy did not confirm the calling service (X-Service-Identity-Status).",
            ));
        }
    };
    Ok(Identity {
        user_id,
        roles: text(ROLES).map_or_else(Vec::new, |given| roles(&given)),
        service,
        ..identity_in(headers, owned)
    })
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;

    const CHECKED: [(&str, &str); 4] = [
        ("x-identity-status", "Confirmed"),
        ("x-user-id", "u"),
        ("x-project-id", "p"),
        ("x-roles", "member,reader"),
    ];

    fn section(proxies: &[&str]) -> AuthSection {
        let text = format!("strategy = 'proxy'\nproxy_addresses = {proxies:?}");
        toml::from_str(&text).unwrap()
    }

    fn identify(from: &str, sent: &[(&'static str, &str)]) -> Result<Identity, ApiError> {
        let proxies = section(&["10.0.0.0/8", "192.0.2.7/32", "2001:db8::/64"]);
        let mut headers = HeaderMap::new();
        for (name, value) in sent {
            headers.append(*name, value.parse().unwrap());
        }
        let peer = Some(Peer(from.parse().unwrap()));
        super::identify(&proxies, &headers, peer, false)
    }

    #[test]
    fn headers_of_the_proxy_are_accepted() {
        for from in [
            "10.1.2.3:5",
            "192.0.2.7:5",
            "[2001:db8::9]:5",
            "[::ffff:10.1.2.3]:5",
        ] {
            let caller = identify(from, &CHECKED).unwrap();
            assert_eq!(
                (caller.user_id.as_str(), caller.project_id.as_deref()),
                ("u", Some("p"))
            );
            assert_eq!(caller.roles, ["member", "reader"]);
        }
    }

    #[test]
    fn headers_from_other_addresses_are_ignored() {
        for from in ["192.0.2.8:5", "127.0.0.1:5", "[2001:db8:0:1::9]:5"] {
            let refused = identify(from, &CHECKED).unwrap_err();
            assert_eq!(refused.status, StatusCode::UNAUTHORIZED);
        }
        let all = section(&["0.0.0.0/0"]);
        assert!(super::identify(&all, &HeaderMap::new(), None, false).is_err());
    }

    #[test]
    fn unconfirmed_identity_is_refused() {
        let from = "10.1.2.3:5";
        assert!(identify(from, &[("x-auth-token", "admin")]).is_err());
        assert!(identify(from, &CHECKED[1..]).is_err());
        let without_user = [CHECKED[0], ("x-user-id", ""), CHECKED[3]];
        assert!(identify(from, &without_user).is_err());
        let invalid = [("x-identity-status", "Invalid"), CHECKED[1]];
        assert!(identify(from, &invalid).is_err());
    }

    #[test]
    fn the_admin_project_is_every_project_unless_the_proxy_says_otherwise() {
        let is_admin_project = |more: &[(&'static str, &str)]| {
            let headers = [&CHECKED[..], more].concat();
            identify("10.1.2.3:5", &headers).unwrap().is_admin_project
        };
        assert!(is_admin_project(&[]));
        assert!(is_admin_project(&[("x-is-admin-project", "True")]));
        for other in ["False", "", "yes"] {
            assert!(!is_admin_project(&[("x-is-admin-project", other)]));
        }
    }

    #[test]
    fn a_service_counts_if_the_proxy_confirms_it() {
        let service = [
            ("x-service-user-id", "nova"),
            ("x-service-project-id", "services"),
            ("x-service-roles", "service"),
        ];
        let with_status = |status: &[(&'static str, &str)]| {
            let headers = [&CHECKED[..], &service[..], status].concat();
            identify("10.1.2.3:5", &headers).map(|caller| caller.service)
        };
        let confirmed = with_status(&[("x-service-identity-status", "Confirmed")]).unwrap();
        assert_eq!(confirmed.user_id.as_deref(), Some("nova"));
        assert_eq!(confirmed.project_id.as_deref(), Some("services"));
        assert_eq!(confirmed.roles, ["service"]);
        assert_eq!(with_status(&[]).unwrap(), CallingService::default());
        let invalid = with_status(&[("x-service-identity-status", "Invalid")]).unwrap_err();
        assert_eq!(invalid.status, StatusCode::UNAUTHORIZED);
    }

    #[test]
    fn a_proxy_that_forwards_identity_headers_of_clients_is_refused() {
        let mut sent = CHECKED.to_vec();
        sent.push(("x-roles", "admin"));
        let refused = identify("10.1.2.3:5", &sent).unwrap_err();
        assert!(refused.message.contains("x-roles twice"), "{refused:?}");
    }
}
