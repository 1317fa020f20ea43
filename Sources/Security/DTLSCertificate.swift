import COpenSSL
import Glibc

/// The self-signed certificate and key that a client proves itself with in DTLS: ECDSA on P-256, its fingerprint in the
/// SDP. It says nothing about its owner, and lives as long as the client.
public final class DTLSCertificate: @unchecked Sendable {
    // @unchecked: never changed after it was made; OpenSSL counts its references.

    /// What the SDP says of it: SHA-256.
    public let fingerprint: CertificateFingerprint
    let certificate: OpaquePointer
    let key: OpaquePointer

    /// Makes a new one; takes about a tenth of a millisecond.
    public init() throws(DTLSFailure) {
        guard let key = Self.makeKey() else { throw .unavailable(lastLibraryError()) }
        guard let certificate = Self.makeCertificate(for: key) else {
            EVP_PKEY_free(key)
            throw .unavailable(lastLibraryError())
        }
        guard let fingerprint = CertificateFingerprint(of: certificate, .sha256) else {
            EVP_PKEY_free(key)
            X509_free(certificate)
            throw .unavailable(lastLibraryError())
        }
        self.key = key
        self.certificate = certificate
        self.fingerprint = fingerprint
    }

    deinit {
        X509_free(certificate)
        EVP_PKEY_free(key)
    }

    private static func makeKey() -> OpaquePointer? {
        ERR_clear_error()
        guard let context = EVP_PKEY_CTX_new_from_name(nil, "EC", nil) else { return nil }
        defer { EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer?
        guard EVP_PKEY_keygen_init(context) == 1, EVP_PKEY_CTX_set_group_name(context, "P-256") == 1,
            EVP_PKEY_generate(context, &key) == 1
        else { return nil }
        return key
    }

    private static func makeCertificate(for key: OpaquePointer) -> OpaquePointer? {
        guard let certificate = X509_new() else { return nil }
        var serial: UInt64 = 0
        let isRandom = withUnsafeMutableBytes(of: &serial) { buffer in
            RAND_bytes(buffer.baseAddress?.assumingMemoryBound(to: UInt8.self), Int32(buffer.count)) == 1
        }
        // Clocks of two sides differ: valid since yesterday, and for a month.
        let day = 86_400
        let name = X509_get_subject_name(certificate)
        guard isRandom, X509_set_version(certificate, Int(X509_VERSION_3)) == 1,
            ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial >> 1) == 1,
            X509_gmtime_adj(X509_getm_notBefore(certificate), -day) != nil,
            X509_gmtime_adj(X509_getm_notAfter(certificate), 30 * day) != nil,
            X509_set_pubkey(certificate, key) == 1,
            X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, "SinchRTC", -1, -1, 0) == 1,
            X509_set_issuer_name(certificate, name) == 1,
            X509_sign(certificate, key, EVP_sha256()) > 0
        else {
            X509_free(certificate)
            return nil
        }
        return certificate
    }
}

extension CertificateFingerprint {
    /// The fingerprint of a certificate.
    init?(of certificate: OpaquePointer, _ hash: Hash) {
        let function =
            switch hash {
            case .sha256: EVP_sha256()
            case .sha384: EVP_sha384()
            case .sha512: EVP_sha512()
            }
        var bytes = [UInt8](repeating: 0, count: hash.length)
        var count = UInt32(0)
        guard X509_digest(certificate, function, &bytes, &count) == 1, Int(count) == hash.length else { return nil }
        self.init(hash: hash, bytes: bytes)
    }
}

/// The oldest error that the library noted, in its words.
func lastLibraryError() -> String {
    let code = ERR_peek_error()
    ERR_clear_error()
    guard code != 0, let text = ERR_reason_error_string(code) else { return "no reason given" }
    return String(cString: text)
}
