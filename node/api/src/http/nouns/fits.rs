//! `GET /placementd/v1/fits`: how often the named queries of the configuration fit.

use std::ops::ControlFlow;
use std::time::Duration;

use placement_base::settings::Invalid;
use placement_model::State;
use placement_model::query::candidates::CandidateRequest;
use placement_model::query::what_if::Fit;
use placement_wire::fits::{CountedFit, FitLevel, Fits, NamedFit};

use super::explain::parse_within;
use super::what_if::{CLAIMS_MAX, WAIT};
use crate::http::edge::answer::Answer;
use crate::http::edge::request_context::RequestContext;
use crate::http::edge::settings::{FitSection, RequestLimits};
use crate::http::errors::{ApiError, to_json};
use crate::http::wire::microversion::Microversion;
use crate::http::wire::own;
use crate::http::wire::query::Query;

/// Maximum number of named queries.
const FITS_MAX: usize = 100;
/// Time limit for all named queries together, in equal shares.
const DEADLINE: Duration = Duration::from_secs(10);
/// Maximum length of a name, in bytes.
const NAME_MAX_BYTES: usize = 255;

/// `GET /placementd/v1/fits`: with counts if the caller may read the capacity, otherwise with
/// levels.
pub(crate) async fn list(context: &RequestContext) -> Result<Answer, ApiError> {
    context
        .query()?
        .check(context.head.route, context.head.version)?;
    let what_ifs = &context.services.server.admission.what_ifs;
    // The permit is acquired before the state is read: writes must copy the data of a state that a
    // request holds.
    let turn = what_ifs.turn(context.head.caller, WAIT).await?;
    let view = context.view().await?;
    let sections = context.api().settings.fits.clone();
    let with_counts = context.head.passes_further_rule;
    let patience = context.patience(Duration::ZERO, DEADLINE);
    let made = context.compute_idly(move || {
        let _turn = turn;
        let most = if with_counts {
            CLAIMS_MAX
        } else {
            FitLevel::MANY
        };
        let share = DEADLINE / u32::try_from(sections.len().max(1)).unwrap_or(u32::MAX);
        let fits = sections.iter().map(|section| {
            let patience = patience.renewed(share);
            let fit = count(section, &view.state, most, || patience.check());
            named(section, fit, with_counts)
        });
        Ok(to_json(&Fits {
            fits: fits.collect(),
            position: own::position(&view.position),
        }))
    });
    Ok(Answer::chunks(vec![made.await?]))
}

fn named<'a>(section: &'a FitSection, fit: Result<Fit, String>, with_count: bool) -> NamedFit<'a> {
    // Claims of a name that does not exist fail.
    let none = Fit {
        count: 0,
        exact: true,
        complete: true,
    };
    let (fit, unknown) = fit.map_or_else(|why| (none, Some(why.into())), |fit| (fit, None));
    NamedFit {
        name: section.name.as_str().into(),
        level: FitLevel::of(fit.count),
        complete: fit.complete,
        counted: with_count.then_some(CountedFit {
            count: fit.count,
            exact: fit.exact,
            unknown,
        }),
    }
}

/// Counts how often a named query can be claimed, at most `at_most` times. `watch` may end the
/// count.
///
/// # Errors
/// The query contains a name that does not exist in this state.
fn count(
    section: &FitSection,
    state: &State,
    at_most: u64,
    watch: impl Fn() -> ControlFlow<()> + Send + Sync,
) -> Result<Fit, String> {
    let request = parse(section).map_err(|error| error.message)?;
    let fit = state.fit(&request, at_most, Box::new(|_steps| watch()));
    fit.map_err(|error| error.to_string())
}

/// How often a named query can be claimed in a state, at most 10,000 times; `None` if `watch` ends
/// the count.
pub fn count_fit(
    section: &FitSection,
    state: &State,
    watch: impl Fn() -> ControlFlow<()> + Send + Sync,
) -> Option<u64> {
    match count(section, state, CLAIMS_MAX, watch) {
        Ok(fit) => (fit.complete || fit.count >= CLAIMS_MAX).then_some(fit.count),
        Err(_) => Some(0),
    }
}

fn parse(section: &FitSection) -> Result<CandidateRequest, ApiError> {
    let limits = RequestLimits::default();
    let query = Query::parse_at_most(limits.query_parameters, &section.query)?;
    parse_within(&limits, &query, Microversion::MAX)
}

/// Checks the named queries of a configuration.
///
/// # Errors
/// A query cannot be parsed, a name is unusable or given twice, or there are more than 100.
pub fn check_fits(sections: &[FitSection]) -> Result<(), Invalid> {
    if sections.len() > FITS_MAX {
        let given = sections.len();
        return Err(Invalid::new(
            "fits",
            format!("{given} queries are given; at most {FITS_MAX} are allowed"),
        ));
    }
    for (place, section) in sections.iter().enumerate() {
        let FitSection { name, query } = section;
        let invalid = |key: &str, why: &str| {
            Invalid::new(&format!("fits.{key}"), format!("the query {name:?} {why}"))
        };
        if name.is_empty() || name.len() > NAME_MAX_BYTES || name.contains(char::is_control) {
            return Err(invalid(
                "name",
                "has an unusable name: a name has 1 to 255 bytes and no control characters",
            ));
        }
        if sections[..place].iter().any(|other| other.name == *name) {
            return Err(invalid("name", "is given twice"));
        }
        if query.is_empty() {
            return Err(invalid(
                "query",
                "has no query: give one such as \"resources=VCPU:4,MEMORY_MB:8192\"",
            ));
        }
        parse(section)
            .map_err(|error| invalid("query", &format!("is malformed: {}", error.message)))?;
    }
    Ok(())
}
