//! Pages that show one list of the API.

use maud::{Markup, html};
use serde_json::Value;

use super::Content;
use crate::ask::{Failure, Questions};
use crate::frame::View;
use crate::parts::{Field, Room, form, pager, pages, row, table};
use crate::words::{list, text};

/// Page size, where the API returns pages.
const LIMIT: (&str, &str) = ("limit", "100");
/// Parameter that only pages have: prefix of names.
const PREFIX: &str = "prefix";

/// Description of a list page.
pub(super) struct Listing {
    pub(super) title: &'static str,
    pub(super) page: &'static str,
    pub(super) command: &'static str,
    /// Route of the API, and the member of the response with the list.
    pub(super) api: (&'static str, &'static str),
    /// Filters: API parameter, label, example, and option of the command.
    pub(super) filters: &'static [(&'static str, &'static str, &'static str, &'static str)],
    pub(super) heads: &'static str,
    pub(super) row: fn(&Content<'_>, &Value) -> Vec<Markup>,
    /// Parameter for the next page, and the member of a row that is its value; `None` if the API
    /// returns all rows.
    pub(super) next: Option<(&'static str, &'static str)>,
}

impl Listing {
    pub(super) async fn show(
        &self,
        questions: &mut Questions<'_>,
        of: &Content<'_>,
    ) -> Result<View, Failure> {
        let answer = self.ask(questions, of).await?;
        Ok(self.view(of, &answer))
    }

    /// Requests one page of the list.
    pub(super) async fn ask(
        &self,
        questions: &mut Questions<'_>,
        of: &Content<'_>,
    ) -> Result<Value, Failure> {
        let mut asked = self.given(of);
        asked.retain(|(name, _)| *name != PREFIX);
        if let Some((name, _)) = self.next {
            asked.extend([LIMIT, (name, of.target.parameter(name))]);
        }
        questions.get(of.partition.api(self.api.0, &asked)).await
    }

    /// Values of the filters in the address.
    fn given<'a>(&self, of: &Content<'a>) -> Vec<(&'static str, &'a str)> {
        let names = self.filters.iter().map(|filter| filter.0);
        Vec::from_iter(names.map(|name| (name, of.target.parameter(name))))
    }

    /// The page for a response.
    pub(super) fn view(&self, of: &Content<'_>, answer: &Value) -> View {
        let filters = self.given(of);
        let given = self.filters.iter().zip(&filters);
        let fields = given
            .clone()
            .map(|(of, (name, value))| (*name, of.1, of.2, *value));
        let fields: Vec<Field<'_>> = fields.collect();
        let href = |name: &str, value: &str| {
            let all = [&filters[..], &[(name, value)]].concat();
            of.partition.page(self.page, &all)
        };
        let options: Vec<_> = given.map(|(of, (_, value))| (of.3, *value)).collect();
        View {
            title: self.title.to_owned(),
            body: html! {
                (form(&of.partition.page(self.page, &[]), &fields))
                (self.rows(of, answer, href))
            },
            commands: vec![of.command(self.command, &options)],
        }
    }

    /// The table of rows, and links to other pages.
    fn rows(
        &self,
        of: &Content<'_>,
        answer: &Value,
        href: impl Fn(&str, &str) -> String,
    ) -> Markup {
        let prefix = of.target.parameter(PREFIX);
        let begins_so = |one: &&Value| text(&one["name"]).starts_with(prefix);
        let mut all: Vec<&Value> = list(&answer[self.api.1]).iter().filter(begins_so).collect();
        let from = of.target.offset();
        if self.next.is_none() {
            all.sort_by_key(|one| text(&one["name"]));
            all.drain(..from.min(all.len()));
        }
        let rows = all.iter().map(|one| row(&(self.row)(of, one)));
        let rows = Room::default().take(rows);
        let others = match self.next {
            None => pages(from, rows.len(), all.len(), |from| href("from", from)),
            Some((parameter, member)) => {
                // If not all rows fit on the page, the next page begins after the last shown row.
                let next = match rows.len() < all.len() {
                    true => rows
                        .len()
                        .checked_sub(1)
                        .map_or("", |last| text(&all[last][member])),
                    false => text(&answer["next"]),
                };
                pager(None, (!next.is_empty()).then(|| href(parameter, next)))
            }
        };
        html! { (table(self.title, self.heads, &rows)) (others) }
    }
}
