extension SIPMessage {
    /// A response to this request (RFC 3261 section 8.2.6): Via, From, To, Call-ID and CSeq are copied byte for
    /// byte; Record-Route too when the response makes a dialog (section 12.1.1), and Timestamp into a 100.
    /// - Parameters:
    ///   - reason: nil for the standard phrase.
    ///   - toTag: the tag that To gets if it has none; a 100 needs none.
    public func response(status: Int, reason: String? = nil, toTag: String? = nil) -> SIPMessage {
        var response = SIPMessage(status: status, reason: reason)
        response.headers.copy(.via, from: headers)
        if (101...299).contains(status), method.map(Self.dialogMethods.contains) == true {
            response.headers.copy(.recordRoute, from: headers)
        }
        response.headers.copy(.from, from: headers)
        response.headers.copy(.to, from: headers)
        if let toTag { response.addToTag(toTag) }
        response.headers.copy(.callID, from: headers)
        response.headers.copy(.cseq, from: headers)
        if status == 100 { response.headers.copy(.timestamp, from: headers) }
        return response
    }

    /// Gives To a tag if it has none, and leaves what the peer wrote there as it is, byte for byte.
    mutating func addToTag(_ tag: String) {
        guard to?.tag == nil else { return }
        headers.extendValue(.to, with: ";tag=" + tag)
    }

    private static let dialogMethods: Set<SIPMethod> = [.invite, .subscribe, .refer, .notify]
}
