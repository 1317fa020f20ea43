/* Counts what the program takes from the heap: malloc and its kin are replaced, in this program only. */
#include <stdint.h>

struct allocations {
    uint64_t count;
    uint64_t bytes;
};

/* What was allocated so far, by all threads. */
struct allocations allocations_so_far(void);
