# shellcheck shell=bash
# Sourced by scripts/test and scripts/nightly: runs the parts of the suite and counts their results.

started=$(date +%s)
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
passed=0
failed=0
broken=()

# part NAME COMMAND...: runs one part, even if others have failed, and keeps its output.
part() {
    local name=$1 status
    shift
    say "$name ($(elapsed "$started") since the start)"
    # A pipe instead of process substitution: bash waits for the whole pipe, so the copy is
    # complete.
    {
        with_heartbeat "$name" "$@" 2>&1 | tee "$logs/$name"
        status=${PIPESTATUS[0]}
    } || true
    if [ "$status" != 0 ]; then
        broken+=("$name")
    fi
}

is_broken() {
    [[ " ${broken[*]} " == *" $1 "* ]]
}

# verdict NAME: counts a part as one test.
verdict() {
    if is_broken "$1"; then failed=$((failed + 1)); else passed=$((passed + 1)); fi
}

# count NAME PATTERN: adds the counts in a part's last lines. A part that fails without a counted
# failure counts as one failure. A part that counts nothing has failed.
count() {
    local name=$1 p f
    p=$(sed -nE "s/$2/\1/p" "$logs/$name" | awk '{ n += $1 } END { print n + 0 }')
    f=$(sed -nE "s/$2/\2/p" "$logs/$name" | awk '{ n += $1 } END { print n + 0 }')
    if [ "$p" = 0 ] && [ "$f" = 0 ] && ! is_broken "$name"; then
        say "$name ran no test"
        broken+=("$name")
    fi
    if [ "$f" = 0 ] && is_broken "$name"; then
        f=1
    fi
    passed=$((passed + p))
    failed=$((failed + f))
}

# closing: prints failures, skips and counts. Fails if anything failed, and with CI set also if
# anything was skipped. Checks with unreachable services count as skipped and never fail, since no
# change to this machine would help.
closing() {
    local name skips=() unreached=()
    # With a single test thread, libtest prints the test's name before it on the same line.
    mapfile -t skips < <(cat "$logs"/* 2>/dev/null | sed -nE 's/^.*(SKIPPED: )/\1/p')
    mapfile -t unreached < <(cat "$logs"/* 2>/dev/null | sed -nE 's/^.*(UNREACHED: )/\1/p')
    say "took $(elapsed "$started")"
    for name in "${broken[@]}"; do
        printf 'FAILED: %s\n' "$name"
    done
    [ ${#skips[@]} = 0 ] || printf '%s\n' "${skips[@]}"
    if [ ${#skips[@]} != 0 ] && [ -n "${CI:-}" ]; then
        printf 'FAILED: tests were skipped although CI is set\n'
        failed=$((failed + 1))
    fi
    [ ${#unreached[@]} = 0 ] || printf '%s\n' "${unreached[@]}"
    printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" $((${#skips[@]} + ${#unreached[@]}))
    [ "$failed" = 0 ] && [ ${#broken[@]} = 0 ]
}
