//! Pages that show one list of the API.

use std::collections::BTreeMap;

use maud::{Markup, html};
use placement_wire::explain::Explained;

use super::Content;
use crate::ask::{Answer, Failure, Questions};
use crate::frame::View;
use crate::parts::{Field, RowBudget, Table, form, pager, pages};
use crate::words::{cut, unknown_names};

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
        match self.ask(questions, of).await {
            Ok(answer) => Ok(self.view(of, &answer)),
            Err(refusal) => self.refused(questions, of, refusal).await,
        }
    }

    /// Requests one page of the list.
    pub(super) async fn ask(
        &self,
        questions: &mut Questions<'_>,
        of: &Content<'_>,
    ) -> Result<A, Failure> {
        questions.get(self.address(of)).await
    }
}

impl<A, T: 'static> Listing<A, T> {
    /// Address of one page of the list in the API.
    pub(super) fn address(&self, of: &Content<'_>) -> String {
        let mut asked = self.given(of);
        asked.retain(|(name, _)| *name != NAME);
        if let Order::Paged(Paged { parameter, .. }) = self.order {
            asked.extend([LIMIT, (parameter, of.target.parameter(parameter))]);
        }
        of.partition.api(self.api, &asked)
    }

    /// The form with the names in it that do not exist, if these are the reason of a refusal.
    ///
    /// # Errors
    /// The refusal, if it has another reason.
    pub(super) async fn refused(
        &self,
        questions: &mut Questions<'_>,
        of: &Content<'_>,
        refusal: Failure,
    ) -> Result<View, Failure> {
        let query = self.names(of);
        if refusal.status != 400 || query.is_empty() {
            return Err(refusal);
        }
        let query: Vec<_> = query
            .iter()
            .map(|(name, value)| (*name, &**value))
            .collect();
        let path = of.partition.api("/placementd/v1/explain", &query);
        let Ok(explained) = questions.get::<Explained<'_>>(path).await else {
            return Err(refusal);
        };
        let unknown = unknown_names(&explained.explanation);
        if unknown.is_empty() {
            return Err(refusal);
        }
        let verdict = html! { p class="verdict" role="alert" { (cut(&unknown)) } };
        Ok(self.page(of, |_| verdict))
    }

    /// The classes and traits in the form as a query of candidates, which always has a class; empty
    /// if there are no such names.
    fn names(&self, of: &Content<'_>) -> Vec<(&'static str, String)> {
        let given: BTreeMap<_, _> = self.given(of).into_iter().collect();
        let value = |name: &str| given.get(name).copied().filter(|value| !value.is_empty());
        let class = value("class").map(|class| format!("{class}:1"));
        let resources = value("resources").map(str::to_owned).or(class);
        let required = value("required").map(str::to_owned);
        if resources.is_none() && required.is_none() {
            return Vec::new();
        }
        let resources = resources.unwrap_or_else(|| "VCPU:1".to_owned());
        vec![
            ("resources", resources),
            ("required", required.unwrap_or_default()),
        ]
    }

    /// Values of the filters in the address.
    fn given<'a>(&self, of: &Content<'a>) -> Vec<(&'static str, &'a str)> {
        let names = self.filters.iter().map(|filter| filter.0);
        Vec::from_iter(names.map(|name| (name, of.target.parameter(name))))
    }

    /// The page for a response.
    pub(super) fn view(&self, of: &Content<'_>, answer: &A) -> View {
        self.page(of, |href| self.rows(of, answer, href))
    }

    /// The page with this content below its form. `content` gets a function for the address of the
    /// page with a further parameter.
    fn page(
        &self,
        of: &Content<'_>,
        content: impl FnOnce(&dyn Fn(&str, &str) -> String) -> Markup,
    ) -> View {
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
                (content(&href))
            },
            commands: vec![of.command(self.command, &options)],
        }
    }

    /// The table of rows, and links to other pages.
    fn rows(&self, of: &Content<'_>, answer: &A, href: &dyn Fn(&str, &str) -> String) -> Markup {
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
