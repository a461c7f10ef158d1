# shellcheck shell=bash
# Sourced by build-env.sh: whether bindgen will find libclang and clang's own headers.
#
# The rules are those of clang-sys 1.9 (build/common.rs and build/dynamic.rs), which bindgen uses.
# ROOT stands before the system's library folders; it is empty except in tests.

# find_libclang [ROOT]: prints every library that bindgen would take, one a line.
find_libclang() (
    shopt -s nullglob
    root=${1:-} folders=() path=() file=''
    if [ -n "${LIBCLANG_PATH+set}" ]; then
        # A file, or a folder. Nothing else is looked at then.
        if [ -f "$LIBCLANG_PATH" ]; then
            is_libclang "$LIBCLANG_PATH" && printf '%s\n' "$LIBCLANG_PATH"
            exit 0
        fi
        folders=("$LIBCLANG_PATH")
    else
        if prefix=$("${LLVM_CONFIG_PATH:-llvm-config}" --prefix 2>/dev/null); then
            folders+=("$prefix/bin" "$prefix/lib" "$prefix/lib64")
        fi
        IFS=: read -ra path <<<"${LD_LIBRARY_PATH:-}:${LIBRARY_PATH:-}"
        folders+=("${path[@]}"
            "$root"/usr/local/llvm*/lib*/
            "$root"/usr/local/lib*/*/*/ "$root"/usr/local/lib*/*/ "$root"/usr/local/lib*/
            "$root"/usr/lib*/*/*/ "$root"/usr/lib*/*/ "$root"/usr/lib*/)
    fi
    for folder in "${folders[@]}"; do
        [ -n "$folder" ] || continue
        for file in "${folder%/}"/libclang{.so,-*.so,.so.*,-*.so.*}; do
            is_libclang "$file" && printf '%s\n' "$file"
        done
    done
    exit 0
)

# Whether a file is called as bindgen wants it and is a library for 64 bits. libclang-cpp is another
# library, which comes with LLVM alone.
is_libclang() {
    case ${1##*/} in
        *-cpp.*) return 1 ;;
        libclang.so | libclang-*.so | libclang.so.* | libclang-*.so.*) ;;
        *) return 1 ;;
    esac
    # The magic number of ELF, then the class: 2 is 64 bits.
    local LC_ALL=C start=''
    { read -rN5 start <"$1"; } 2>/dev/null
    [ "$start" = $'\x7fELF\x02' ]
}

# has_clang_headers LIBRARY...: whether clang's own headers (stddef.h, stdbool.h, …) are there: next
# to one of the libraries, or where a `clang` says. A package of the library alone lacks them.
has_clang_headers() (
    shopt -s nullglob
    # A user who sets this gives bindgen their place.
    [ -z "${BINDGEN_EXTRA_CLANG_ARGS:-}" ] || exit 0
    for library in "$@"; do
        for place in "$library" "$(readlink -f -- "$library")"; do
            headers=("${place%/*}"/{,../,../lib*/}clang/*/include/stddef.h)
            [ ${#headers[@]} = 0 ] || exit 0
        done
    done
    resources=$(clang -print-resource-dir 2>/dev/null) && [ -f "$resources/include/stddef.h" ]
)

# libclang_lack ROOT: prints what bindgen will miss; nothing if it will miss nothing.
libclang_lack() {
    local libraries
    mapfile -t libraries < <(find_libclang "$1")
    if [ ${#libraries[@]} = 0 ]; then
        echo "there is no libclang"
    elif ! has_clang_headers "${libraries[@]}"; then
        echo "clang's own headers are not there, only ${libraries[0]}"
    fi
}

# drop_useless_libclang_path: bindgen looks nowhere else if LIBCLANG_PATH is set, so one that does
# not do would hide a libclang that does.
drop_useless_libclang_path() {
    local lack
    [ -n "${LIBCLANG_PATH+set}" ] || return 0
    lack=$(libclang_lack "")
    if [ -n "$lack" ]; then
        say "LIBCLANG_PATH is ignored: in \"$LIBCLANG_PATH\", $lack"
        unset LIBCLANG_PATH
    fi
}

# misses_libclang LOG: whether the output of a build means that bindgen missed libclang or clang's
# headers.
misses_libclang() {
    grep -qE -e "Unable to find libclang" -e "libclang.* shared library.*could not be opened" \
        -e "'(stddef|stdbool|stdarg|stdint|limits|float)\.h' file not found" "$1"
}
