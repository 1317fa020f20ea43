import COpenSSL
import Glibc

/// The check of one server's certificate: OpenSSL's of the chain, then ours of the name. It runs within the handshake,
/// so a server that fails it gets an alert and not one byte of ours.
final class PeerVerification {
    let expected: ExpectedServerName
    /// What failed; nil when nothing did yet.
    private(set) var failure: TLSFailure?
    /// Details for the message: dates, whose certificate.
    private(set) var detail: String?

    /// The server asked for a certificate of ours.
    private(set) var wantsOurCertificate = false

    init(_ expected: ExpectedServerName) {
        self.expected = expected
    }

    /// OpenSSL's callback in place of the plain `X509_verify_cert`. Returns 1 for a good certificate.
    static func verify(_ store: OpaquePointer?) -> Int32 {
        guard let store, let ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()) else {
            return 0
        }
        return of(OpaquePointer(ssl))?.run(store) ?? 0
    }

    /// OpenSSL's callback when a server asks for a certificate: there is none.
    static func noteCertificateRequest(_ ssl: OpaquePointer?) -> Int32 {
        of(ssl)?.wantsOurCertificate = true
        return 0
    }

    private static func of(_ ssl: OpaquePointer?) -> PeerVerification? {
        SSL_get_ex_data(ssl, 0).map { Unmanaged.fromOpaque($0).takeUnretainedValue() }
    }

    /// OpenSSL's callback for each finding: with revocation lists loaded, an authority that has none there is no fault.
    static func accept(_ isGood: Int32, _ store: OpaquePointer?) -> Int32 {
        guard isGood == 0, X509_STORE_CTX_get_error(store) == X509_V_ERR_UNABLE_TO_GET_CRL else { return isGood }
        X509_STORE_CTX_set_error(store, X509_V_OK)
        return 1
    }

    /// Whether a revocation list was loaded.
    static func containsRevocationList(_ store: OpaquePointer?) -> Bool {
        guard let objects = X509_STORE_get0_objects(store) else { return false }
        return (0..<max(0, OPENSSL_sk_num(objects))).contains { index in
            X509_OBJECT_get_type(OpaquePointer(OPENSSL_sk_value(objects, index))) == X509_LU_CRL
        }
    }

    private func run(_ store: OpaquePointer) -> Int32 {
        guard X509_verify_cert(store) == 1 else {
            let error = X509_STORE_CTX_get_error(store)
            failure = TLSFailure(verifyError: error)
            detail = Self.detail(error, store)
            return 0
        }
        let names = Self.names(X509_STORE_CTX_get0_cert(store))
        guard expected.matches(names) else {
            failure = .nameMismatch(expected: expected.text, presented: Self.excerpt(names))
            X509_STORE_CTX_set_error(store, X509_V_ERR_HOSTNAME_MISMATCH)
            return 0
        }
        return 1
    }

    /// The names in a certificate, as many as one handshake can carry.
    private static func names(_ certificate: OpaquePointer?) -> [CertificateName] {
        guard let certificate,
            let list = X509_get_ext_d2i(certificate, NID_subject_alt_name, nil, nil).map({ OpaquePointer($0) })
        else { return [] }
        defer { OPENSSL_sk_pop_free(list) { GENERAL_NAME_free($0?.assumingMemoryBound(to: GENERAL_NAME.self)) } }
        var names: [CertificateName] = []
        for index in 0..<max(0, OPENSSL_sk_num(list)) {
            guard let entry = OPENSSL_sk_value(list, index)?.assumingMemoryBound(to: GENERAL_NAME.self) else {
                continue
            }
            let (kind, string): (CertificateName.Kind, UnsafeMutablePointer<ASN1_STRING>?) =
                switch entry.pointee.type {
                case GEN_DNS: (.domain, entry.pointee.d.dNSName)
                case GEN_URI: (.uri, entry.pointee.d.uniformResourceIdentifier)
                case GEN_IPADD: (.address, entry.pointee.d.iPAddress)
                default: (.domain, nil)
                }
            guard let string, let start = ASN1_STRING_get0_data(string) else { continue }
            let length = Int(ASN1_STRING_length(string))
            names.append(CertificateName(kind: kind, value: Array(UnsafeBufferPointer(start: start, count: length))))
        }
        return names
    }

    /// The first names for a message, which a hostile certificate must not blow up.
    private static func excerpt(_ names: [CertificateName]) -> [String] {
        let texts = names.map { $0.printable ?? "an unprintable name" }
        return texts.count <= 6 ? texts : texts.prefix(5) + ["\(texts.count - 5) more"]
    }

    private static func detail(_ error: Int32, _ store: OpaquePointer) -> String? {
        guard let certificate = X509_STORE_CTX_get_current_cert(store) else { return nil }
        let whose = X509_STORE_CTX_get_error_depth(store) > 0 ? "an authority's certificate in the chain " : ""
        switch error {
        case X509_V_ERR_CERT_HAS_EXPIRED:
            return date(X509_get0_notAfter(certificate)).map { "\(whose)valid until \($0)" }
        case X509_V_ERR_CERT_NOT_YET_VALID:
            return date(X509_get0_notBefore(certificate)).map { "\(whose)valid from \($0)" }
        default:
            return whose.isEmpty ? nil : String(whose.dropLast())
        }
    }

    private static func date(_ time: UnsafePointer<ASN1_TIME>?) -> String? {
        var parts = tm()
        guard ASN1_TIME_to_tm(time, &parts) == 1 else { return nil }
        func two(_ value: Int32) -> String { value < 10 ? "0\(value)" : "\(value)" }
        return "\(1900 + Int(parts.tm_year))-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday)) "
            + "\(two(parts.tm_hour)):\(two(parts.tm_min)) UTC"
    }
}
