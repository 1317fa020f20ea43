import SIP

extension SIPMessage {
    /// The message with its session description as the whole body, taken out of several parts where it must be; with
    /// an empty body when it holds nothing for us; nil when it holds something that must be understood and is not
    /// (415; RFC 3261, 20.11 and 21.4.13; RFC 5621).
    func reducedToSession() -> SIPMessage? {
        guard !body.isEmpty else { return self }
        let encoding = headers["Content-Encoding"]?.lowercased() ?? "identity"
        let part = BodyPart(
            type: contentType ?? "", disposition: headers["Content-Disposition"], encoding: encoding, body: body)
        var reduced = self
        switch part.session(depth: 0) {
        case .session(let description): reduced.body = description
        case .nothing: reduced.body = []
        case .unusable: return nil
        }
        return reduced
    }
}

/// A body, or one part of it, and what a user agent makes of it.
private struct BodyPart {
    enum Meaning {
        case session([UInt8])
        case nothing
        case unusable
    }

    var type: String
    var disposition: String?
    var encoding: String
    var body: [UInt8]

    init(type: String, disposition: String?, encoding: String, body: [UInt8]) {
        self.type = type
        self.disposition = disposition
        self.encoding = encoding
        self.body = body
    }

    init(_ part: MultipartBody.Part) {
        self.init(
            type: part.header("content-type") ?? "text/plain", disposition: part.header("content-disposition"),
            encoding: part.header("content-encoding")?.lowercased() ?? "identity", body: part.body)
    }

    private var mediaType: String {
        String(type.prefix { $0 != ";" }.filter { !$0.isWhitespace }).lowercased()
    }

    private var dispositionParts: [String] {
        (disposition ?? "").split(separator: ";").map { $0.filter { !$0.isWhitespace }.lowercased() }
    }

    /// Whether the sender says that the call can do without this.
    private var isOptional: Bool { dispositionParts.contains("handling=optional") }
    private var isRequired: Bool { dispositionParts.contains("handling=required") }

    func session(depth: Int) -> Meaning {
        let foreign: Meaning = isOptional ? .nothing : .unusable
        guard encoding == "identity" else { return foreign }
        if mediaType == "application/sdp" {
            let purpose = dispositionParts.first { !$0.contains("=") } ?? "session"
            return purpose == "session" ? .session(body) : foreign
        }
        guard mediaType.hasPrefix("multipart/"), depth < 2, let parts = MultipartBody(body, contentType: type)?.parts
        else { return foreign }
        var found: [UInt8]?
        for part in parts.map(Self.init) {
            switch part.session(depth: depth + 1) {
            case .session(let description):
                // Alternatives come with the best last (RFC 2046, 5.1.4); otherwise the first one is the session.
                if found == nil || mediaType == "multipart/alternative" { found = description }
            case .nothing: continue
            case .unusable:
                // Gateways add parts of their own and forget to say that they may be ignored.
                if part.isRequired, mediaType != "multipart/alternative" { return .unusable }
            }
        }
        return found.map { .session($0) } ?? foreign
    }
}
