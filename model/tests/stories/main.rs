//! What happens in a cloud: one file per noun, one test per rule that is
//! easily got wrong.

#![allow(clippy::unwrap_used)] // test code, helpers included

mod cloud;
mod consumers;
mod content;
mod inventories;
mod joins;
mod level;
mod names;
mod providers;
mod reshaper;
mod retries;
mod usages;
