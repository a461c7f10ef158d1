//! The allocation-candidate search: which ways are there to meet a request?

mod request;

pub use request::{
    AllocationRequest, CandidateError, CandidateRequest, Candidates, GenerationStrategy,
    GroupPolicy, Placed, ProviderSummary, RequestGroup, SummaryResource,
};
