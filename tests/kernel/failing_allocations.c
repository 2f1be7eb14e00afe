/* Lets the n-th allocation fail that the compiled modules of the project ask for; loaded with LD_PRELOAD.

   An allocation is theirs where the call returns into one of their files, as /proc/self/maps has them when counting
   begins. Those of Python, numpy and Arrow are left alone. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 512 };
static uintptr_t first[MOST], last[MOST];
static int ranges;
static long counted, chosen; /* the one that fails; 0 for none */
static int lasting;          /* whether all later ones fail as well */
static void *(*real_malloc)(size_t), *(*real_calloc)(size_t, size_t), *(*real_realloc)(void *, size_t);
static int (*real_align)(void **, size_t, size_t);
static void *(*real_aligned)(size_t, size_t);
static char early[1 << 16]; /* dlsym itself asks for memory before it has found any */
static size_t taken;

static void find(void) {
    static int busy;
    if (real_malloc || busy) return;
    busy = 1;
    real_calloc = dlsym(RTLD_NEXT, "calloc");
    real_realloc = dlsym(RTLD_NEXT, "realloc");
    real_align = dlsym(RTLD_NEXT, "posix_memalign");
    real_aligned = dlsym(RTLD_NEXT, "aligned_alloc");
    real_malloc = dlsym(RTLD_NEXT, "malloc");
    busy = 0;
}

static int fails(uintptr_t caller) {
    int i;
    if (!ranges) return 0;
    for (i = 0; i < ranges; i++)
        if (caller >= first[i] && caller < last[i]) {
            long number = __atomic_add_fetch(&counted, 1, __ATOMIC_RELAXED);
            return chosen && (number == chosen || (lasting && number > chosen));
        }
    return 0;
}

/* Begin to count; the n-th allocation from here on fails, and with `on` all after it. */
void failing_begin(long n, int on) {
    char line[1024], *path;
    unsigned long from, to;
    FILE *maps = fopen("/proc/self/maps", "r");
    int found = 0;
    ranges = 0;
    while (maps && fgets(line, sizeof line, maps)) {
        path = strchr(line, '/');
        if (!path || !strstr(line, " r-xp ") || !strstr(path, ".so") || found == MOST) continue;
        if (!strstr(path, "/hamlet/") && !strstr(path, "/optimizer/")) continue;
        if (sscanf(line, "%lx-%lx", &from, &to) != 2) continue;
        first[found] = from;
        last[found++] = to;
    }
    if (maps) fclose(maps);
    counted = 0;
    chosen = n;
    lasting = on;
    ranges = found;
}

/* Stop; gives how many allocations were counted. */
long failing_end(void) {
    ranges = 0;
    return counted;
}

void *malloc(size_t size) {
    if (!real_malloc) find();
    if (!real_malloc) {
        void *found = early + taken;
        taken += (size + 15) & ~(size_t)15;
        return found;
    }
    return fails((uintptr_t)__builtin_return_address(0)) ? NULL : real_malloc(size);
}

void *calloc(size_t count, size_t size) {
    if (!real_calloc) find();
    if (!real_calloc) {
        void *found = early + taken;
        taken += (count * size + 15) & ~(size_t)15;
        return found;
    }
    return fails((uintptr_t)__builtin_return_address(0)) ? NULL : real_calloc(count, size);
}

void *realloc(void *old, size_t size) {
    if (!real_realloc) find();
    return fails((uintptr_t)__builtin_return_address(0)) ? NULL : real_realloc(old, size);
}

int posix_memalign(void **found, size_t border, size_t size) {
    if (!real_align) find();
    return fails((uintptr_t)__builtin_return_address(0)) ? 12 : real_align(found, border, size);
}

void *aligned_alloc(size_t border, size_t size) {
    if (!real_aligned) find();
    return fails((uintptr_t)__builtin_return_address(0)) ? NULL : real_aligned(border, size);
}
