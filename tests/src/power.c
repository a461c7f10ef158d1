/* Stands between a process and its disk, and writes down what was synced: one line for each sync of a
 * file (its length before) or of a directory (its entries before). Files that a synced directory names
 * are kept by a second link, as a rename or a removal that was not synced is undone by a loss of power.
 *
 * PLACEMENT_TEST_SYNCED     the file that is written to; links are made in the directory next to it
 * PLACEMENT_TEST_UNSYNCED   paths with these words are not synced, though the calls report success; a path
 *                           ends with $, that of a directory with /$
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

/* What is to be noted of an open file or directory at this moment; 0 if nothing is. */
static int describe(int fd, const char *notes, char *line) {
    struct statx s;
    char id[64];
    if (key(fd, "", AT_EMPTY_PATH, id, &s) < 0) return 0;
    if (S_ISREG(s.stx_mode))
        return snprintf(line, LINE, "file %s %llu\n", id, (unsigned long long)s.stx_size);
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

static int is_lied_about(int fd) {
    const char *words = getenv("PLACEMENT_TEST_UNSYNCED");
    if (!words) return 0;
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
    if (is_lied_about(fd)) return 0;
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

int fdatasync(int fd) { return synced(fd, "fdatasync"); }
int fsync(int fd) { return synced(fd, "fsync"); }
