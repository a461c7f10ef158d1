//! simulations
