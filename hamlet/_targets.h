/* Functions marked HAMLET_TARGETS are compiled for several instruction sets; the loader picks one. Wheels stay portable. */
#ifndef HAMLET_TARGETS_H
#define HAMLET_TARGETS_H

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__gnu_linux__) && defined(__OPTIMIZE__)
#define HAMLET_TARGETS __attribute__((unused, target_clones("avx512f", "avx2", "default")))
#else
#define HAMLET_TARGETS __attribute__((unused))
#endif

#endif
