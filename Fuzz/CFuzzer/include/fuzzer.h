/* libFuzzer's entry for programs that bring their own main; the toolchain ships the library without a header. */
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerRunDriver(int *argc, char ***argv, int (*test)(const uint8_t *data, size_t size));
