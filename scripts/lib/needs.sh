# shellcheck shell=bash
# Sourced by build-env.sh: checks and installs the dependencies of a build. Each check runs the
# dependency (does the compiler produce a program?), since a name on the PATH or an existing file
# may belong to an incomplete installation. It installs missing Debian packages instead of only
# naming them, so that one command builds on a new machine.

: "${repository:?}" "${placementd_cache:?}"

# install_packages WHY PACKAGE...
install_packages() {
    local why=$1 sudo=() apt=(apt-get -q -o DPkg::Lock::Timeout=600)
    shift
    command -v apt-get >/dev/null ||
        fail "$why needs these Debian packages: $*. There is no apt-get here: install their equivalents, then run this again."
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null ||
            fail "$why needs: $*. This is not root, and there is no sudo. As root: apt-get install $*"
        sudo=(sudo)
    fi
    say "$why: installing $* with apt-get"
    # An unreachable package source may not be the one with these packages.
    with_heartbeat "apt-get update" "${sudo[@]}" "${apt[@]}" update >&2 ||
        say "apt-get update failed; continuing with the existing package lists"
    with_heartbeat "apt-get install" "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
        "${apt[@]}" install -y --no-install-recommends "$@" >&2 ||
        fail "apt-get install $* failed; see the error above"
}

# install_stopped WHY PACKAGE...: like install_packages, without starting services of the packages.
install_stopped() (
    policy=/usr/sbin/policy-rc.d sudo=()
    [ "$(id -u)" = 0 ] || sudo=(sudo)
    # An existing policy belongs to the owner of the machine and stays.
    if [ ! -e "$policy" ]; then
        trap '"${sudo[@]}" rm -f "$policy"' EXIT
        "${sudo[@]}" install -m 755 /dev/stdin "$policy" <<<$'#!/bin/sh\nexit 101'
    fi
    install_packages "$@"
)

# ensure_room GIB DIRECTORY WHY: on a full disk nodes refuse writes, and many tests fail without
# naming the disk as the cause.
ensure_room() {
    local free
    free=$(df -Pk -- "$2" | awk 'NR == 2 { print int($4 / 1048576) }')
    [ "$free" -ge "$1" ] ||
        fail "$3 needs $1 GiB of free space in $2, which has $free GiB: delete files there, or set TMPDIR to a directory on another disk"
}

# makes_program LANGUAGE COMPILER...: whether the compiler turns stdin into a program.
makes_program() {
    local language=$1 scratch status=0
    shift
    scratch=$(mktemp -d)
    "$@" -x "$language" -o "$scratch/program" - >/dev/null 2>&1 || status=$?
    rm -rf "$scratch"
    return "$status"
}

has_c_compiler() {
    local compiler
    read -ra compiler <<<"${CC:-cc}"
    # rustc links with `cc`, whatever CC says.
    command -v cc >/dev/null && makes_program c "${compiler[@]}" <<'PROGRAM'
#include <stdio.h>
int main(void) { return puts("") < 0; }
PROGRAM
}

has_cxx_compiler() {
    local compiler
    read -ra compiler <<<"${CXX:-c++}"
    makes_program c++ "${compiler[@]}" <<'PROGRAM'
#include <vector>
int main() { return static_cast<int>(std::vector<int>().size()); }
PROGRAM
}

has_compilers() {
    has_c_compiler && has_cxx_compiler
}

# ensure_build_packages [ROOT]
ensure_build_packages() {
    local root=${1:-} packages=() lack
    if ! has_compilers; then
        packages+=(build-essential)
        printf '    RocksDB needs a C and C++ compiler\n' >&2
    fi
    drop_useless_libclang_path
    lack=$(libclang_lack "$root")
    # On systems other than Debian the headers may be in a directory that this check does not know,
    # so there the build continues without them.
    if [ -n "$lack" ] && { [ -z "$(find_libclang "$root")" ] || command -v apt-get >/dev/null; }; then
        packages+=(libclang-dev)
        printf '    libclang reads the header of RocksDB to make its Rust bindings; %s\n' "$lack" >&2
    fi
    [ ${#packages[@]} -gt 0 ] || return 0
    install_packages "the build" "${packages[@]}"
    has_compilers || fail "the C and C++ compilers (CC=${CC:-cc}, CXX=${CXX:-c++}) do not make a program, although build-essential is installed. Try: echo 'int main() {}' | ${CXX:-c++} -x c++ -"
    # A missing libclang is not fatal here: the compilation itself reports it reliably.
}

# rust_lack: prints why the cargo and rustc on the PATH cannot build this; nothing if they can.
rust_lack() (
    cd "$repository" || exit
    needed=$(rust_version_needed)
    for tool in cargo rustc; do
        if ! command -v "$tool" >/dev/null; then
            echo "$tool is not on the PATH"
            exit
        fi
        version=$("$tool" --version 2>/dev/null | awk '{ print $2 }') || version=''
        if [ -z "$version" ]; then
            echo "$tool does not run (\`rustup default stable\` gives rustup a toolchain)"
            exit
        fi
        if ! printf '%s\n' "$needed" "$version" | sort -VC; then
            echo "$tool is version $version, too old (\`rustup update\` brings a newer one)"
            exit
        fi
    done
)

rust_version_needed() {
    awk -F'"' '/^rust-version = / { print $2; exit }' "$repository/Cargo.toml"
}

# Rust is not installed automatically: the user chooses how. A shell from before the installation of
# rustup, or an older cargo of the distribution on the PATH, is no problem.
ensure_rust() {
    local lack home=${CARGO_HOME:-${HOME:-}/.cargo}/bin
    lack=$(rust_lack)
    [ -n "$lack" ] || return 0
    if [ -x "$home/cargo" ] && [ -z "$(PATH=$home:$PATH rust_lack)" ]; then
        say "$lack: using $home"
        export PATH=$home:$PATH
        return 0
    fi
    # rustup fetches the toolchain of rust-toolchain.toml. If it cannot, an installed one may
    # suffice.
    if command -v rustup >/dev/null && [ -z "${RUSTUP_TOOLCHAIN:-}" ] &&
        [ -z "$(RUSTUP_TOOLCHAIN=stable rust_lack)" ]; then
        say "$lack: using rustup's toolchain stable, not the one that rust-toolchain.toml names"
        export RUSTUP_TOOLCHAIN=stable
        return 0
    fi
    fail "$lack. Building needs Rust $(rust_version_needed) or newer, from https://rustup.rs"
}

# ensure_rust_components SUBCOMMAND...: installs fmt and clippy, which rustup's minimal profile
# lacks.
ensure_rust_components() {
    local subcommand
    for subcommand in "$@"; do
        cargo "$subcommand" --version >/dev/null 2>&1 && continue
        command -v rustup >/dev/null || fail "there is no \`cargo $subcommand\`; install it with the package that brought cargo"
        say "rustup: adding $subcommand"
        (cd "$repository" && rustup component add "${subcommand/fmt/rustfmt}" >&2) ||
            fail "rustup could not add $subcommand; see the error above"
    done
}

# python_with_venv [ROOT]: prints the first Python that can create virtual environments and is new
# enough for openstack-placement 16.0.0. Debian's `python3` comes without venv, and another Python
# of the user may precede the one that apt-get completes.
python_with_venv() {
    local python
    for python in python3 "${1:-}/usr/bin/python3"; do
        if "$python" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
            printf '%s\n' "$python"
            return 0
        fi
    done
    return 1
}

# ensure_python WHY [ROOT]
ensure_python() {
    local why=$1 root=${2:-}
    python_with_venv "$root" >/dev/null && return 0
    install_packages "$why" python3 python3-venv
    python_with_venv "$root" >/dev/null ||
        fail "$why needs Python 3.10 or newer with support for virtual environments: \`python3 -m venv DIRECTORY\` must work"
}

# python_environment NAME REQUIREMENTS WHY: creates a virtual environment with these packages once,
# and prints its path. Changed constraints (`-c FILE`) create it again.
python_environment() {
    local name=$1 requirements=$2 why=$3 venv files
    files=("$requirements")
    mapfile -t -O 1 files < <(sed -n "s|^-c |$(dirname "$requirements")/|p" "$requirements")
    venv=$placementd_cache/$name-$(cat "${files[@]}" | sha256sum | cut -c1-12)
    # Recreated if its Python was removed.
    if [ ! -e "$venv/ready" ] || ! "$venv/bin/python" -c '' 2>/dev/null; then
        ensure_python "$why"
        say "installing the packages of $requirements into $venv"
        mkdir -p "$placementd_cache"
        "$(python_with_venv)" -m venv --clear "$venv" >&2 || fail "$venv could not be created; see the error above"
        with_heartbeat "pip install" \
            "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$requirements" >&2 ||
            fail "pip could not install the packages of $requirements; see the error above"
        touch "$venv/ready"
    fi
    printf '%s\n' "$venv"
}

# cargo_tool CRATE VERSION WHY [FLAG...]: compiles a program from crates.io once, and prints its
# directory.
cargo_tool() {
    local crate=$1 version=$2 why=$3 root
    shift 3
    root=$placementd_cache/$crate-$version
    if [ ! -x "$root/bin/$crate" ]; then
        say "$why: compiling $crate $version"
        mkdir -p "$placementd_cache"
        # Outside of the repository, whose cargo flags do not apply; without optimization, as it
        # runs for a second only.
        (cd "$placementd_cache" && CARGO_TARGET_DIR=$root/target with_heartbeat "cargo install $crate" \
            cargo install --quiet --locked --debug --root "$root" "$@" "$crate@$version" >&2) ||
            fail "cargo could not install $crate; see the error above"
        rm -rf "$root/target"
    fi
    printf '%s\n' "$root/bin"
}

# packaging_tools: compiles the tools of scripts/package once, and prints their directories for a
# PATH.
packaging_tools() {
    local deb bom
    deb=$(cargo_tool cargo-deb 3.8.0 "the Debian package") &&
        bom=$(cargo_tool cargo-cyclonedx 0.5.9 "the SBOM") &&
        printf '%s:%s\n' "$deb" "$bom"
}

# ensure_command COMMAND PACKAGE WHY
ensure_command() {
    command -v "$1" >/dev/null || install_packages "$3" "$2"
}
