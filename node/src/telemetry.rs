//! Logs: for people or for machines, to standard error.

use tracing_subscriber::EnvFilter;

/// Starts logging as configured.
///
/// # Errors
/// In words, if the level cannot be understood or logging was started before.
pub fn start(format: &str, level: &str) -> Result<(), String> {
    let filter = EnvFilter::try_new(level).map_err(|error| format!("log.level: {error}"))?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    match format {
        "json" => builder
            .json()
            .flatten_event(true)
            .with_current_span(true)
            .try_init(),
        _ => builder.try_init(),
    }
    .map_err(|error| error.to_string())
}

/// Checks a level without starting anything.
///
/// # Errors
/// In words, if the level cannot be understood.
pub fn check(level: &str) -> Result<(), String> {
    EnvFilter::try_new(level)
        .map(|_| ())
        .map_err(|error| format!("log.level: {error}"))
}
