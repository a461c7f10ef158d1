//! Pages that show one list of the API.

use maud::{Markup, html};

use super::Content;
use crate::ask::{Answer, Failure, Questions};
use crate::frame::View;
use crate::parts::{Field, RowBudget, Table, form, pager, pages};

/// Page size for lists that the API returns in pages.
const LIMIT: (&str, &str) = ("limit", "100");
/// Part of names: the page filters by it, because the API compares whole names.
const NAME: &str = "name";

/// A filter: API parameter, label, example, and option of the command.
pub(super) type Filter = (&'static str, &'static str, &'static str, &'static str);

/// Description of a list page. `A`: the response of the API, `T`: a row of it.
pub(super) struct Listing<A, T: 'static> {
    pub(super) title: &'static str,
    pub(super) page: &'static str,
    pub(super) command: &'static str,
    /// Route of the API.
    pub(super) api: &'static str,
    pub(super) filters: &'static [Filter],
    pub(super) rows: fn(&A) -> &[T],
    pub(super) table: for<'a> fn(&'a Content<'a>) -> Table<'a, T>,
    pub(super) order: Order<A, T>,
}

/// Order of the rows, and whether the API returns all of them at once.
pub(super) enum Order<A, T> {
    /// The API returns all rows, in the order of display.
    Given,
    /// The API returns all rows; they are sorted by the name that this function returns.
    ByName(fn(&T) -> &str),
    /// The API returns the rows in pages.
    Paged(Paged<A, T>),
}

/// How the next page of the API is requested.
pub(super) struct Paged<A, T> {
    /// Name of the query parameter.
    pub(super) parameter: &'static str,
    /// Value of the parameter for the page after a response; `None` if it is the last page.
    pub(super) after: fn(&A) -> Option<&str>,
    /// Value of the parameter for the page that begins after a row.
    pub(super) after_row: fn(&T) -> &str,
}

impl<A: Answer, T: 'static> Listing<A, T> {
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
    ) -> Result<A, Failure> {
        let mut asked = self.given(of);
        asked.retain(|(name, _)| *name != NAME);
        if let Order::Paged(Paged { parameter, .. }) = self.order {
            asked.extend([LIMIT, (parameter, of.target.parameter(parameter))]);
        }
        questions.get(of.partition.api(self.api, &asked)).await
    }

    /// Values of the filters in the address.
    fn given<'a>(&self, of: &Content<'a>) -> Vec<(&'static str, &'a str)> {
        let names = self.filters.iter().map(|filter| filter.0);
        Vec::from_iter(names.map(|name| (name, of.target.parameter(name))))
    }

    /// The page for a response.
    pub(super) fn view(&self, of: &Content<'_>, answer: &A) -> View {
        let filters = self.given(of);
        let given = self.filters.iter().zip(&filters);
        let fields: Vec<Field<'_>> = given
            .clone()
            .map(|(of, (name, value))| (*name, of.1, of.2, *value))
            .collect();
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
    fn rows(&self, of: &Content<'_>, answer: &A, href: impl Fn(&str, &str) -> String) -> Markup {
        let mut all: Vec<&T> = (self.rows)(answer).iter().collect();
        let mut from = of.target.offset();
        match self.order {
            Order::Given => {}
            Order::ByName(name) => {
                let part = of.target.parameter(NAME);
                all.retain(|one| name(one).contains(part));
                all.sort_by_key(|one| name(one));
            }
            Order::Paged(_) => from = 0,
        }
        all.drain(..from.min(all.len()));
        let table = (self.table)(of);
        let rows = RowBudget::default().take(all.iter().map(|one| table.row(one)));
        let others = match &self.order {
            Order::Given | Order::ByName(_) => {
                let left = all.len();
                pages(of.target.offset(), rows.len(), left, |from| {
                    href("from", from)
                })
            }
            Order::Paged(paged) => {
                // If not all rows fit on the page, the next page begins after the last shown row.
                let next = if rows.len() < all.len() {
                    rows.len()
                        .checked_sub(1)
                        .map(|last| (paged.after_row)(all[last]))
                } else {
                    (paged.after)(answer)
                };
                let next = next.filter(|next| !next.is_empty());
                pager(None, next.map(|next| href(paged.parameter, next)))
            }
        };
        html! { (table.with(self.title, &rows)) (others) }
    }
}
