//! The checks of a request before its handler, in their order. Clients can observe the order.

mod checks;
mod passage;

pub(super) use self::passage::Passage;
use crate::http::errors::ApiError;

/// A check of every request.
pub struct Stage {
    /// Name, unique among the stages.
    pub name: &'static str,
    /// Description of the check, as a sentence.
    pub does: &'static str,
    /// The statuses with which it refuses requests.
    pub refuses_with: &'static [u16],
    check: Check,
}

/// The function of a stage. The asynchronous functions are variants of their own, as a table of
/// functions that return futures would need an allocation for each request.
enum Check {
    Now(fn(&mut Passage<'_, '_>) -> Result<(), ApiError>),
    Authenticate,
    ReadBody,
}

/// The stages, in the order in which every request passes them. The first refusal is the answer.
pub static STAGES: [Stage; 12] = [
    Stage {
        name: "partition and address limits",
        does: "Counts the request for its partition and for the address of the client.",
        refuses_with: &[429],
        check: Check::Now(checks::limit_address),
    },
    Stage {
        name: "authentication",
        does: "Authenticates the caller, as `[auth] strategy` says.",
        refuses_with: &[401, 503],
        check: Check::Authenticate,
    },
    Stage {
        name: "user limits",
        does: "Counts the request for its user.",
        refuses_with: &[429],
        check: Check::Now(checks::limit_user),
    },
    Stage {
        name: "URL length",
        does: "Checks the length of the path and query.",
        refuses_with: &[414],
        check: Check::Now(checks::limit_url),
    },
    Stage {
        name: "microversion",
        does: "Parses `OpenStack-API-Version`; this service's own routes ignore an invalid one.",
        refuses_with: &[400, 406],
        check: Check::Now(checks::parse_version),
    },
    Stage {
        name: "consistency headers",
        does: "Parses `Placement-Consistency`, `Placement-Min-Index` and `Placement-As-Of`.",
        refuses_with: &[400],
        check: Check::Now(checks::parse_consistency),
    },
    Stage {
        name: "body headers",
        does: "Checks that `Content-Length` is a number, and that a body has a `Content-Type`.",
        refuses_with: &[400],
        check: Check::Now(checks::check_body_headers),
    },
    Stage {
        name: "route",
        does: "Finds the route of the path and checks that it has the method.",
        refuses_with: &[404, 405],
        check: Check::Now(checks::find_route),
    },
    Stage {
        name: "operation",
        does: "Checks that the operation exists in the microversion, and the `Accept` or \
               `Content-Type` that it needs; the route defines which comes first.",
        refuses_with: &[404, 405, 406, 415],
        check: Check::Now(checks::find_operation),
    },
    Stage {
        name: "policy",
        does: "Checks the policy rule of the operation, for `Placement-As-Of` also \
               `placementd:history`; a rule about the project in the query needs a valid query.",
        refuses_with: &[400, 403],
        check: Check::Now(checks::check_policy),
    },
    Stage {
        name: "body",
        does: "Reads the body, or discards it if the operation has none. Only authorized clients \
               reach this stage, so others can neither delay the node nor use its memory.",
        refuses_with: &[400, 408, 413, 503],
        check: Check::ReadBody,
    },
    Stage {
        name: "room for a write",
        does: "For writes: checks that this node accepts writes (a node that serves a backup does \
               not), can queue another write and can store an audit record.",
        refuses_with: &[403, 503],
        check: Check::Now(checks::check_room),
    },
];

impl Stage {
    /// # Errors
    /// A refusal with one of the statuses of [`Stage::refuses_with`].
    async fn pass(&self, request: &mut Passage<'_, '_>) -> Result<(), ApiError> {
        let passed = match self.check {
            Check::Now(check) => check(request),
            Check::Authenticate => checks::authenticate(request).await,
            Check::ReadBody => checks::read_body(request).await,
        };
        passed.inspect_err(|error| {
            let status = error.status.as_u16();
            debug_assert!(
                self.refuses_with.contains(&status),
                "the stage {:?} does not declare {status}",
                self.name
            );
        })
    }
}

/// Passes a request through all stages.
///
/// # Errors
/// The refusal of the first stage that refuses it.
pub(super) async fn pass(request: &mut Passage<'_, '_>) -> Result<(), ApiError> {
    for stage in &STAGES {
        stage.pass(request).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> String {
        let mut page = "# Stages of a request\n\n\
             Every request to the REST API passes these checks in this order, before its handler.\n\
             The first refusal is the answer.\n\
             Requests to `/` skip the first three, and so do callers that another listener has \
             authorized, such as operators.\n\n\
             Generated: `PLACEMENT_WRITE_DOCS=1 cargo test --workspace --lib edge::stages` \
             writes this page.\n\n\
             | | stage | check | status |\n|---|---|---|---|\n"
            .to_owned();
        for (number, stage) in (1..).zip(&STAGES) {
            let Stage { name, does, .. } = stage;
            let statuses: Vec<_> = stage.refuses_with.iter().map(u16::to_string).collect();
            page += &format!("| {number} | {name} | {does} | {} |\n", statuses.join(", "));
        }
        page
    }

    #[test]
    fn the_page_in_docs_has_each_stage() {
        placement_docs::assert_kept("request-stages.md", &page(), "--lib edge::stages");
    }
}
