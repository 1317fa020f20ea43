#pragma once
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <openssl/srtp.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

/// Options whose macros are expressions that Swift does not import.
static inline uint64_t copenssl_safe_options(void) {
    return SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION;
}

/// DTLS sizes its datagrams itself: no socket is asked for the path's MTU.
static inline uint64_t copenssl_dtls_options(void) {
    return SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_QUERY_MTU | SSL_OP_NO_TICKET;
}
