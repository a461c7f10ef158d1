//! The response of `GET /placementd/v1/refuge` in sentences.

use placement_wire::refuge::{EachRefuge, Refuge};

use crate::counted;

/// Whether some trees can be emptied, and the doubts about it, in lines.
pub fn refuge(answer: &Refuge<'_>) -> Vec<String> {
    let consumers = counted(answer.consumers, "consumer");
    let mut lines = vec![match (answer.consumers, answer.left.len()) {
        (0, _) => "there are no consumers to move".to_owned(),
        (_, 0) if answer.complete => format!("yes: room elsewhere for {consumers}"),
        (_, 0) => format!(
            "undecided: room elsewhere for {} of {consumers} so far",
            answer.moved
        ),
        (_, left) => format!("no: no room elsewhere for {left} of {consumers}"),
    }];
    if !answer.complete {
        lines.push(
            "the time limit was reached: the other consumers were not searched for".to_owned(),
        );
    } else if !answer.exact {
        lines.push("another assignment of the consumers may have room for more of them".to_owned());
    }
    if answer.migrations > 0 {
        let migrations = counted(answer.migrations, "migration");
        lines.push(format!("{migrations} in progress: not moved"));
    }
    lines
}

/// Whether each tree can be emptied by itself, and the doubts about it, in lines.
pub fn each_refuge(answer: &EachRefuge<'_>) -> Vec<String> {
    let trees = counted(answer.trees, "tree");
    let mut lines = vec![match answer.trees.saturating_sub(answer.empties) {
        0 if answer.complete && answer.trees == 0 => "there are no trees".to_owned(),
        0 if answer.complete => format!("yes: each of {trees} can be emptied by itself"),
        0 => format!("undecided: each of {trees} so far can be emptied by itself"),
        stuck => format!("no: {stuck} of {trees} cannot be emptied"),
    }];
    if !answer.complete {
        let why = "the other trees have too many consumers, or the time limit was reached";
        lines.push(why.to_owned());
    }
    if answer.left_out > 0 {
        lines.push(format!("{} of these are not in the list", answer.left_out));
    }
    lines
}

#[cfg(test)]
mod tests {
    use placement_wire::refuge::Left;

    use super::*;

    #[test]
    fn doubts_are_named() {
        let answer = Refuge {
            consumers: 2,
            moved: 2,
            complete: true,
            exact: true,
            ..Refuge::default()
        };
        assert_eq!(refuge(&answer), ["yes: room elsewhere for 2 consumers"]);
        let inexact = Refuge {
            moved: 1,
            left: vec![Left::default()],
            exact: false,
            ..answer.clone()
        };
        let expected = [
            "no: no room elsewhere for 1 of 2 consumers",
            "another assignment of the consumers may have room for more of them",
        ];
        assert_eq!(refuge(&inexact), expected);
        let late = Refuge {
            moved: 1,
            complete: false,
            migrations: 1,
            ..answer
        };
        let expected = [
            "undecided: room elsewhere for 1 of 2 consumers so far",
            "the time limit was reached: the other consumers were not searched for",
            "1 migration in progress: not moved",
        ];
        assert_eq!(refuge(&late), expected);
    }

    #[test]
    fn cluster_that_was_not_searched_to_the_end_is_undecided() {
        let late = EachRefuge {
            trees: 2,
            empties: 2,
            ..EachRefuge::default()
        };
        let expected = [
            "undecided: each of 2 trees so far can be emptied by itself",
            "the other trees have too many consumers, or the time limit was reached",
        ];
        assert_eq!(each_refuge(&late), expected);
        let stuck = EachRefuge {
            empties: 1,
            complete: true,
            left_out: 1,
            ..late
        };
        let expected = [
            "no: 1 of 2 trees cannot be emptied",
            "1 of these are not in the list",
        ];
        assert_eq!(each_refuge(&stuck), expected);
    }
}
