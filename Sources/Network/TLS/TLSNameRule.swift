/// How the names in a server's certificate are compared with the expected one. A common name never counts, and an IP
/// address must be among the certificate's IP addresses.
public enum TLSNameRule: Sendable {
    /// RFC 5922, section 7, for SIP over TLS: the domain as a `sip:` URI or, when the certificate has none, as a DNS name. No
    /// wildcards.
    case sip
    /// RFC 9525, section 6, for secure WebSockets: a DNS name; a wildcard stands for one whole label, the leftmost.
    case web
}
