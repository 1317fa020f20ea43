#include "allocations.h"

#include <stdlib.h>

/* glibc's own, which it exports for this purpose. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *block);

static struct allocations total;

static void count(size_t size)
{
    __atomic_fetch_add(&total.count, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&total.bytes, size, __ATOMIC_RELAXED);
}

struct allocations allocations_so_far(void)
{
    return total;
}

void *malloc(size_t size)
{
    count(size);
    return __libc_malloc(size);
}

void *calloc(size_t number, size_t size)
{
    count(number * size);
    return __libc_calloc(number, size);
}

void *realloc(void *block, size_t size)
{
    count(size);
    return __libc_realloc(block, size);
}

void *memalign(size_t alignment, size_t size)
{
    count(size);
    return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

int posix_memalign(void **block, size_t alignment, size_t size)
{
    *block = memalign(alignment, size);
    return *block ? 0 : 12;
}

void free(void *block)
{
    __libc_free(block);
}
