# shellcheck shell=bash
# Sourced by the scripts: what a build needs, found or made once. Prints to stderr only.
#
# RocksDB is the longest part of a build by far. Cargo compiles it again for each target directory,
# profile, feature set and RUSTFLAGS, so it is compiled once for tests and once for releases, apart
# from the rest, and kept as a static library under the user's cache; every build links that.

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
placementd_cache=${XDG_CACHE_HOME:-$HOME/.cache}/placementd

# shellcheck source=scripts/lib/libclang.sh
. "$repository/scripts/lib/libclang.sh"
# shellcheck source=scripts/lib/needs.sh
. "$repository/scripts/lib/needs.sh"
# shellcheck source=scripts/lib/rocksdb.sh
. "$repository/scripts/lib/rocksdb.sh"

say() {
    printf '==> %s\n' "$*" >&2
}

fail() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

elapsed() {
    local seconds=$(($(date +%s) - $1))
    printf '%d:%02d' $((seconds / 60)) $((seconds % 60))
}

# with_heartbeat WHAT COMMAND...: runs the command in the foreground and says every ten seconds that
# it is still at it.
with_heartbeat() {
    local what=$1 started beat status=0
    shift
    started=$(date +%s)
    # It ends by itself when the script is gone, whatever ended the script.
    (
        while sleep 10 2>/dev/null && kill -0 "$$" 2>/dev/null; do
            printf '    ... %s: %s\n' "$what" "$(elapsed "$started")" >&2
        done
    ) </dev/null >/dev/null &
    beat=$!
    "$@" || status=$?
    kill "$beat" 2>/dev/null || true
    wait "$beat" 2>/dev/null || true
    return "$status"
}

# compile WHAT COMMAND...: runs a cargo command. Where it says that libclang or clang's headers are
# missing, installs them and runs it once more: what was looked for before is a guess, this is not.
compile() {
    local what=$1 log status=0
    shift
    log=$(mktemp)
    compile_once "$log" "$what" "$@" || status=$?
    if [ "$status" != 0 ] && misses_libclang "$log"; then
        if [ -n "${LIBCLANG_PATH+set}" ]; then
            say "LIBCLANG_PATH is ignored: bindgen did not get on with what is in $LIBCLANG_PATH"
            unset LIBCLANG_PATH
        fi
        install_packages "bindgen, which misses a part of libclang" libclang-dev
        status=0
        compile_once "$log" "$what" "$@" || status=$?
        if [ "$status" != 0 ] && misses_libclang "$log"; then
            rm -f "$log"
            fail "libclang-dev is installed, and bindgen still does not find what it needs. It takes the newest of these: $(find_libclang | tr '\n' ' '). LIBCLANG_PATH=FOLDER chooses another one"
        fi
    fi
    rm -f "$log"
    return "$status"
}

# compile_once LOG WHAT COMMAND...: keeps what the command writes to stderr, and shows it.
compile_once() {
    local log=$1 what=$2 colour=${CARGO_TERM_COLOR:-}
    shift 2
    if [ -z "$colour" ] && [ -t 2 ]; then colour=always; fi
    # A pipe and no process substitution: bash waits for all of a pipe, so the log is whole.
    {
        CARGO_TERM_COLOR=${colour:-auto} with_heartbeat "$what" "$@" 2>&1 >&3 3>&- | tee "$log" >&2
        return "${PIPESTATUS[0]}"
    } 3>&1
}

# Compiles librocksdb.a into a directory of the cache that is complete or absent.
ensure_rocksdb() {
    local directory=$1 scratch
    [ -f "$directory/librocksdb.a" ] && return 0
    ensure_command flock util-linux "taking turns with other builds"
    mkdir -p "$placementd_cache"
    # Two builds at once take turns; the second finds the library of the first.
    exec 8>"$placementd_cache/lock"
    if ! flock -n 8; then
        with_heartbeat "waiting for another build of RocksDB" flock 8
    fi
    if [ ! -f "$directory/librocksdb.a" ]; then
        say "compiling RocksDB once, into $directory (some three minutes on two cores)"
        scratch=$(mktemp -d "$placementd_cache/building.XXXXXX")
        if ! with_heartbeat "compiling RocksDB" compile_rocksdb "$scratch"; then
            rm -rf "$scratch"
            fail "RocksDB did not compile; the reason stands above"
        fi
        mkdir "$scratch/done"
        mv "$scratch/librocksdb.a" "$scratch/done/librocksdb.a"
        rm -rf "$directory"
        mv -T "$scratch/done" "$directory"
        rm -rf "$scratch"
    fi
    exec 8>&-
}

# Everything a cargo command of this workspace needs.
build_env() {
    # The flags of .cargo/config.toml count only if the variable is not set.
    if [ -n "${RUSTFLAGS+set}" ]; then
        printf 'note: RUSTFLAGS is ignored: it would replace the flags in .cargo/config.toml\n' >&2
        unset RUSTFLAGS
    fi
    ensure_rust
    ensure_build_packages ""
    local directory
    directory=$(rocksdb_directory)
    ensure_rocksdb "$directory"
    export ROCKSDB_LIB_DIR=$directory ROCKSDB_STATIC=1
}

# The same for a release.
release_env() {
    rocksdb_optimisation=-O2
    build_env
}

# Prints what makes another shell ready for cargo, for `eval`.
print_exports() {
    build_env >&2
    printf 'unset RUSTFLAGS\n'
    [ -n "${LIBCLANG_PATH+set}" ] || printf 'unset LIBCLANG_PATH\n'
    [ -z "${RUSTUP_TOOLCHAIN:-}" ] || printf 'export RUSTUP_TOOLCHAIN=%q\n' "$RUSTUP_TOOLCHAIN"
    printf 'export PATH=%q ROCKSDB_LIB_DIR=%q ROCKSDB_STATIC=1\n' "$PATH" "$ROCKSDB_LIB_DIR"
}

# Where cargo puts what it builds; variables and cargo's own configuration choose it.
target_directory() {
    local found
    found=$(cd "$repository" && cargo metadata --locked --offline --no-deps --format-version 1 2>/dev/null |
        sed -nE 's/.*"target_directory":"([^"]*)".*/\1/p') || found=''
    printf '%s\n' "${found:-$repository/target}"
}

# Builds the binaries and the tests, as `build_binaries dev` and `cargo test --workspace` would one
# after the other.
build_all() {
    (cd "$repository" && compile "building" cargo build --locked --workspace --bins --tests >&2)
}

# build_binaries PROFILE [NAME...]: builds the binaries, or only these, with cargo's profile `dev`
# or `release`. Always of the whole workspace: a part of it alone would choose other features of its
# dependencies, and they would be compiled again.
build_binaries() {
    local profile=$1 chosen=() name
    shift
    for name in "$@"; do
        chosen+=(--bin "$name")
    done
    [ ${#chosen[@]} -gt 0 ] || chosen=(--bins)
    (cd "$repository" && compile "building" \
        cargo build --locked --workspace --profile "$profile" "${chosen[@]}" >&2)
}
