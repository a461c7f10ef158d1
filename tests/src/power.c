/* Preloaded into a process; records its syncs: one line per sync of a file (its length before) or of
 * a directory (its entries before). Files in a synced directory are kept by a second link, as a power
 * loss undoes renames and removals that were not synced. Overwritten bytes of write-ahead files are
 * kept, too, as records of offset, length and bytes; the line of a sync states how many bytes of
 * these records it invalidates.
 *
 * PLACEMENT_TEST_SYNCED     file of the records; links are created in the directory next to it
 * PLACEMENT_TEST_UNSYNCED   paths with these words are not synced, though the calls report
 *                           success; a path ends with $, that of a directory with /$
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINE 65536

static int key(int dir, const char *name, int flags, char *out, struct statx *s) {
    if (statx(dir, name, flags | AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS | STATX_BTIME, s) != 0) return -1;
    if (!(s->stx_mask & STATX_BTIME)) memset(&s->stx_btime, 0, sizeof s->stx_btime);
    return sprintf(out, "%llu-%lld.%09u", (unsigned long long)s->stx_ino,
                   (long long)s->stx_btime.tv_sec, s->stx_btime.tv_nsec);
}

/* File that keeps the overwritten bytes of a file. */
static void path_of_kept(const char *notes, const char *id, char *out) {
    snprintf(out, 4096, "%s.kept/%s.over", notes, id);
}

/* Writes the record of an open file or directory; returns 0 if none is needed. */
static int describe(int fd, const char *notes, char *line) {
    struct statx s;
    char id[64], over[4096];
    if (key(fd, "", AT_EMPTY_PATH, id, &s) < 0) return 0;
    if (S_ISREG(s.stx_mode)) {
        struct stat kept;
        path_of_kept(notes, id, over);
        long long behind = stat(over, &kept) == 0 ? kept.st_size : 0;
        return snprintf(line, LINE, "file %s %llu %lld\n", id, (unsigned long long)s.stx_size, behind);
    }
    if (!S_ISDIR(s.stx_mode)) return 0;
    int length = snprintf(line, LINE, "directory %s", id);
    int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY);
    DIR *entries = copy < 0 ? NULL : fdopendir(copy);
    if (!entries) return 0;
    struct dirent *entry;
    while ((entry = readdir(entries))) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        if (key(fd, entry->d_name, 0, id, &s) < 0) continue;
        if (S_ISREG(s.stx_mode)) {
            char kept[4096];
            snprintf(kept, sizeof kept, "%s.kept/%s", notes, id);
            linkat(fd, entry->d_name, AT_FDCWD, kept, 0);
        }
        if (length + strlen(entry->d_name) + 80 > LINE) abort();
        length += sprintf(line + length, " %s/%s", id, entry->d_name);
    }
    closedir(entries);
    line[length++] = '\n';
    return length;
}

/* Whether the path of an open file, with $ at its end (/$ for a directory), has these words. */
static int has(int fd, const char *words) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 3);
    struct stat s;
    if (length < 0 || fstat(fd, &s) != 0) return 0;
    strcpy(path + length, S_ISDIR(s.st_mode) ? "/$" : "$");
    return strstr(path, words) != NULL;
}

static int synced(int fd, const char *name) {
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    const char *notes = getenv("PLACEMENT_TEST_SYNCED");
    if (!notes) return real(fd);
    const char *unsynced = getenv("PLACEMENT_TEST_UNSYNCED");
    if (unsynced && has(fd, unsynced)) return 0;
    char *line = malloc(LINE);
    int length = line ? describe(fd, notes, line) : 0;
    int done = real(fd), why = errno;
    if (done == 0 && length > 0) {
        int out = open(notes, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        if (out < 0 || write(out, line, length) != length) abort();
        close(out);
    }
    free(line);
    errno = why;
    return done;
}

static ssize_t real_write(int fd, const void *bytes, size_t count) {
    return ((ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write"))(fd, bytes, count);
}

/* Keeps bytes that are about to be overwritten. */
static void overwritten(int fd, off_t at, size_t count) {
    const char *notes = getenv("PLACEMENT_TEST_SYNCED");
    struct statx s;
    char id[64], over[4096];
    if (!notes || at < 0 || count == 0 || !has(fd, ".log$") || key(fd, "", AT_EMPTY_PATH, id, &s) < 0) return;
    if (!S_ISREG(s.stx_mode) || (unsigned long long)at >= s.stx_size) return;
    unsigned long long length = s.stx_size - (unsigned long long)at;
    if (length > count) length = count;
    char path[64], *record = malloc(16 + length);
    /* The file may be open for writing only. */
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int in = open(path, O_RDONLY | O_CLOEXEC);
    if (!record || in < 0) abort();
    unsigned long long head[2] = {(unsigned long long)at, length};
    memcpy(record, head, 16);
    if (pread(in, record + 16, length, at) != (ssize_t)length) abort();
    path_of_kept(notes, id, over);
    int out = open(over, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (out < 0 || real_write(out, record, 16 + length) != (ssize_t)(16 + length)) abort();
    close(out);
    close(in);
    free(record);
}

ssize_t write(int fd, const void *bytes, size_t count) {
    int flags = fcntl(fd, F_GETFL);
    if (flags >= 0 && !(flags & O_APPEND)) overwritten(fd, lseek(fd, 0, SEEK_CUR), count);
    return real_write(fd, bytes, count);
}

int fdatasync(int fd) { return synced(fd, "fdatasync"); }
int fsync(int fd) { return synced(fd, "fsync"); }
