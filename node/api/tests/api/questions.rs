//! "No valid host was found": questions of operators, each with the sentence by which
//! `placementctl explain` and the page answer it, and with the host that comes nearest.
//!
//! Add a question here if an answer is not what an expert would say.

use placement_wire::explain::{Explained, NearTree};
use placement_words::Words;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::cloud::{Cloud, uuid};

const WORDS: Words = Words(str::to_owned);

/// The names in queries and answers that stand for UUIDs, as `<cmp-1>`, and the numbers of these.
const NAMED: [(&str, u64); 11] = [
    ("cmp-3", 3),
    ("cmp-4", 4),
    ("cmp-5", 5),
    ("cmp-6", 6),
    ("az-1", 0xa1),
    ("az-2", 0xa2),
    ("az-full", 0xa3),
    ("az-disabled", 0xa4),
    ("with-nfs", 0xa5),
    ("nowhere", 0xff),
    ("server", 900),
];

fn fill_uuids(text: &str) -> String {
    NAMED.iter().fold(text.to_owned(), |text, (name, number)| {
        text.replace(&format!("<{name}>"), &uuid(*number))
    })
}

/// A real question to `explain`, and the expected texts.
struct Question {
    /// The query of Nova's scheduler.
    query: &'static str,
    /// The reason in `searches`, in the log and in the metric.
    reason: &'static str,
    /// The first line of the explanation.
    answer: &'static str,
    /// The nearest host, and what it lacks. Not checked if empty.
    nearest: &'static str,
}

const QUESTIONS: [Question; 25] = [
    // The flavor is larger than max_unit.
    Question {
        query: "resources=VCPU:20",
        reason: "unit",
        answer: "no candidates; there are candidates with VCPU:16 in place of 20 (max_unit is 16): 1 tree, such as cmp-1",
        nearest: "cmp-1 does not allow VCPU:20 in one allocation (max_unit is 16)",
    },
    // The disk is smaller than min_unit.
    Question {
        query: "resources=DISK_GB:5",
        reason: "unit",
        answer: "no candidates: 2 remaining trees do not allow DISK_GB:5 in one allocation (min_unit is 10)",
        nearest: "",
    },
    // The requested amount of disk is not a multiple of step_size.
    Question {
        query: "resources=DISK_GB:15",
        reason: "unit",
        answer: "no candidates; there are candidates with DISK_GB:10 in place of 15 (step_size is 10): 2 trees, such as cmp-1",
        nearest: "",
    },
    // Hosts reserve most of their processors.
    Question {
        query: "resources=VCPU:4&member_of=<az-2>",
        reason: "room",
        answer: "no candidates; there are candidates with VCPU:2 in place of 4: 2 trees, such as cmp-3",
        nearest: "cmp-3 has 2 of 2 VCPU free (4 are requested; 6 of 8 reserved)",
    },
    // The allocation ratio is below 1.
    Question {
        query: "resources=VCPU:4&in_tree=<cmp-4>",
        reason: "room",
        answer: "no candidates: cmp-4 has 2 of 2 VCPU free (4 are requested; total is 8, allocation_ratio is 0.25)",
        nearest: "",
    },
    // An availability zone is full.
    Question {
        query: "resources=VCPU:4&member_of=<az-full>",
        reason: "room",
        answer: "no candidates: 1 remaining tree has no VCPU free; 4 are requested; \
                 there are candidates without aggregate <az-full>: 2 trees, such as cmp-1",
        nearest: "cmp-5 has 0 of 8 VCPU free (4 are requested)",
    },
    // A host is requested by name, and full.
    Question {
        query: "resources=VCPU:4&in_tree=<cmp-5>",
        reason: "room",
        answer: "no candidates: cmp-5 has 0 of 8 VCPU free (4 are requested); held by <server>",
        nearest: "cmp-5 has 0 of 8 VCPU free (4 are requested)",
    },
    // Two letters are exchanged.
    Question {
        query: "resources=VPCU:4",
        reason: "unknown_name",
        answer: "no candidates: there is no resource class VPCU; similar: VCPU",
        nearest: "cmp-1 has no VPCU",
    },
    // A name is incomplete.
    Question {
        query: "resources=DISK:10",
        reason: "unknown_name",
        answer: "no candidates: there is no resource class DISK; similar: DISK_GB",
        nearest: "",
    },
    // A letter in place of a digit.
    Question {
        query: "resources=PCPU:1&required=CUSTOM_A10O",
        reason: "unknown_name",
        answer: "no candidates: there is no trait CUSTOM_A10O; similar: CUSTOM_A100",
        nearest: "",
    },
    // The trait exists, but no host reports it.
    Question {
        query: "resources=VCPU:4&required=HW_CPU_X86_AVX512F",
        reason: "unused_name",
        answer: "no candidates: no provider has the trait HW_CPU_X86_AVX512F",
        nearest: "",
    },
    // The trait is on a device, and not on the provider of the processors.
    Question {
        query: "resources=PCPU:4&required=CUSTOM_A100",
        reason: "required",
        answer: "no candidates: no remaining tree has trait CUSTOM_A100 on a provider of PCPU; \
                 numa-1 has it on numa-1_gpu0; there are candidates without trait CUSTOM_A100: 1 tree, such as numa-1",
        nearest: "numa-1 lacks trait CUSTOM_A100 on a suitable provider (numa-1_gpu0 has it)",
    },
    // The host is disabled.
    Question {
        query: "resources=VCPU:4&required=!COMPUTE_STATUS_DISABLED&member_of=<az-disabled>",
        reason: "forbidden",
        answer: "no candidates; there are candidates with trait COMPUTE_STATUS_DISABLED allowed: 1 tree, such as cmp-6",
        nearest: "cmp-6 has the forbidden trait COMPUTE_STATUS_DISABLED",
    },
    // A host aggregate of Nova is not synchronized to Placement.
    Question {
        query: "resources=VCPU:4&member_of=<nowhere>",
        reason: "unused_name",
        answer: "no candidates: no provider has the aggregate <nowhere>",
        nearest: "",
    },
    // The requested host was deleted.
    Question {
        query: "resources=VCPU:4&in_tree=<nowhere>",
        reason: "unknown_name",
        answer: "no candidates: there is no provider <nowhere>",
        nearest: "",
    },
    // Five devices on hosts that have four.
    Question {
        query: "resources1=CUSTOM_GPU:1&resources2=CUSTOM_GPU:1&resources3=CUSTOM_GPU:1&resources4=CUSTOM_GPU:1\
                &resources5=CUSTOM_GPU:1&group_policy=isolate",
        reason: "together",
        answer: "no candidates: at most 4 CUSTOM_GPU on one host; 5 are requested (groups 1 to 5)",
        nearest: "numa-1 has at most 4 CUSTOM_GPU for groups 1 to 5 (5 are requested)",
    },
    // A server larger than a NUMA node.
    Question {
        query: "resources=PCPU:12,MEMORY_MB:1024",
        reason: "room",
        answer: "no candidates; there are candidates with PCPU:8 in place of 12: 1 tree, such as numa-1",
        nearest: "numa-1 has 8 of 8 PCPU free (12 are requested)",
    },
    // Three devices near one NUMA node, each of which has two.
    Question {
        query: "resources1=CUSTOM_GPU:1&resources2=CUSTOM_GPU:1&resources3=CUSTOM_GPU:1&required_numa=HW_NUMA_ROOT\
                &same_subtree=1,2,3,_numa&group_policy=isolate",
        reason: "together",
        answer: "no candidates; there are candidates without same_subtree=1,2,3,_numa: 1 tree, such as numa-1",
        nearest: "numa-1 cannot serve all groups at once",
    },
    // Two groups that must not share a provider.
    Question {
        query: "resources1=VCPU:2&resources2=VCPU:2&group_policy=isolate",
        reason: "together",
        answer: "no candidates; there are candidates without group_policy=isolate: 2 trees, such as cmp-1",
        nearest: "",
    },
    // Shared storage is too small.
    Question {
        query: "resources=VCPU:4,DISK_GB:2000",
        reason: "room",
        answer: "no candidates; there are candidates with DISK_GB:1000 in place of 2000: 1 tree, such as cmp-1",
        nearest: "cmp-1 has 1000 of 1000 DISK_GB free (2000 are requested)",
    },
    // The host is not in the aggregate of the shared storage.
    Question {
        query: "resources=VCPU:4,DISK_GB:100&in_tree=<cmp-6>",
        reason: "inventory",
        answer: "no candidates: cmp-6 has no DISK_GB",
        nearest: "",
    },
    // The trait must be on the host itself.
    Question {
        query: "resources=PCPU:4&root_required=HW_CPU_X86_AVX2",
        reason: "root_required",
        answer: "no candidates; there are candidates without trait HW_CPU_X86_AVX2 on the root: 1 tree, such as numa-1",
        nearest: "",
    },
    // The only suitable host is in an excluded aggregate.
    Question {
        query: "resources=PCPU:4&member_of=!<az-1>",
        reason: "inventory",
        answer: "no candidates: no remaining tree has PCPU; \
                 there are candidates with aggregate <az-1> allowed: 1 tree, such as numa-1",
        nearest: "",
    },
    // No host has both classes.
    Question {
        query: "resources=VCPU:4&resources1=CUSTOM_GPU:1",
        reason: "inventory",
        answer: "no candidates: no remaining tree has CUSTOM_GPU for group 1",
        nearest: "",
    },
    // Placement is not the cause.
    Question {
        query: "resources=VCPU:4",
        reason: "",
        answer: "candidates on 2 of 8 trees",
        nearest: "",
    },
];

/// Creates a provider with inventories, traits and aggregates.
async fn provider(
    cloud: &Cloud,
    (number, name): (u64, &str),
    parent: Option<u64>,
    inventories: Value,
    traits: &[&str],
    aggregates: &[&str],
) {
    let mut body = json!({"name": name, "uuid": uuid(number)});
    if let Some(parent) = parent {
        body["parent_provider_uuid"] = json!(uuid(parent));
    }
    cloud.post("/resource_providers", body).expect(200).await;
    let uuids: Vec<_> = aggregates.iter().map(|name| fill_uuids(name)).collect();
    for (what, content) in [
        ("inventories", inventories),
        ("traits", json!(traits)),
        ("aggregates", json!(uuids)),
    ] {
        let path = format!("/resource_providers/{}/{what}", uuid(number));
        let mut body = json!({"resource_provider_generation": cloud.generation(number).await});
        body[what] = content;
        cloud.put(&path, body).expect(200).await;
    }
}

/// Six hosts with processors, a host with two NUMA nodes of two devices each, and shared storage
/// that one host can use.
async fn cloud() -> Cloud {
    let cloud = Cloud::new();
    for path in ["/resource_classes/CUSTOM_GPU", "/traits/CUSTOM_A100"] {
        cloud.ask("PUT", path).expect(201).await;
    }
    let large = json!({"VCPU": {"total": 32, "max_unit": 16}, "MEMORY_MB": {"total": 65536}});
    let plain = json!({"VCPU": {"total": 8}});
    let reserved = json!({"VCPU": {"total": 8, "reserved": 6}});
    let scarce = json!({"VCPU": {"total": 8, "allocation_ratio": 0.25}});
    let (avx, off) = (&["HW_CPU_X86_AVX2"][..], &["COMPUTE_STATUS_DISABLED"][..]);
    for (number, name, inventories, traits, aggregates) in [
        (1, "cmp-1", &large, avx, &["<az-1>", "<with-nfs>"][..]),
        (2, "cmp-2", &large, avx, &["<az-1>"]),
        (3, "cmp-3", &reserved, &[], &["<az-2>"]),
        (4, "cmp-4", &scarce, &[], &["<az-2>"]),
        (5, "cmp-5", &plain, &[], &["<az-full>"]),
        (6, "cmp-6", &plain, off, &["<az-disabled>"]),
    ] {
        let inventories = inventories.clone();
        provider(
            &cloud,
            (number, name),
            None,
            inventories,
            traits,
            aggregates,
        )
        .await;
    }
    // cmp-2 has two processors left, cmp-5 none.
    for (consumer, host, amount) in [(900, 5, 8), (901, 2, 15), (902, 2, 15)] {
        let claimed = cloud.claim(consumer, host, "VCPU", amount).await;
        claimed.expect(204);
    }
    provider(&cloud, (7, "numa-1"), None, json!({}), &[], &["<az-1>"]).await;
    for numa in [0, 1] {
        let node = 70 + 10 * numa;
        let own = json!({"PCPU": {"total": 8}, "MEMORY_MB": {"total": 32768}});
        let name = format!("numa-1_numa{numa}");
        provider(&cloud, (node, &name), Some(7), own, &["HW_NUMA_ROOT"], &[]).await;
        for device in [0, 1] {
            let name = format!("numa-1_gpu{}", 2 * numa + device);
            let named = (node + 1 + device, &*name);
            let own = json!({"CUSTOM_GPU": {"total": 1}});
            provider(&cloud, named, Some(node), own, &["CUSTOM_A100"], &[]).await;
        }
    }
    let disk = json!({"DISK_GB": {"total": 1000, "min_unit": 10, "step_size": 10}});
    let shares = &["MISC_SHARES_VIA_AGGREGATE"];
    provider(&cloud, (8, "nfs-1"), None, disk, shares, &["<with-nfs>"]).await;
    cloud
}

/// A request for one host is not answered with other hosts, and those are described correctly.
#[tokio::test]
async fn other_hosts_than_the_requested_one_are_not_shown() {
    let cloud = cloud().await;
    let query = fill_uuids("resources=VCPU:20&in_tree=<cmp-4>");
    let path = format!("/placementd/v1/explain?{query}");
    let found = cloud.read(&path).await;
    let explained = Explained::deserialize(&found).unwrap();
    let explanation = &explained.explanation;
    let near = |one: &NearTree<'_>| WORDS.near(one);
    let all: Vec<_> = explanation.nearest.iter().map(near).collect();
    // Its shared storage has no VCPU; cmp-1 itself has.
    let mut others = all.iter().filter(|line| line.starts_with("cmp-1 "));
    let other = others.next().unwrap();
    assert!(other.contains("VCPU:20 in one allocation"), "{all:?}");
    let shown: Vec<_> = WORDS.nearest(explanation).into_iter().map(near).collect();
    assert_eq!(shown, all[..1]);
    assert!(shown[0].starts_with("cmp-4 "), "{shown:?}");
    assert_eq!(WORDS.nearest_title(explanation), "what nearly fits");
}

#[tokio::test]
async fn questions_have_the_answers_of_an_expert() {
    let cloud = cloud().await;
    let mut wrong = Vec::new();
    for question in &QUESTIONS {
        let query = fill_uuids(question.query);
        let path = format!("/placementd/v1/explain?{query}");
        let found = cloud.read(&path).await;
        let explained = Explained::deserialize(&found).unwrap();
        let explanation = &explained.explanation;
        let nearest = explanation.nearest.first().map(|near| WORDS.near(near));
        let answers = [
            explanation.reason.as_deref().unwrap_or_default().to_owned(),
            WORDS.cause(explanation),
            match question.nearest {
                "" => String::new(),
                _ => nearest.unwrap_or_default(),
            },
        ];
        let expected = [question.reason, question.answer, question.nearest].map(fill_uuids);
        for (answer, expected) in answers.iter().zip(&expected) {
            if answer != expected {
                wrong.push(format!(
                    "{query}\n  answer    {answer}\n  expected  {expected}"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
