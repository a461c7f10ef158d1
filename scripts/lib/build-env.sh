# shellcheck shell=bash
# Sourced by the scripts: what a build needs, found or made once. Prints to stderr only.
#
# RocksDB is the longest part of a build by far. Cargo compiles it again for each target directory,
# profile, feature set and RUSTFLAGS, so it is compiled once, apart from the rest, and kept as a
# static library under the user's cache; every build links that.

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
placementd_cache=${XDG_CACHE_HOME:-$HOME/.cache}/placementd

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

# install_packages WHY PACKAGE...
install_packages() {
    local why=$1 sudo=()
    shift
    command -v apt-get >/dev/null || fail "$why needs: $*. Please install them; there is no apt-get here."
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || fail "$why needs: $*. As root: apt-get install $*"
        sudo=(sudo)
    fi
    say "$why: installing $* with apt-get"
    with_heartbeat "apt-get update" "${sudo[@]}" apt-get update -q >&2
    with_heartbeat "apt-get install" "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -q -y --no-install-recommends "$@" >&2
}

# What bindgen looks for: libclang.so, libclang-VERSION.so, and either with a version behind it.
# libclang-cpp is another library, and comes with LLVM alone.
has_libclang() {
    [ -n "${LIBCLANG_PATH:-}" ] && return 0
    local found
    found=$(find /usr/lib /usr/lib64 /usr/local/lib \( -name 'libclang.so*' -o -name 'libclang-*.so*' \) \
        ! -name 'libclang-cpp*' -print -quit 2>/dev/null)
    [ -n "$found" ]
}

ensure_build_packages() {
    local packages=() why=()
    if ! command -v cc >/dev/null || ! command -v c++ >/dev/null; then
        packages+=(build-essential)
        why+=("a C and C++ compiler compiles and links RocksDB")
    fi
    if ! has_libclang; then
        packages+=(libclang-dev)
        why+=("libclang reads RocksDB's header to make its Rust bindings")
    fi
    if [ ${#packages[@]} -gt 0 ]; then
        printf '    %s\n' "${why[@]}" >&2
        install_packages "the build" "${packages[@]}"
    fi
    command -v cargo >/dev/null || fail "cargo is not on the PATH. Install Rust from https://rustup.rs, then run this again."
}

# The version of librocksdb-sys in Cargo.lock, without the "+..." of the RocksDB it brings.
rocksdb_version() {
    awk '/^name = "librocksdb-sys"$/ { getline; gsub(/version = |"/, ""); sub(/\+.*/, ""); print; exit }' \
        "$repository/Cargo.lock"
}

# Compiles librocksdb.a into a directory of the cache that is complete or absent.
ensure_rocksdb() {
    local directory=$1 scratch library
    [ -f "$directory/librocksdb.a" ] && return 0
    mkdir -p "$placementd_cache"
    # Two builds at once take turns; the second finds the library of the first.
    exec 8>"$placementd_cache/lock"
    if ! flock -n 8; then
        with_heartbeat "waiting for another build of RocksDB" flock 8
    fi
    if [ ! -f "$directory/librocksdb.a" ]; then
        say "compiling RocksDB once, into $directory (20 to 30 minutes on two cores)"
        scratch=$(mktemp -d "$placementd_cache/building.XXXXXX")
        if ! with_heartbeat "compiling RocksDB" \
            env -u ROCKSDB_LIB_DIR -u ROCKSDB_STATIC CARGO_TARGET_DIR="$scratch/target" \
            cargo build --locked --manifest-path "$repository/Cargo.toml" -p librocksdb-sys >&2; then
            rm -rf "$scratch"
            fail "RocksDB did not compile; the reason stands above"
        fi
        library=$(find "$scratch/target" -name librocksdb.a -print -quit)
        [ -n "$library" ] || fail "the build of librocksdb-sys left no librocksdb.a in $scratch"
        mkdir "$scratch/done"
        mv "$library" "$scratch/done/librocksdb.a"
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
    ensure_build_packages
    local directory
    directory=$placementd_cache/librocksdb-sys-$(rocksdb_version)
    ensure_rocksdb "$directory"
    export ROCKSDB_LIB_DIR=$directory ROCKSDB_STATIC=1
}

# Where cargo puts what it builds.
target_directory() {
    printf '%s\n' "${CARGO_TARGET_DIR:-$repository/target}"
}

# Builds every binary. Always the whole workspace: a part of it alone would choose other features of
# its dependencies, and they would be compiled again. Cargo's own output is its progress.
build_binaries() {
    (cd "$repository" && with_heartbeat "building" cargo build --locked --workspace --bins >&2)
}
