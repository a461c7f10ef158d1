//! `placementd recover`: continues with one node after a majority was lost for good.

use anyhow::bail;
use placement_raft_store::{Identity, LogId, Plan, StoreOptions, plan_recovery, recover};
use placement_words::nodes;
use uuid::Uuid;

use super::print;

/// Prints the plan; with `confirmed`, carries it out.
pub(crate) fn run(options: &StoreOptions, cluster: Uuid, confirmed: bool) -> anyhow::Result<()> {
    let plan = plan_recovery(options)?;
    print(&words(&plan))?;
    if !confirmed {
        bail!(
            "nothing was changed. If all of this is correct, run it again with \
             --yes-the-others-are-gone-for-ever"
        );
    }
    let done = recover(options, cluster)?;
    let Identity { node, cluster, .. } = done.is;
    let entry = done.entry;
    Ok(print(&format!(
        "node {node} is now the only voter of cluster {cluster}, from entry {entry} on\n\
         In its configuration: remove initial_members, and if cluster_id is set, change it to \
         {cluster}\n\
         Start it, wait for /readyz, and add nodes with empty data directories: \
         `placementctl join-token create`, `placementctl members promote`\n"
    ))?)
}

fn place(id: Option<LogId>) -> String {
    id.map_or("the beginning".to_owned(), |id| format!("entry {id}"))
}

fn words(plan: &Plan) -> String {
    let me = plan.identity.node;
    let (last, certain) = (plan.last, plan.certain);
    let voters: Vec<u64> = plan.members.voters.iter().flatten().copied().collect();
    let others: Vec<_> = (plan.members.members.keys())
        .filter(|id| **id != me)
        .collect();
    let index = |id: Option<LogId>| id.map_or(0, |id| id.index);
    let open = index(last).saturating_sub(index(certain));
    let mut text = format!(
        "node {me} of cluster {}, whose voters are {}\n\
         Kept for certain: everything up to {}, which is known to be committed.\n",
        plan.identity.cluster,
        nodes(&voters),
        place(certain),
    );
    if open > 0 {
        text += &format!(
            "Kept as well: {open} more entries, up to {}. They may or may not be committed; the \
            recovery commits them, even if a client received a failure for its write.\n",
            place(last)
        );
    }
    text += &format!(
        "Lost: everything that the other nodes have beyond {}, even if it was acknowledged to a \
         client. Of the remaining nodes, recover the one whose `last` has the highest term, and among \
         those the highest index (`placementd inspect` on each of them).\n\
         Must be true: so many of the nodes {others:?} are lost forever that the remaining ones are not a \
         majority. If a majority of them runs, there will be two clusters, and both accept claims.\n\
         Then: node {me} is the only voter of a new cluster. The old nodes are rejected, and so are \
         earlier session tokens.\n",
        place(last)
    );
    text
}
