//! Rules of placement that are easy to get wrong: one file per noun, one test per rule.

#![allow(clippy::unwrap_used)] // test code, helpers included

mod claims;
mod cloud;
mod consumers;
mod content;
mod holds;
mod inventories;
mod joins;
mod level;
mod limits;
mod names;
mod providers;
mod reshaper;
mod retries;
mod usages;
