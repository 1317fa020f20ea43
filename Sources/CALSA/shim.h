#pragma once
#include <alsa/asoundlib.h>

// snd_lib_error_handler_t is variadic, so Swift can neither write nor pass one.

/// Swallows what ALSA would print: every failure reaches the caller as a return code and is reported from there.
static void sinch_alsa_quiet(const char *file, int line, const char *function, int err, const char *format, ...) {
    (void)file; (void)line; (void)function; (void)err; (void)format;
}

/// Keeps ALSA and its plugins from writing on the standard error stream. Process wide; calling it again is harmless.
static inline void sinch_alsa_silence_errors(void) {
    snd_lib_error_set_handler(sinch_alsa_quiet);
}
