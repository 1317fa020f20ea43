import COpenSSL

/// What went wrong in making a certificate: a fault of the test, with OpenSSL's words.
public struct TestCertificateError: Error, CustomStringConvertible {
    public let description: String

    init(_ step: String) {
        let code = ERR_peek_last_error()
        ERR_clear_error()
        description = "\(step): " + (ERR_reason_error_string(code).map { String(cString: $0) } ?? "error \(code)")
    }
}

/// What a certificate shall say. The defaults make a good server certificate for `example.com`.
public struct TestCertificateOptions: Sendable {
    /// The kinds of keys.
    public enum Key: Sendable {
        case ecdsa
        case rsa(bits: Int32)
    }

    public var commonName: String?
    /// As OpenSSL writes them: `DNS:example.com,IP:127.0.0.1,URI:sip:example.com`; nil: no such extension.
    public var alternativeNames: String? = "DNS:example.com"
    /// From when to when it is valid, in seconds from now.
    public var validity: ClosedRange<Int> = -3_600...86_400
    public var key = Key.ecdsa
    /// As OpenSSL writes it: `serverAuth`; nil: no such extension, good for every use.
    public var extendedKeyUsage: String? = "serverAuth"
    public var isAuthority = false
    /// Sign with SHA-1.
    public var weakSignature = false

    public init(_ change: (inout TestCertificateOptions) -> Void = { _ in }) { change(&self) }
}

/// A certificate with its key, made by a test.
public final class TestCertificate: @unchecked Sendable {
    private let certificate: OpaquePointer
    private let key: OpaquePointer
    private let issuer: TestCertificate?

    /// Makes a certificate, signed by `issuer` or, when that is nil, by itself.
    public init(_ options: TestCertificateOptions, issuer: TestCertificate? = nil) throws {
        self.issuer = issuer
        key = try Self.makeKey(options.key)
        guard let certificate = X509_new() else { throw TestCertificateError("make a certificate") }
        self.certificate = certificate
        X509_set_version(certificate, 2)
        ASN1_INTEGER_set(X509_get_serialNumber(certificate), Int.random(in: 1...Int(Int32.max)))
        X509_gmtime_adj(X509_getm_notBefore(certificate), options.validity.lowerBound)
        X509_gmtime_adj(X509_getm_notAfter(certificate), options.validity.upperBound)
        X509_set_pubkey(certificate, key)
        let subject = X509_get_subject_name(certificate)
        let name = options.commonName ?? (options.isAuthority ? "Test authority" : "Test server")
        X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, name, -1, -1, 0)
        X509_set_issuer_name(certificate, X509_get_subject_name(issuer?.certificate ?? certificate))
        if options.isAuthority {
            try add(NID_basic_constraints, "critical,CA:TRUE")
            try add(NID_key_usage, "critical,keyCertSign,cRLSign")
            try add(NID_subject_key_identifier, "hash")
        }
        if let names = options.alternativeNames, !options.isAuthority { try add(NID_subject_alt_name, names) }
        if let usage = options.extendedKeyUsage, !options.isAuthority { try add(NID_ext_key_usage, usage) }
        let digest = options.weakSignature ? EVP_sha1() : EVP_sha256()
        guard X509_sign(certificate, issuer?.key ?? key, digest) > 0 else { throw TestCertificateError("sign") }
    }

    /// Makes an authority.
    public static func authority(
        _ name: String = "Test authority", issuer: TestCertificate? = nil,
        _ change: (inout TestCertificateOptions) -> Void = { _ in }
    ) throws -> TestCertificate {
        try TestCertificate(
            TestCertificateOptions {
                $0.isAuthority = true
                $0.commonName = name
                change(&$0)
            }, issuer: issuer)
    }

    /// Makes a certificate that this authority signs.
    public func issue(_ change: (inout TestCertificateOptions) -> Void = { _ in }) throws -> TestCertificate {
        try TestCertificate(TestCertificateOptions(change), issuer: self)
    }

    deinit {
        X509_free(certificate)
        EVP_PKEY_free(key)
    }

    /// The certificate as PEM.
    public var pem: String {
        Self.text { PEM_write_bio_X509($0, certificate) }
    }

    /// The certificate and those of its issuers but the topmost, as a server sends them.
    public var chainPEM: String {
        guard let issuer, issuer.issuer != nil else { return pem }
        return pem + issuer.chainPEM
    }

    /// The key as PEM, encrypted when a password is given.
    public func keyPEM(password: String? = nil) -> String {
        Self.text { bio in
            guard let password else { return PEM_write_bio_PrivateKey(bio, key, nil, nil, 0, nil, nil) }
            return password.withCString { start in
                start.withMemoryRebound(to: UInt8.self, capacity: password.utf8.count) {
                    PEM_write_bio_PrivateKey(
                        bio, key, EVP_aes_128_cbc(), $0, Int32(password.utf8.count), nil, nil)
                }
            }
        }
    }

    /// A list of this authority that revokes these certificates, as PEM.
    public func revocationList(_ revoked: [TestCertificate]) throws -> String {
        guard let list = X509_CRL_new(), let time = X509_gmtime_adj(nil, -60), let next = X509_gmtime_adj(nil, 86_400)
        else { throw TestCertificateError("make a revocation list") }
        defer {
            X509_CRL_free(list)
            ASN1_STRING_free(time)
            ASN1_STRING_free(next)
        }
        X509_CRL_set_version(list, 1)
        X509_CRL_set_issuer_name(list, X509_get_subject_name(certificate))
        X509_CRL_set1_lastUpdate(list, time)
        X509_CRL_set1_nextUpdate(list, next)
        for one in revoked {
            let entry = X509_REVOKED_new()
            X509_REVOKED_set_serialNumber(entry, X509_get_serialNumber(one.certificate))
            X509_REVOKED_set_revocationDate(entry, time)
            X509_CRL_add0_revoked(list, entry)
        }
        X509_CRL_sort(list)
        guard X509_CRL_sign(list, key, EVP_sha256()) > 0 else { throw TestCertificateError("sign a revocation list") }
        return Self.text { PEM_write_bio_X509_CRL($0, list) }
    }

    private func add(_ identifier: Int32, _ value: String) throws {
        var context = X509V3_CTX()
        X509V3_set_ctx(&context, certificate, certificate, nil, nil, 0)
        guard let addition = X509V3_EXT_conf_nid(nil, &context, identifier, value) else {
            throw TestCertificateError("make the extension \(value)")
        }
        X509_add_ext(certificate, addition, -1)
        X509_EXTENSION_free(addition)
    }

    private static func makeKey(_ kind: TestCertificateOptions.Key) throws -> OpaquePointer {
        let (name, bits): (String, Int32?) =
            switch kind {
            case .ecdsa: ("EC", nil)
            case .rsa(let bits): ("RSA", bits)
            }
        let context = EVP_PKEY_CTX_new_from_name(nil, name, nil)
        defer { EVP_PKEY_CTX_free(context) }
        guard EVP_PKEY_keygen_init(context) == 1 else { throw TestCertificateError("make a key") }
        if let bits {
            EVP_PKEY_CTX_set_rsa_keygen_bits(context, bits)
        } else {
            EVP_PKEY_CTX_set_group_name(context, "P-256")
        }
        var key: OpaquePointer?
        guard EVP_PKEY_generate(context, &key) == 1, let key else { throw TestCertificateError("make a key") }
        return key
    }

    private static func text(_ write: (OpaquePointer?) -> Int32) -> String {
        let bio = BIO_new(BIO_s_mem())
        defer { BIO_free(bio) }
        _ = write(bio)
        var bytes = [UInt8](repeating: 0, count: BIO_ctrl_pending(bio))
        BIO_read(bio, &bytes, Int32(bytes.count))
        return String(decoding: bytes, as: UTF8.self)
    }
}
