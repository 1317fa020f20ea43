import Glibc

/// A server certificate for `localhost` and `sinchctl.localhost`, and the authority that signed it, as files that exist
/// for this process only.
public enum LoopbackIdentity {
    /// Where the files are.
    public struct Files: Sendable {
        /// The authority, for clients that trust it.
        public let authority: String
        /// The server's certificate.
        public let certificate: String
        /// The server's key.
        public let key: String
    }

    /// Made once.
    public static let files = Result { try make() }

    private static func make() throws -> Files {
        let authority = try TestCertificate.authority()
        let server = try authority.issue { $0.alternativeNames = "DNS:localhost,DNS:sinchctl.localhost" }
        return Files(
            authority: try file(authority.pem), certificate: try file(server.chainPEM), key: try file(server.keyPEM()))
    }

    /// A file without a name, to be opened through the descriptor that stays open.
    private static func file(_ text: String) throws -> String {
        var template = Array("/tmp/sinchctl-test-XXXXXX".utf8CString)
        let descriptor = mkstemp(&template)
        let bytes = Array(text.utf8)
        guard descriptor >= 0, unlink(template) == 0, write(descriptor, bytes, bytes.count) == bytes.count else {
            throw TestCertificateError("write a temporary file")
        }
        return "/proc/self/fd/\(descriptor)"
    }
}
