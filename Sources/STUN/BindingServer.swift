/// Answers Binding requests as a server without credentials does (RFC 8489, section 12): tells each client its address.
///
/// A SIP element that takes part in RFC 5626 answers them at its SIP port, so that clients keep their NAT open and notice
/// when their address changes (section 5.4 and 8 there).
public enum BindingServer {
    /// The answer to a datagram; nil for what is no Binding request.
    ///
    /// It is at most 24 bytes longer than the request, so that nobody gains from sending requests in others' names.
    public static func response(to datagram: [UInt8], from source: STUNAddress) -> [UInt8]? {
        guard let request = try? STUNMessage.parse(datagram), request.messageClass == .request,
            request.method == STUNMessage.bindingMethod
        else { return nil }
        // Whoever fingerprints what it sends can tell the answer by it.
        let hasFingerprint = request.encoded(fingerprint: false).count < datagram.count
        let unknown = request.attributes.map(\.kind).filter { $0.mustBeUnderstood && !ignored.contains($0) }
        var response = STUNMessage(unknown.isEmpty ? .success : .error, transaction: request.transaction)
        if unknown.isEmpty {
            response.attributes = [.xorMappedAddress(source, transaction: request.transaction)]
        } else {
            let list = unknown.prefix(2).flatMap { kind in
                [UInt8(truncatingIfNeeded: kind.rawValue >> 8), UInt8(truncatingIfNeeded: kind.rawValue)]
            }
            response.attributes = [.errorCode(420, ""), STUNAttribute(.unknownAttributes, list)]
        }
        return response.encoded(fingerprint: hasFingerprint)
    }

    /// Credentials that a client sends unasked are no reason to refuse it.
    private static let ignored: Set<STUNAttribute.Kind> = [.username, .messageIntegrity]
}
