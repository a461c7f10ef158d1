//! What happens in a cloud, told in its own words: one file per noun, one test per rule that is
//! easily got wrong.

mod cloud;
mod consumers;
mod inventories;
mod names;
mod providers;
mod reshaper;
mod retries;
mod usages;
