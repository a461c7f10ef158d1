# shellcheck shell=bash
# Sourced by scripts/test: runs the parts of the suite and counts what their output says.

started=$(date +%s)
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
passed=0
failed=0
broken=()

# part NAME COMMAND...: runs one part to its end, whatever the others did, and keeps its output.
part() {
    local name=$1 status
    shift
    say "$name ($(elapsed "$started") since the start)"
    # A pipe and no process substitution: bash waits for all of a pipe, so the copy is whole.
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

# count NAME PATTERN: adds what a part's closing lines say. A part that breaks without counting a
# failure is one, and so is a part that counts nothing.
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

# closing: says what broke and what was skipped, and counts. Fails if anything failed, and where CI
# is set if anything was skipped. What was not to be reached from here counts as skipped and fails
# nothing: no change to this machine would bring it.
closing() {
    local name skips=() unreached=()
    # With one test at a time, libtest's own words stand before it in the line.
    mapfile -t skips < <(cat "$logs"/* 2>/dev/null | sed -nE 's/^.*(SKIPPED: )/\1/p')
    mapfile -t unreached < <(cat "$logs"/* 2>/dev/null | sed -nE 's/^.*(UNREACHED: )/\1/p')
    say "took $(elapsed "$started")"
    for name in "${broken[@]}"; do
        printf 'FAILED: %s\n' "$name"
    done
    [ ${#skips[@]} = 0 ] || printf '%s\n' "${skips[@]}"
    if [ ${#skips[@]} != 0 ] && [ -n "${CI:-}" ]; then
        printf 'FAILED: nothing may be skipped where CI is set\n'
        failed=$((failed + 1))
    fi
    [ ${#unreached[@]} = 0 ] || printf '%s\n' "${unreached[@]}"
    printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" $((${#skips[@]} + ${#unreached[@]}))
    [ "$failed" = 0 ] && [ ${#broken[@]} = 0 ]
}
