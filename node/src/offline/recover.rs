//! `placementd recover`: one node goes on alone after a majority was lost forever.

use anyhow::bail;
use placement_raft_store::{Identity, LogId, Plan, StoreOptions, plan_recovery, recover};
use uuid::Uuid;

use super::print;

/// Prints what would be done, and with `confirmed` does it.
pub(crate) fn run(options: &StoreOptions, cluster: Uuid, confirmed: bool) -> anyhow::Result<()> {
    let plan = plan_recovery(options)?;
    print(&words(&plan))?;
    if !confirmed {
        bail!(
            "nothing was changed. If all of this is so, run it again with \
             --yes-the-others-are-gone-for-ever"
        );
    }
    let done = recover(options, cluster)?;
    let Identity { node, cluster, .. } = done.is;
    let entry = done.entry;
    Ok(print(&format!(
        "node {node} is the only voter of cluster {cluster} now, from entry {entry} on\n\
         In its configuration: take initial_members out, and if cluster_id is there, set it to \
         {cluster}\n\
         Start it, wait for /readyz, and bring nodes with empty data directories in: \
         `placementctl join-token create`, `placementctl members promote`\n"
    ))?)
}

fn place(id: Option<LogId>) -> String {
    id.map_or("the beginning".to_owned(), |id| format!("entry {id}"))
}

fn words(plan: &Plan) -> String {
    let me = plan.identity.node;
    let (last, certain) = (plan.last, plan.certain);
    let voters: Vec<_> = plan.members.voters.iter().flatten().collect();
    let others: Vec<_> = (plan.members.members.keys())
        .filter(|id| **id != me)
        .collect();
    let index = |id: Option<LogId>| id.map_or(0, |id| id.index);
    let open = index(last).saturating_sub(index(certain));
    let mut text = format!(
        "node {me} of cluster {}, whose voters are {voters:?}\n\
         Kept for certain: everything up to {}, which is known to be committed.\n",
        plan.identity.cluster,
        place(certain),
    );
    if open > 0 {
        text += &format!(
            "Kept as well: {open} more entries, up to {}. They may be committed or not; by this they \
             are, even if a client was answered that its write failed.\n",
            place(last)
        );
    }
    text += &format!(
        "Lost: whatever the other nodes have beyond {}, even if a client was answered that it was carried \
         out. Of the nodes that are left, recover the one whose `last` has the highest term, and among \
         those the highest index (`placementd inspect` on each of them).\n\
         Must be true: the nodes {others:?} are gone forever, or enough of them that the others are \
         no majority. If a majority of them runs, there will be two clusters, and both take claims.\n\
         Then: node {me} is the only voter of a new cluster. The old nodes are refused, and so are \
         session tokens of before.\n",
        place(last)
    );
    text
}
