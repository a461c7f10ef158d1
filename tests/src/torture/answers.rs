//! Counts the answers to clients.

use std::collections::BTreeMap;
use std::fmt;

use tokio::task::JoinSet;

/// Number of answers of each kind.
#[derive(Debug, Clone, Default)]
pub struct Answers(pub(super) BTreeMap<String, u64>);

/// Counts requests without an answer whose connection was not closed.
pub(super) const NOT_ANSWERED: &str = "not answered";

impl Answers {
    pub(super) fn note(&mut self, answer: impl Into<String>) {
        *self.0.entry(answer.into()).or_default() += 1;
    }

    /// Sums the answers of all tasks, once all have ended.
    pub(super) async fn sum(tasks: JoinSet<Self>) -> Self {
        let mut all = Self::default();
        for (answer, times) in tasks.join_all().await.into_iter().flat_map(|one| one.0) {
            *all.0.entry(answer).or_default() += times;
        }
        all
    }

    /// Whether each request was answered or its connection closed.
    pub fn all_answered(&self) -> bool {
        !self.0.contains_key(NOT_ANSWERED)
    }
}

impl fmt::Display for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, (answer, times)) in self.0.iter().enumerate() {
            let comma = if nth > 0 { ", " } else { "" };
            write!(f, "{comma}{times} × {answer}")?;
        }
        Ok(())
    }
}
