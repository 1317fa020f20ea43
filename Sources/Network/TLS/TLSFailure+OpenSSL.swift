import COpenSSL

extension TLSFailure {
    /// What a result of certificate verification (X509_V_ERR_…) stands for.
    init(verifyError error: Int32) {
        switch error {
        case X509_V_ERR_CERT_HAS_EXPIRED: self = .expired
        case X509_V_ERR_CERT_NOT_YET_VALID: self = .notYetValid
        case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT: self = .selfSigned
        case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT,
            X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE,
            X509_V_ERR_CERT_UNTRUSTED, X509_V_ERR_CERT_REJECTED:
            self = .unknownAuthority
        case X509_V_ERR_CERT_REVOKED: self = .revoked
        case X509_V_ERR_INVALID_PURPOSE, X509_V_ERR_INVALID_CA, X509_V_ERR_KEYUSAGE_NO_CERTSIGN,
            X509_V_ERR_PATH_LENGTH_EXCEEDED:
            self = .wrongUsage
        case X509_V_ERR_EE_KEY_TOO_SMALL, X509_V_ERR_CA_KEY_TOO_SMALL, X509_V_ERR_CA_MD_TOO_WEAK:
            self = .weakCertificate
        default:
            self = .invalidCertificate(String(cString: X509_verify_cert_error_string(Int(error))))
        }
    }

    /// What an error of the SSL library (its whole code, ERR_…) stands for.
    init(libraryError code: UInt) {
        guard ERR_GET_LIB(code) == ERR_LIB_SSL else {
            self = .handshake(Self.words(code))
            return
        }
        switch ERR_GET_REASON(code) {
        case SSL_R_UNSUPPORTED_PROTOCOL, SSL_R_TLSV1_ALERT_PROTOCOL_VERSION, SSL_R_NO_PROTOCOLS_AVAILABLE,
            SSL_R_WRONG_SSL_VERSION, SSL_R_UNKNOWN_PROTOCOL, SSL_R_VERSION_TOO_LOW:
            self = .protocolVersion
        case SSL_R_WRONG_VERSION_NUMBER, SSL_R_HTTP_REQUEST, SSL_R_HTTPS_PROXY_REQUEST:
            self = .notTLS
        case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
            self = .clientCertificateRequired
        case SSL_R_EE_KEY_TOO_SMALL, SSL_R_CA_KEY_TOO_SMALL, SSL_R_CA_MD_TOO_WEAK, SSL_R_DH_KEY_TOO_SMALL:
            self = .weakCertificate
        default:
            self = .handshake(Self.words(code))
        }
    }

    private static func words(_ code: UInt) -> String {
        if let reason = ERR_reason_error_string(code) { return String(cString: reason) }
        return code == 0 ? "no reason given" : "OpenSSL error \(code)"
    }
}
