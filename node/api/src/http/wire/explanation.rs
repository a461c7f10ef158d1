//! Explanations of the model as `/placementd/v1/explain` writes them.

use placement_model::query::explain::{
    AbsentName, Atom, Bound, ClassShortage, Detail, Explanation, Holder, Kind, Name, NearTree,
    ReducedCapacity, Relaxation, RelaxedCondition, Stage, TraitElsewhere, UnmetCondition, Verdict,
};
use placement_wire::explain as wire;

use super::own::{self, named};

/// The JSON form of an explanation.
pub(crate) fn shown(found: &Explanation) -> wire::Explanation<'_> {
    wire::Explanation {
        verdict: match found.verdict {
            Verdict::None => wire::Verdict::None,
            Verdict::Some => wire::Verdict::Some,
            Verdict::Undecided => wire::Verdict::Undecided,
        },
        reason: found.reason.map(|reason| reason.as_str().into()),
        cause: found.cause,
        trees: found.trees,
        with_candidates: found.with_candidates,
        undecided: found.undecided,
        unknown: found.unknown.iter().map(absent).collect(),
        unused: found.unused.iter().map(absent).collect(),
        funnel: found.funnel.iter().map(stage).collect(),
        relaxations: found.relaxations.iter().map(relaxation).collect(),
        nearest: found.nearest.iter().map(near).collect(),
    }
}

fn absent(absent: &AbsentName) -> wire::AbsentName<'_> {
    wire::AbsentName {
        name: match &absent.name {
            Name::Class(name) => wire::Name::Class(name.as_str().into()),
            Name::Trait(name) => wire::Name::Trait(name.as_str().into()),
            Name::Aggregate(uuid) => wire::Name::Aggregate(uuid.as_str().into()),
            Name::Provider(uuid) => wire::Name::Provider(uuid.to_string().into()),
        },
        nearest: absent.nearest.iter().map(|name| name.into()).collect(),
    }
}

fn atom(atom: &Atom) -> wire::Atom<'_> {
    wire::Atom {
        kind: kind(atom.kind),
        group: (&atom.group).into(),
        class: atom.class.as_ref().map(|class| class.as_str().into()),
        asked: atom.asked,
        traits: atom.traits.iter().map(|name| name.into()).collect(),
        aggregates: atom.aggregates.iter().map(|uuid| uuid.into()).collect(),
        provider: atom.provider.as_ref().map(|uuid| uuid.to_string().into()),
    }
}

/// In JSON the names equal [`Kind::as_str`], which a test checks.
fn kind(kind: Kind) -> wire::Kind {
    match kind {
        Kind::InTree => wire::Kind::InTree,
        Kind::MemberOf => wire::Kind::MemberOf,
        Kind::RootRequired => wire::Kind::RootRequired,
        Kind::Inventory => wire::Kind::Inventory,
        Kind::Required => wire::Kind::Required,
        Kind::Forbidden => wire::Kind::Forbidden,
        Kind::Unit => wire::Kind::Unit,
        Kind::Room => wire::Kind::Room,
        Kind::Together => wire::Kind::Together,
    }
}

fn stage(stage: &Stage) -> wire::Stage<'_> {
    wire::Stage {
        atom: atom(&stage.atom),
        left: stage.left,
        gone: stage.gone,
        most_free: stage.most_free,
        detail: detail(&stage.detail),
        examples: stage.examples.iter().map(named).collect(),
    }
}

fn detail(detail: &Detail) -> wire::Detail<'_> {
    wire::Detail {
        bound: detail.bound.map(bound),
        elsewhere: detail.elsewhere.as_ref().map(elsewhere),
        short: detail.short.as_ref().map(short),
    }
}

fn bound(bound: Bound) -> wire::Bound {
    match bound {
        Bound::MaxUnit(units) => wire::Bound::MaxUnit(units),
        Bound::MinUnit(units) => wire::Bound::MinUnit(units),
        Bound::StepSize(units) => wire::Bound::StepSize(units),
    }
}

fn elsewhere(elsewhere: &TraitElsewhere) -> wire::TraitElsewhere<'_> {
    wire::TraitElsewhere {
        root: named(&elsewhere.root),
        provider: named(&elsewhere.provider),
    }
}

fn short(short: &ClassShortage) -> wire::ClassShortage<'_> {
    wire::ClassShortage {
        class: short.class.as_str().into(),
        asked: short.asked,
        most: short.most,
        groups: short.groups.iter().map(|group| group.into()).collect(),
    }
}

fn relaxation(relaxation: &Relaxation) -> wire::Relaxation<'_> {
    wire::Relaxation {
        less: relaxation.less.iter().map(less).collect(),
        trees: relaxation.trees,
        undecided: relaxation.undecided,
        query: (&relaxation.query).into(),
        example: named(&relaxation.example),
    }
}

fn less(less: &RelaxedCondition) -> wire::RelaxedCondition<'_> {
    wire::RelaxedCondition {
        atom: atom(&less.atom),
        enough: less.enough,
        bound: less.bound.map(bound),
    }
}

fn near(near: &NearTree) -> wire::NearTree<'_> {
    wire::NearTree {
        root: named(&near.root),
        lacks: near.lacks.iter().map(lack).collect(),
        holders: near.holders.iter().map(holder).collect(),
        holders_more: near.holders_more,
    }
}

fn lack(lack: &UnmetCondition) -> wire::UnmetCondition<'_> {
    wire::UnmetCondition {
        atom: atom(&lack.atom),
        free: lack.free,
        capacity: lack.capacity,
        reduced: lack.reduced.map(reduced),
        detail: detail(&lack.detail),
    }
}

fn reduced(reduced: ReducedCapacity) -> wire::ReducedCapacity {
    wire::ReducedCapacity {
        total: reduced.total,
        reserved: reduced.reserved,
        allocation_ratio: reduced.allocation_ratio,
    }
}

fn holder(holder: &Holder) -> wire::Holder<'_> {
    let consumer_type = holder.consumer_type.as_ref();
    wire::Holder {
        consumer: holder.consumer.to_string().into(),
        r#type: consumer_type.map(|name| name.as_str().into()),
        project: holder.project.as_str().into(),
        class: holder.class.as_str().into(),
        amount: holder.amount,
        since: holder.since.rfc3339_seconds().map(Into::into),
        hold: holder.hold.as_ref().map(own::hold),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_have_one_name_in_answers_logs_and_metrics() {
        for one in [
            Kind::InTree,
            Kind::MemberOf,
            Kind::RootRequired,
            Kind::Inventory,
            Kind::Required,
            Kind::Forbidden,
            Kind::Unit,
            Kind::Room,
            Kind::Together,
        ] {
            let written = serde_json::to_value(kind(one)).unwrap();
            assert_eq!(written, one.as_str());
        }
    }
}
