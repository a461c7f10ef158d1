//! Shares of the resources that all clients of a node use: no partition, user or address gets so
//! much that nothing remains for the others.
//!
//! The more of a resource is taken, the lower is the limit of each caller, so that a caller who has
//! nothing yet always gets a share. Source: Choudhury and Hahne, "Dynamic queue length thresholds
//! for shared-memory packet switches" (1998). With fixed shares, the only user of a node could not
//! use most of the budget, and many callers together could still take all of it.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::http::errors::ApiError;

/// The sender of a request: the user and the address that have shares.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Caller {
    /// Hash of the user's id. Every request has a `Caller`, and a copy of the id would cost an
    /// allocation.
    user: Option<u64>,
    address: Option<IpAddr>,
}

impl Caller {
    pub(crate) fn new(user_id: Option<&str>, address: Option<IpAddr>) -> Self {
        let hashed = |id: &str| {
            let mut hasher = DefaultHasher::new();
            id.hash(&mut hasher);
            hasher.finish()
        };
        Self {
            user: user_id.map(hashed),
            address,
        }
    }

    /// Hash of the user's id; `None` for a request without a user.
    pub(crate) fn user(&self) -> Option<u64> {
        self.user
    }
}

/// The owner of a share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Owner {
    Partition,
    User(u64),
    Address(IpAddr),
}

impl Owner {
    fn noun(self) -> &'static str {
        match self {
            Self::Partition => "partition",
            Self::User(_) => "user",
            Self::Address(_) => "address",
        }
    }
}

/// The account to which a request is charged: a caller of a partition.
#[derive(Debug, Clone, Copy)]
pub(super) struct Account {
    /// Number of the partition, unique in this process.
    pub(super) partition: u64,
    pub(super) caller: Caller,
}

impl Account {
    fn callers(self) -> impl Iterator<Item = Owner> {
        let Caller { user, address } = self.caller;
        let user = user.map(Owner::User);
        user.into_iter().chain(address.map(Owner::Address))
    }
}

/// A limited amount of one resource.
#[derive(Debug)]
pub(super) struct Budget {
    /// Name of the resource, as in "no more … for this user".
    what: &'static str,
    all: usize,
    taken: Mutex<BudgetUsage>,
}

#[derive(Debug, Default)]
struct BudgetUsage {
    all: usize,
    /// Amount per partition and owner. Owners with 0 have no entry.
    by: HashMap<(u64, Owner), usize>,
}

impl BudgetUsage {
    fn amount_of(&self, partition: u64, owner: Owner) -> usize {
        let taken = self.by.get(&(partition, owner));
        taken.copied().unwrap_or_default()
    }
}

/// Limit of a partition: three quarters of the amount that other partitions have not taken.
fn partition_limit(left: usize) -> usize {
    left - left / 4
}

/// Limit of a user or an address: two thirds of the part of its partition's limit that other
/// callers have not taken. So one caller alone may have half of the budget.
fn caller_limit(left: usize) -> usize {
    left - left / 3
}

impl Budget {
    pub(super) fn new(what: &'static str, all: usize) -> Arc<Self> {
        Arc::new(Self {
            what,
            all,
            taken: Mutex::default(),
        })
    }

    /// An empty share, charged to this account.
    pub(super) fn nothing(self: &Arc<Self>, account: Account) -> BudgetShare {
        BudgetShare {
            budget: Arc::clone(self),
            account,
            amount: 0,
        }
    }

    /// Amount taken by all accounts.
    pub(super) fn taken(&self) -> usize {
        self.taken.lock().all
    }

    /// # Errors
    /// The owner whose share would be exceeded.
    fn take(&self, account: Account, more: usize) -> Result<(), Owner> {
        let Account { partition, .. } = account;
        let mut taken = self.taken.lock();
        let here = taken.amount_of(partition, Owner::Partition);
        let of_all = partition_limit(self.all - (taken.all - here));
        for owner in account.callers() {
            let own = taken.amount_of(partition, owner);
            let most = caller_limit(of_all.saturating_sub(here - own));
            if own.saturating_add(more) > most {
                return Err(owner);
            }
        }
        if here.saturating_add(more) > of_all {
            return Err(Owner::Partition);
        }
        taken.all += more;
        for owner in account.callers().chain([Owner::Partition]) {
            *taken.by.entry((partition, owner)).or_default() += more;
        }
        Ok(())
    }

    fn give_back(&self, account: Account, amount: usize) {
        let Account { partition, .. } = account;
        let mut taken = self.taken.lock();
        taken.all -= amount;
        for owner in account.callers().chain([Owner::Partition]) {
            if let Some(own) = taken.by.get_mut(&(partition, owner)) {
                *own -= amount;
                if *own == 0 {
                    taken.by.remove(&(partition, owner));
                }
            }
        }
    }
}

/// The part of a budget that a request has reserved, until dropped.
#[derive(Debug)]
pub(crate) struct BudgetShare {
    budget: Arc<Budget>,
    account: Account,
    amount: usize,
}

impl BudgetShare {
    /// Increases the share to at least `amount` in total.
    ///
    /// # Errors
    /// 503 if that exceeds the share of the partition, the user or the address.
    pub(super) fn grow(&mut self, amount: usize) -> Result<(), ApiError> {
        let more = amount.saturating_sub(self.amount);
        if more == 0 {
            return Ok(());
        }
        let taken = self.budget.take(self.account, more);
        taken.map_err(|owner| {
            let what = self.budget.what;
            ApiError::busy(&format!(
                "This node has no more {what} for this {} now",
                owner.noun()
            ))
        })?;
        self.amount = amount;
        Ok(())
    }

    /// Whether the amount is 0.
    pub(super) fn is_zero(&self) -> bool {
        self.amount == 0
    }
}

impl Drop for BudgetShare {
    fn drop(&mut self) {
        if self.amount > 0 {
            self.budget.give_back(self.account, self.amount);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(partition: u64, user: &str, address: &str) -> Account {
        Account {
            partition,
            caller: Caller::new(Some(user), address.parse().ok()),
        }
    }

    /// Takes one unit at a time until the budget refuses.
    fn take_all(budget: &Arc<Budget>, account: Account) -> (Vec<BudgetShare>, ApiError) {
        let mut all = Vec::new();
        loop {
            let mut one = budget.nothing(account);
            match one.grow(1) {
                Ok(()) => all.push(one),
                Err(refused) => return (all, refused),
            }
        }
    }

    #[test]
    fn one_caller_gets_half_and_its_address_no_more_by_other_users() {
        let budget = Budget::new("tea", 240);
        let (first, refused) = take_all(&budget, account(0, "mallory", "10.0.0.1"));
        assert_eq!(first.len(), 120);
        let message = "This node has no more tea for this user now.";
        assert!(refused.message.starts_with(message), "{}", refused.message);
        let (second, refused) = take_all(&budget, account(0, "mallory's friend", "10.0.0.1"));
        assert_eq!(second.len(), 0);
        assert!(refused.message.contains("for this address"));
        let (other, _) = take_all(&budget, account(0, "nova", "10.0.0.2"));
        assert_eq!(other.len(), 40, "two thirds of the remaining 60");
        drop((first, second, other));
        assert_eq!(budget.taken(), 0);
        assert!(budget.taken.lock().by.is_empty());
    }

    #[test]
    fn many_callers_of_one_partition_leave_a_quarter_to_others() {
        let budget = Budget::new("tea", 1 << 20);
        let mallories = (0..30).map(|nth| {
            let address = format!("10.0.0.{nth}");
            take_all(&budget, account(1, &address, &address)).0
        });
        let taken: Vec<_> = mallories.collect();
        let all: usize = taken.iter().map(Vec::len).sum();
        assert!(all > (1 << 19) && all <= 3 << 18, "{all}");
        let (other, _) = take_all(&budget, account(2, "nova", "10.0.0.1"));
        assert!(other.len() >= 1 << 16, "{}", other.len());
    }

    #[test]
    fn largest_request_of_an_idle_node_fits() {
        let budget = Budget::new("tea", 240);
        let mut held = budget.nothing(account(0, "nova", "10.0.0.1"));
        held.grow(120).unwrap();
        held.grow(100).unwrap();
        assert_eq!(budget.taken(), 120, "it never shrinks");
        held.grow(121).unwrap_err();
        held.grow(usize::MAX).unwrap_err();
    }

    #[test]
    fn request_without_user_or_address_has_the_share_of_its_partition() {
        let budget = Budget::new("tea", 240);
        let unknown = Account {
            partition: 0,
            caller: Caller::default(),
        };
        let (all, refused) = take_all(&budget, unknown);
        assert_eq!(all.len(), 180);
        assert!(refused.message.contains("for this partition"));
    }
}
