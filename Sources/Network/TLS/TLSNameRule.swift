/// How a certificate's names are compared with the expected one.
public enum TLSNameRule: Sendable {
    /// RFC 5922, for SIP over TLS: DNS names and `sip:` URIs; no wildcards.
    case sip
    /// RFC 9525, for secure WebSockets: DNS names; a wildcard stands for the whole leftmost label.
    case web
}
