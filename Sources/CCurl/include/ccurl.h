#pragma once
#include <stddef.h>

// One HTTP exchange through libcurl, which is loaded when the first one is made: linked to, it would cost every command
// 5 ms at its start (33 libraries). Only its headers are needed to build.

typedef struct {
    const char *url;
    // NULL for GET; else the body of a POST.
    const void *body;
    size_t body_length;
    // NULL-terminated, each "Name: value".
    const char *const *headers;
    // Certificate authorities beside the system's; NULL for none.
    const char *ca_file;
    const char *user_agent;
    long connect_timeout_ms;
    long timeout_ms;
    // The most bytes of a body that are taken.
    size_t limit;
} ccurl_request;

typedef struct {
    // CURLE_OK or why it failed; -1: the library is missing (see error).
    int code;
    // The HTTP status; 0 when there was none.
    long status;
    // Allocated; released by ccurl_release.
    unsigned char *body;
    size_t body_length;
    // Whether the body was longer than the limit.
    int too_large;
    // Where a redirect, which is not followed, points to; allocated.
    char *redirect;
    char error[512];
} ccurl_response;

// Blocks until the exchange is over; any thread, several at a time.
void ccurl_perform(const ccurl_request *request, ccurl_response *response);
void ccurl_release(ccurl_response *response);

// The kinds of failure that callers tell apart.
enum ccurl_kind {
    CCURL_OK, CCURL_LIBRARY, CCURL_NAME, CCURL_CONNECT, CCURL_TIMEOUT, CCURL_TLS, CCURL_TOO_LARGE, CCURL_OTHER
};
int ccurl_kind(const ccurl_response *response);
