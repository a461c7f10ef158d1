# shellcheck shell=bash
# Sourced by the scripts: finds or installs everything that a build needs. Prints to stderr only.
#
# RocksDB dominates the build time. Cargo would compile it again for each target directory, profile,
# feature set and RUSTFLAGS. So these scripts compile it once for tests and once for releases, and
# keep it as a static library in the user's cache, which every build links.

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
placementd_cache=${XDG_CACHE_HOME:-$HOME/.cache}/placementd

# shellcheck source=scripts/lib/arguments.sh
. "$repository/scripts/lib/arguments.sh"
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

# with_heartbeat WHAT COMMAND...: runs the command in the foreground and prints the elapsed time
# every ten seconds.
with_heartbeat() {
    local what=$1 started beat status=0
    shift
    started=$(date +%s)
    # The loop ends by itself when the script has ended, however that happened.
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

# compile WHAT COMMAND...: runs a cargo command. If its output says that libclang or clang's headers
# are missing, installs them and runs it once more. The earlier checks can only guess this.
compile() {
    local what=$1 log status=0
    shift
    log=$(mktemp)
    compile_once "$log" "$what" "$@" || status=$?
    if [ "$status" != 0 ] && misses_libclang "$log"; then
        if [ -n "${LIBCLANG_PATH+set}" ]; then
            say "LIBCLANG_PATH is ignored: bindgen cannot use the contents of $LIBCLANG_PATH"
            unset LIBCLANG_PATH
        fi
        install_packages "bindgen, which needs libclang" libclang-dev
        status=0
        compile_once "$log" "$what" "$@" || status=$?
        if [ "$status" != 0 ] && misses_libclang "$log"; then
            rm -f "$log"
            fail "libclang-dev is installed, and bindgen still does not find it. It uses the newest of these: $(find_libclang | tr '\n' ' '). set LIBCLANG_PATH to the directory of another one"
        fi
    fi
    rm -f "$log"
    return "$status"
}

# compile_once LOG WHAT COMMAND...: copies the command's stderr to the log and shows it.
compile_once() {
    local log=$1 what=$2 colour=${CARGO_TERM_COLOR:-}
    shift 2
    if [ -z "$colour" ] && [ -t 2 ]; then colour=always; fi
    # A pipe instead of process substitution: bash waits for the whole pipe, so the log is complete.
    {
        CARGO_TERM_COLOR=${colour:-auto} with_heartbeat "$what" "$@" 2>&1 >&3 3>&- | tee "$log" >&2
        return "${PIPESTATUS[0]}"
    } 3>&1
}

# Compiles librocksdb.a into a cache directory, atomically.
ensure_rocksdb() {
    local directory=$1 scratch
    [ -f "$directory/librocksdb.a" ] && return 0
    ensure_command flock util-linux "locking against concurrent builds"
    mkdir -p "$placementd_cache"
    # Concurrent builds take turns; the second finds the library of the first.
    exec 8>"$placementd_cache/lock"
    if ! flock -n 8; then
        with_heartbeat "waiting for another build of RocksDB" flock 8
    fi
    if [ ! -f "$directory/librocksdb.a" ]; then
        say "compiling RocksDB once, into $directory (about three minutes on two cores)"
        scratch=$(mktemp -d "$placementd_cache/building.XXXXXX")
        if ! with_heartbeat "compiling RocksDB" compile_rocksdb "$scratch"; then
            rm -rf "$scratch"
            fail "RocksDB did not compile; see the error above"
        fi
        mkdir "$scratch/done"
        mv "$scratch/librocksdb.a" "$scratch/done/librocksdb.a"
        rm -rf "$directory"
        mv -T "$scratch/done" "$directory"
        rm -rf "$scratch"
    fi
    exec 8>&-
}

# Prepares the environment for cargo commands of this workspace.
build_env() {
    # The variable would replace the flags in .cargo/config.toml.
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

# Like build_env, for release builds.
release_env() {
    rocksdb_optimisation=-O2
    build_env
}

# Prints the exports that another shell needs for cargo, for `eval`.
print_exports() {
    build_env >&2
    printf 'unset RUSTFLAGS\n'
    [ -n "${LIBCLANG_PATH+set}" ] || printf 'unset LIBCLANG_PATH\n'
    [ -z "${RUSTUP_TOOLCHAIN:-}" ] || printf 'export RUSTUP_TOOLCHAIN=%q\n' "$RUSTUP_TOOLCHAIN"
    printf 'export PATH=%q ROCKSDB_LIB_DIR=%q ROCKSDB_STATIC=1\n' "$PATH" "$ROCKSDB_LIB_DIR"
}

# Prints cargo's target directory, as configured by variables and cargo's configuration.
target_directory() {
    local found
    found=$(cd "$repository" && cargo metadata --locked --offline --no-deps --format-version 1 2>/dev/null |
        sed -nE 's/.*"target_directory":"([^"]*)".*/\1/p') || found=''
    printf '%s\n' "${found:-$repository/target}"
}

# Builds binaries and tests in one step instead of `build_binaries dev` and `cargo test
# --workspace`.
build_all() {
    (cd "$repository" && compile "building" cargo build --locked --workspace --bins --tests >&2)
}

# build_binaries PROFILE [NAME...]: builds all binaries, or only these, with cargo's profile `dev`
# or `release`. Always for the whole workspace: a part of it would select other features of the
# dependencies, which would be compiled again.
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
