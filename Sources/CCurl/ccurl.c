#define _GNU_SOURCE
#include "ccurl.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The bit masks work with every libcurl; their successors came with 7.85.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
// curl/typecheck-gcc.h makes macros of the names below.
#undef curl_easy_setopt
#undef curl_easy_getinfo

// What is taken from the library.
static struct {
    CURLcode (*global_init)(long);
    CURL *(*easy_init)(void);
    CURLcode (*easy_setopt)(CURL *, CURLoption, ...);
    CURLcode (*easy_getinfo)(CURL *, CURLINFO, ...);
    CURLcode (*easy_perform)(CURL *);
    void (*easy_cleanup)(CURL *);
    const char *(*easy_strerror)(CURLcode);
    struct curl_slist *(*slist_append)(struct curl_slist *, const char *);
    void (*slist_free_all)(struct curl_slist *);
    char error[400];
    int is_loaded;
} curl;

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load(void) {
    // Debian's two builds of the same library: with OpenSSL, and with GnuTLS.
    void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        const char *reason = dlerror();
        snprintf(curl.error, sizeof curl.error, "%s", reason != NULL ? reason : "libcurl.so.4 is missing");
        library = dlopen("libcurl-gnutls.so.4", RTLD_NOW | RTLD_LOCAL);
    }
    if (library == NULL) return;
    const struct {
        void *target;
        const char *name;
    } symbols[] = {
        {&curl.global_init, "curl_global_init"},     {&curl.easy_init, "curl_easy_init"},
        {&curl.easy_setopt, "curl_easy_setopt"},     {&curl.easy_getinfo, "curl_easy_getinfo"},
        {&curl.easy_perform, "curl_easy_perform"},   {&curl.easy_cleanup, "curl_easy_cleanup"},
        {&curl.easy_strerror, "curl_easy_strerror"}, {&curl.slist_append, "curl_slist_append"},
        {&curl.slist_free_all, "curl_slist_free_all"},
    };
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        void *symbol = dlsym(library, symbols[i].name);
        if (symbol == NULL) {
            snprintf(curl.error, sizeof curl.error, "libcurl has no %s", symbols[i].name);
            return;
        }
        memcpy(symbols[i].target, &symbol, sizeof symbol);
    }
    if (curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        snprintf(curl.error, sizeof curl.error, "libcurl cannot be initialised");
        return;
    }
    curl.is_loaded = 1;
}

typedef struct {
    ccurl_response *response;
    size_t limit;
} sink;

static size_t receive(char *bytes, size_t size, size_t count, void *context) {
    sink *sink = context;
    ccurl_response *response = sink->response;
    // libcurl documents size as 1, so the product cannot overflow.
    size_t length = size * count;
    if (length > sink->limit - response->body_length) {
        response->too_large = 1;
        return 0;
    }
    memcpy(response->body + response->body_length, bytes, length);
    response->body_length += length;
    return length;
}

void ccurl_perform(const ccurl_request *request, ccurl_response *response) {
    memset(response, 0, sizeof *response);
    pthread_once(&once, load);
    if (!curl.is_loaded) {
        response->code = -1;
        snprintf(response->error, sizeof response->error, "%s", curl.error);
        return;
    }
    char error[CURL_ERROR_SIZE] = "";
    CURL *handle = curl.easy_init();
    struct curl_slist *headers = NULL;
    sink target = {response, request->limit};
    response->code = CURLE_OUT_OF_MEMORY;
    response->body = malloc(request->limit > 0 ? request->limit : 1);
    if (handle == NULL || response->body == NULL) goto done;
    for (const char *const *header = request->headers; *header != NULL; header++) {
        struct curl_slist *longer = curl.slist_append(headers, *header);
        if (longer == NULL) goto done;
        headers = longer;
    }

    CURLcode result = CURLE_OK;
#define SET(option, value) \
    if (result == CURLE_OK) result = curl.easy_setopt(handle, option, value)
    SET(CURLOPT_ERRORBUFFER, error);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_URL, request->url);
    // Plain HTTP is for this machine only, which the caller has checked: it must not go through a proxy then.
    if (strncasecmp(request->url, "https:", 6) == 0) {
        SET(CURLOPT_PROTOCOLS, (long)CURLPROTO_HTTPS);
    } else {
        SET(CURLOPT_PROTOCOLS, (long)CURLPROTO_HTTP);
        SET(CURLOPT_NOPROXY, "*");
    }
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_SSL_VERIFYPEER, 1L);
    SET(CURLOPT_SSL_VERIFYHOST, 2L);
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    // The system's directory of certificates stays beside it.
    if (request->ca_file != NULL) SET(CURLOPT_CAINFO, request->ca_file);
    SET(CURLOPT_CONNECTTIMEOUT_MS, request->connect_timeout_ms);
    SET(CURLOPT_TIMEOUT_MS, request->timeout_ms);
    SET(CURLOPT_USERAGENT, request->user_agent);
    SET(CURLOPT_HTTPHEADER, headers);
    if (request->body != NULL) {
        SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body_length);
        SET(CURLOPT_POSTFIELDS, request->body);
    }
    SET(CURLOPT_WRITEFUNCTION, receive);
    SET(CURLOPT_WRITEDATA, &target);
#undef SET
    if (result == CURLE_OK) result = curl.easy_perform(handle);
    response->code = (int)result;
    curl.easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &response->status);
    char *redirect = NULL;
    if (curl.easy_getinfo(handle, CURLINFO_REDIRECT_URL, &redirect) == CURLE_OK && redirect != NULL) {
        response->redirect = strdup(redirect);
    }

done:
    if (response->code != CURLE_OK) {
        const char *text = error[0] != '\0' ? error : curl.easy_strerror((CURLcode)response->code);
        snprintf(response->error, sizeof response->error, "%s", text);
    }
    if (headers != NULL) curl.slist_free_all(headers);
    if (handle != NULL) curl.easy_cleanup(handle);
}

void ccurl_release(ccurl_response *response) {
    if (response->body != NULL) {
        // It may have been a token.
        explicit_bzero(response->body, response->body_length);
    }
    free(response->body);
    free(response->redirect);
    response->body = NULL;
    response->redirect = NULL;
}

int ccurl_kind(const ccurl_response *response) {
    if (response->too_large) return CCURL_TOO_LARGE;
    switch (response->code) {
    case CURLE_OK: return CCURL_OK;
    case -1: return CCURL_LIBRARY;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY: return CCURL_NAME;
    case CURLE_COULDNT_CONNECT: return CCURL_CONNECT;
    case CURLE_OPERATION_TIMEDOUT: return CCURL_TIMEOUT;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER: return CCURL_TLS;
    default: return CCURL_OTHER;
    }
}
