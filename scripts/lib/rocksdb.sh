# shellcheck shell=bash
# Sourced by build-env.sh: compiles librocksdb.a from the sources in the crate librocksdb-sys.
#
# The crate's build script compiles each of RocksDB's 342 sources separately, and spends most of the
# time on the same headers. Here one file includes 24 neighbouring sources, which compiles the same
# code in a quarter of the time. The flags are those of the build script (`build_rocksdb` in its
# build.rs) for Linux and the feature lz4, except for processor-specific flags and the optimization
# level.

: "${repository:?}" "${placementd_cache:?}"

# The crate version from whose build.rs the flags below were taken.
rocksdb_flags_version=0.19.0

# Optimization level. With -O1 the library for tests compiles in two thirds of the time;
# `release_env` sets a higher level.
rocksdb_optimisation=-O1

# The version of librocksdb-sys in Cargo.lock, without the "+..." suffix for RocksDB's version.
rocksdb_version() {
    awk '/^name = "librocksdb-sys"$/ { getline; gsub(/version = |"/, ""); sub(/\+.*/, ""); print; exit }' \
        "$repository/Cargo.lock"
}

# Hardware CRC32C, if available: each block and each log record has a checksum.
rocksdb_cpu_flags() {
    local has
    has=" $(grep -m1 -E '^(flags|Features)' /proc/cpuinfo) "
    case $(uname -m) in
        x86_64) [[ $has != *" sse4_2 "* || $has != *" pclmulqdq "* ]] || echo "-msse4.2 -mpclmul" ;;
        aarch64) [[ $has != *" crc32 "* || $has != *" aes "* ]] || echo "-march=armv8-a+crc+aes+crypto" ;;
    esac
}

# The cache directory of this library; its name contains everything that affects the compilation.
rocksdb_directory() {
    local cpu
    cpu=$(rocksdb_cpu_flags)
    printf '%s/rocksdb-%s%s%s\n' "$placementd_cache" "$(rocksdb_version)" "$rocksdb_optimisation" "${cpu// /}"
}

# crate_sources NAME: prints the directory in which cargo unpacked a dependency.
crate_sources() {
    (cd "$repository" && cargo metadata --locked --format-version 1) |
        grep -oE "\"manifest_path\":\"[^\"]*/$1-[0-9][^\"/]*/Cargo\.toml\"" |
        sed -E '1!d; s/^"manifest_path":"//; s/\/Cargo\.toml"$//'
}

# compile_rocksdb SCRATCH: creates librocksdb.a in the directory. It runs in a subshell, so that
# `fail` only exits the function.
compile_rocksdb() (
    scratch=$1
    [ "$(rocksdb_version)" = "$rocksdb_flags_version" ] ||
        fail "scripts/lib/rocksdb.sh has the compiler flags of librocksdb-sys $rocksdb_flags_version, and Cargo.lock has $(rocksdb_version): compare them with build.rs of that version, then change rocksdb_flags_version"
    sys=$(crate_sources librocksdb-sys)
    lz4=$(crate_sources lz4-sys)
    [[ -f $sys/rocksdb_lib_sources.txt && -f $lz4/liblz4/lib/lz4.h ]] ||
        fail "the sources of RocksDB and LZ4 are not in \"$sys\" and \"$lz4\", the paths reported by cargo"
    read -ra cxx <<<"${CXX:-c++}"
    read -ra cpu <<<"$(rocksdb_cpu_flags)"
    cxx+=("$rocksdb_optimisation" -w -std=c++20 -fPIC -ffunction-sections -fdata-sections "${cpu[@]}" -include cstdint
        -I"$sys/rocksdb/include" -I"$sys/rocksdb" -I"$sys/rocksdb/third-party/gtest-1.8.1/fused-src"
        -I"$sys" -I"$lz4/liblz4/lib" -DLZ4=1 -DNDEBUG=1 -DHAVE_ALIGNED_NEW -DHAVE_UINT128_EXTENSION
        -DOS_LINUX -DROCKSDB_PLATFORM_POSIX -DROCKSDB_LIB_IO_POSIX -DROCKSDB_SCHED_GETCPU_PRESENT
        -DROCKSDB_AUXV_GETAUXVAL_PRESENT -DROCKSDB_FALLOCATE_PRESENT -DROCKSDB_RANGESYNC_PRESENT)

    # Grouped by directory; the crate has its own build_version.cc.
    awk '$1 != "util/build_version.cc" { folder = $1; sub("/[^/]*$", "", folder); print folder, $1 }' \
        "$sys/rocksdb_lib_sources.txt" | LC_ALL=C sort -s -k1,1 |
        awk -v scratch="$scratch" '{
            printf "#include \"%s\"\n", $2 > sprintf("%s/unit-%02d.cc", scratch, (NR - 1) / 24)
        }'
    cp "$sys/build_version.cc" "$scratch/unit-version.cc"

    # One compiler per core, limited to one per 1.25 GiB of available memory.
    jobs=$(awk -v cores="$(nproc)" '$1 == "MemAvailable:" {
        jobs = int($2 / 1310720); print jobs < 1 ? 1 : jobs < cores ? jobs : cores }' /proc/meminfo)
    # shellcheck disable=SC2016
    printf '%s\0' "$scratch"/unit-*.cc |
        xargs -0 -n1 -P "$jobs" bash -c '"${@:1:$#-1}" -c "${!#}" -o "${!#%.cc}.o" || exit 255' bash "${cxx[@]}" &&
        ar crs "$scratch/librocksdb.a" "$scratch"/unit-*.o
)
