//! The questions of simulated clients: every kind, with filters over the names that they contend
//! for.

use std::collections::{BTreeMap, BTreeSet};

use placement_model::query::candidates::{CandidateRequest, GroupPolicy, RequestGroup};
use placement_model::query::resource_providers::ProviderFilter;
use placement_model::types::{AggregateUuid, Given, ProviderUuid, ResourceClassName, TraitName};
use rand::Rng;
use uuid::Uuid;

use crate::beliefs::CLASS;
use crate::operation::{Question, QuestionKind};
use crate::workload::{CLASSES, NEWEST, Names, TRAITS, Workload};

impl Workload {
    /// Draws the next question.
    pub fn question(&mut self, names: &Names) -> Question {
        let provider = if self.percent(60) {
            self.one(&names.core)
        } else {
            self.one(&names.field)
        };
        let (asked, since) = match self.random.random_range(0..100) {
            0..28 => (QuestionKind::Allocations(self.one(&names.consumers)), 0),
            28..36 => (QuestionKind::ProviderUsages(provider), 0),
            36..44 => (QuestionKind::ProviderAllocations(provider), 0),
            44..51 => (QuestionKind::Inventories(provider), 0),
            51..55 => (
                QuestionKind::Inventory(provider, self.one(&CLASSES).to_owned()),
                0,
            ),
            55..60 => (QuestionKind::ProviderTraits(provider), 6),
            60..64 => (QuestionKind::ProviderAggregates(provider), 1),
            64..68 => (QuestionKind::Provider(provider), 0),
            68..71 => (
                QuestionKind::Traits {
                    associated: self.one(&[None, Some(true), Some(false)]),
                    prefix: self.percent(80).then(|| "CUSTOM_".to_owned()),
                },
                6,
            ),
            71..74 => (QuestionKind::Trait(self.one(&TRAITS).to_owned()), 6),
            74..76 => (QuestionKind::ResourceClasses, 2),
            76..79 => (
                QuestionKind::ResourceClass(self.one(&CLASSES).to_owned()),
                2,
            ),
            79..86 => return self.usages(names),
            86..92 => return self.providers(names),
            _ => return self.candidates(names),
        };
        let minor = self.minor(since, NEWEST);
        Question { asked, minor }
    }

    fn usages(&mut self, names: &Names) -> Question {
        let minor = self.minor(9, NEWEST);
        let user = self.percent(20).then(|| "user1000001".to_owned());
        let types = [None, Some("all"), Some("unknown"), Some("INSTANCE")];
        let consumer_type = (minor >= 38).then(|| self.one(&types)).flatten();
        let asked = QuestionKind::Usages {
            project: self.one(&names.projects),
            user,
            consumer_type: consumer_type.map(str::to_owned),
        };
        Question { asked, minor }
    }

    fn any_provider(&mut self, names: &Names) -> Given<ProviderUuid> {
        let from = if self.percent(50) {
            &names.core
        } else {
            &names.field
        };
        Given::from(self.one(from).to_string())
    }

    fn providers(&mut self, names: &Names) -> Question {
        let minor = self.minor(0, NEWEST);
        let mut filter = ProviderFilter::default();
        if self.percent(10) {
            filter.name = Some("host0".to_owned());
        }
        if self.percent(10) {
            filter.uuid = Some(self.any_provider(names));
        }
        if minor >= 14 && self.percent(30) {
            filter.in_tree = Some(self.any_provider(names));
        }
        if minor >= 3 && self.percent(25) {
            filter.member_of = self.member_of(minor, names);
        }
        if minor >= 32 && self.percent(15) {
            filter.not_member_of = self.some_aggregates(names);
        }
        if minor >= 18 && self.percent(30) {
            filter.required = self.required(minor);
        }
        if minor >= 22 && self.percent(20) {
            filter.forbidden = self.traits(1);
        }
        if minor >= 4 && self.percent(30) {
            filter.resources = self.resources();
        }
        let asked = QuestionKind::Providers(filter);
        Question { asked, minor }
    }

    fn some_aggregates(&mut self, names: &Names) -> BTreeSet<AggregateUuid> {
        BTreeSet::from([AggregateUuid::from(self.one(&names.aggregates))])
    }

    /// One set of aggregates; several sets are possible from 1.24.
    fn member_of(&mut self, minor: u8, names: &Names) -> Vec<BTreeSet<AggregateUuid>> {
        let mut first = self.some_aggregates(names);
        if self.percent(40) {
            first.extend(self.some_aggregates(names));
        }
        let mut all = vec![first];
        if minor >= 24 && self.percent(20) {
            all.push(self.some_aggregates(names));
        }
        all
    }

    /// Single traits first; from 1.39 also a set of alternatives.
    fn required(&mut self, minor: u8) -> Vec<BTreeSet<Given<TraitName>>> {
        let single: Vec<_> = self.traits(2).into_iter().collect();
        let mut all: Vec<_> = single
            .into_iter()
            .map(|one| BTreeSet::from([one]))
            .collect();
        if minor >= 39 && self.percent(30) {
            let any = BTreeSet::from(["CUSTOM_RED", "CUSTOM_BLUE"].map(Given::from));
            all.push(any);
        }
        all
    }

    fn resources(&mut self) -> BTreeMap<Given<ResourceClassName>, u64> {
        let mut resources = BTreeMap::from([(Given::from(CLASS), 1)]);
        if self.percent(50) {
            resources.clear();
            let class = self.one(&CLASSES[..4]);
            resources.insert(Given::from(class), self.random.random_range(1..=3));
        }
        if self.percent(20) {
            resources.insert(Given::from(self.one(&CLASSES[..4])), 1);
        }
        resources
    }

    fn candidates(&mut self, names: &Names) -> Question {
        let minor = self.minor(10, NEWEST);
        let mut request = CandidateRequest {
            nested: minor >= 29,
            mappings: minor >= 34,
            ..CandidateRequest::default()
        };
        let named = if minor >= 25 {
            self.one(&[0, 0, 1, 2])
        } else {
            0
        };
        if named == 0 || self.percent(50) {
            request.groups.push(self.group("", minor, names));
        }
        for number in 1..=named {
            let group = self.group(&number.to_string(), minor, names);
            request.groups.push(group);
        }
        if named > 1 {
            let policies = [GroupPolicy::None, GroupPolicy::Isolate];
            request.group_policy = Some(self.one(&policies));
        }
        if minor >= 36 && named > 1 && self.percent(40) {
            let suffixes = (1..=named).map(|number: u8| number.to_string());
            request.same_subtree.push(suffixes.collect());
        }
        if minor >= 35 && self.percent(15) {
            request.root_required = self.traits(1);
        }
        if minor >= 16 && self.percent(40) {
            request.limit = Some(self.random.random_range(1..=4));
        }
        let asked = QuestionKind::Candidates(request);
        Question { asked, minor }
    }

    fn group(&mut self, suffix: &str, minor: u8, names: &Names) -> RequestGroup {
        let mut group = RequestGroup {
            suffix: suffix.to_owned(),
            resources: self.resources(),
            ..RequestGroup::default()
        };
        if minor >= 17 && self.percent(20) {
            group.required = self.required(minor);
        }
        if minor >= 22 && self.percent(15) {
            let required: BTreeSet<_> = group.required.iter().flatten().cloned().collect();
            let forbidden = self.traits(1);
            group.forbidden = forbidden.difference(&required).cloned().collect();
        }
        if minor >= 21 && self.percent(20) {
            group.member_of = self.member_of(minor, names);
        }
        if minor >= 32 && self.percent(10) {
            group.not_member_of = self.some_aggregates(names);
        }
        if minor >= 31 && self.percent(20) {
            group.in_tree = Some(self.any_provider(names));
        }
        group
    }
}

/// Questions for every node at the end, in addition to those about existing data: consumers and
/// projects that may hold nothing, and searches of each kind.
pub(crate) fn last_questions(names: &Names) -> Vec<Question> {
    let consumers = names
        .consumers
        .iter()
        .copied()
        .map(QuestionKind::Allocations);
    let usages = names.projects.iter().map(|project| QuestionKind::Usages {
        project: project.clone(),
        user: None,
        consumer_type: None,
    });
    let group = |suffix: &str, class: &str| RequestGroup {
        suffix: suffix.to_owned(),
        resources: BTreeMap::from([(Given::from(class), 1)]),
        ..RequestGroup::default()
    };
    let search = |groups| CandidateRequest {
        groups,
        group_policy: Some(GroupPolicy::None),
        nested: true,
        mappings: true,
        ..CandidateRequest::default()
    };
    let member = RequestGroup {
        member_of: vec![names.aggregates.iter().cloned().map(Into::into).collect()],
        ..group("", CLASS)
    };
    let searches = [
        search(vec![group("", CLASS)]),
        search(vec![group("", "DISK_GB")]),
        search(vec![group("1", CLASS), group("2", "DISK_GB")]),
        search(vec![member]),
    ];
    let below: Vec<Uuid> = names.core.clone();
    let listed = below.into_iter().map(|uuid| {
        QuestionKind::Providers(ProviderFilter {
            in_tree: Some(Given::from(uuid.to_string())),
            ..ProviderFilter::default()
        })
    });
    consumers
        .chain(usages)
        .chain(listed)
        .chain(searches.map(QuestionKind::Candidates))
        .map(QuestionKind::newest)
        .collect()
}
