# shellcheck shell=bash
# Sourced by build-env.sh: predicts whether bindgen will find libclang and clang's own headers.
#
# The rules are those of clang-sys 1.9 (build/common.rs and build/dynamic.rs), which bindgen uses.
# ROOT is a prefix of the system's library directories; it is empty except in tests.

# find_libclang [ROOT]: prints every library that bindgen would use, one per line.
find_libclang() (
    shopt -s nullglob
    root=${1:-} folders=() path=() file=''
    if [ -n "${LIBCLANG_PATH+set}" ]; then
        # A file or a directory. bindgen searches nowhere else then.
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

# Whether a file has a name that bindgen accepts and is a 64-bit library. libclang-cpp is another
# library, which is part of LLVM.
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

# has_clang_headers LIBRARY...: whether clang's own headers (stddef.h, stdbool.h, …) exist, next to
# one of the libraries or in the resource directory of a `clang`. The package of the library alone
# lacks them.
has_clang_headers() (
    shopt -s nullglob
    # A user who sets this variable points bindgen to the headers.
    [ -z "${BINDGEN_EXTRA_CLANG_ARGS:-}" ] || exit 0
    for library in "$@"; do
        for place in "$library" "$(readlink -f -- "$library")"; do
            headers=("${place%/*}"/{,../,../lib*/}clang/*/include/stddef.h)
            [ ${#headers[@]} = 0 ] || exit 0
        done
    done
    resources=$(clang -print-resource-dir 2>/dev/null) && [ -f "$resources/include/stddef.h" ]
)

# libclang_lack ROOT: prints what bindgen will not find; nothing if it will find everything.
libclang_lack() {
    local libraries
    mapfile -t libraries < <(find_libclang "$1")
    if [ ${#libraries[@]} = 0 ]; then
        echo "there is no libclang"
    elif ! has_clang_headers "${libraries[@]}"; then
        echo "clang's own headers are missing, only ${libraries[0]} was found"
    fi
}

# drop_useless_libclang_path: unsets an unusable LIBCLANG_PATH. bindgen searches nowhere else if it
# is set, so it would hide a usable libclang.
drop_useless_libclang_path() {
    local lack
    [ -n "${LIBCLANG_PATH+set}" ] || return 0
    lack=$(libclang_lack "")
    if [ -n "$lack" ]; then
        say "LIBCLANG_PATH is ignored: in \"$LIBCLANG_PATH\", $lack"
        unset LIBCLANG_PATH
    fi
}

# misses_libclang LOG: whether the output of a build says that bindgen did not find libclang or
# clang's headers.
misses_libclang() {
    grep -qE -e "Unable to find libclang" -e "libclang.* shared library.*could not be opened" \
        -e "'(stddef|stdbool|stdarg|stdint|limits|float)\.h' file not found" "$1"
}
