extension SIPMessage {
    // MARK: Via

    /// All Via values, the topmost first; empty when one of them is malformed. Setting puts each on its own line.
    public var vias: [SIPVia] {
        get {
            var result: [SIPVia] = []
            for field in headers.fields where field.kind == .via {
                var scanner = ByteScanner(headers.storage, field.value)
                repeat {
                    guard let via = try? SIPVia(&scanner) else { return [] }
                    result.append(via)
                } while scanner.take(UInt8(ascii: ","))
            }
            return result
        }
        set { headers.replaceAll(.init(.via), with: newValue.map(\.description)) }
    }

    /// The first Via value. Setting replaces it, or adds one when there is none; nil removes it.
    public var topVia: SIPVia? {
        get {
            guard var scanner = headers.scanner(.via) else { return nil }
            return try? SIPVia(&scanner)
        }
        set {
            guard let newValue else { return removeTopVia() }
            guard let (index, rest) = topViaLine else { return prependVia(newValue) }
            headers.replaceValue(at: index, with: newValue.description + (rest.map { ", " + $0 } ?? ""))
        }
    }

    /// Adds a Via above all others.
    public mutating func prependVia(_ via: SIPVia) {
        let index = headers.fields.firstIndex { $0.kind == .via } ?? 0
        headers.insert(.via, via.description, at: index)
    }

    /// Removes the first Via value, whatever its syntax; the others stay as they are.
    public mutating func removeTopVia() {
        guard let (index, rest) = topViaLine else { return }
        headers.replaceValue(at: index, with: rest)
    }

    /// The first Via line, and what follows its first value.
    private var topViaLine: (index: Int, rest: String?)? {
        guard let index = headers.fields.firstIndex(where: { $0.kind == .via }) else { return nil }
        var scanner = ByteScanner(headers.storage, headers.fields[index].value)
        _ = HeaderList.takeElement(&scanner)
        guard scanner.take(UInt8(ascii: ",")) else { return (index, nil) }
        scanner.skipBlanks()
        return (index, scanner.isAtEnd ? nil : scanner.text(scanner.position..<scanner.end))
    }

    // MARK: Dialog

    /// Who the request is from.
    public var from: SIPAddress? {
        get { address(.from) }
        set { headers.set(.from, newValue?.description) }
    }

    /// Whom the request is for.
    public var to: SIPAddress? {
        get { address(.to) }
        set { headers.set(.to, newValue?.description) }
    }

    /// The identifier that all messages of a dialog or registration share.
    public var callID: String? {
        get {
            guard let field = headers.first(.callID), Self.isCallID(field.value, headers.storage.span) else {
                return nil
            }
            return headers.text(field)
        }
        set { headers.set(.callID, newValue) }
    }

    /// Number and method of the request.
    public var cseq: SIPCSeq? {
        get {
            guard var scanner = headers.scanner(.cseq) else { return nil }
            return SIPCSeq(&scanner)
        }
        set { headers.set(.cseq, newValue?.description) }
    }

    /// How many hops are left; 0 to 255.
    public var maxForwards: Int? {
        get { number(.maxForwards, maximum: 255) }
        set { headers.set(.maxForwards, newValue.map { String($0) }) }
    }

    // MARK: Routing

    /// The Contact values; empty for `*`, and when one is malformed.
    public var contacts: [SIPAddress] {
        get { hasStarContact ? [] : addresses(.contact) ?? [] }
        set { headers.replaceAll(.init(.contact), with: newValue.map(\.description)) }
    }

    /// Whether the Contact is `*`: all bindings (RFC 3261 section 10.2.2).
    public var hasStarContact: Bool {
        headers.fields.contains { $0.kind == .contact && headers.storage[$0.value].elementsEqual("*".utf8) }
    }

    /// The Route values, the next hop first; empty when one is malformed.
    public var routes: [SIPAddress] {
        get { addresses(.route) ?? [] }
        set { headers.replaceAll(.init(.route), with: newValue.map(\.description)) }
    }

    /// The Record-Route values in order; empty when one is malformed.
    public var recordRoutes: [SIPAddress] {
        get { addresses(.recordRoute) ?? [] }
        set { headers.replaceAll(.init(.recordRoute), with: newValue.map(\.description)) }
    }

    // MARK: Scalars

    /// Seconds; 0 to 2^32 - 1.
    public var expires: Int? {
        get { number(.expires, maximum: Self.maximumSeconds) }
        set { headers.set(.expires, newValue.map { String($0) }) }
    }

    /// The shortest expiry that a registrar grants, in seconds.
    public var minExpires: Int? {
        get { number(.minExpires, maximum: Self.maximumSeconds) }
        set { headers.set(.minExpires, newValue.map { String($0) }) }
    }

    /// Seconds to wait; comment and parameters of the header are left aside.
    public var retryAfter: Int? {
        get {
            guard var scanner = headers.scanner(.retryAfter),
                let number = scanner.takeNumber(maximum: Self.maximumSeconds)
            else { return nil }
            scanner.skipBlanks()
            let next = scanner.peek
            return next == nil || next == UInt8(ascii: ";") || next == UInt8(ascii: "(")
                ? Int(truncatingIfNeeded: number) : nil
        }
        set { headers.set(.retryAfter, newValue.map { String($0) }) }
    }

    /// The body's media type with its parameters.
    public var contentType: String? {
        get { headers.text(.contentType) }
        set { headers.set(.contentType, newValue) }
    }

    /// The length that the header states; nil when it is absent, malformed or contradicts another one.
    public var contentLength: Int? {
        if case .length(let length) = headers.declaredContentLength { length } else { nil }
    }

    // MARK: Reading

    static let maximumSeconds: UInt64 = 4_294_967_295

    func address(_ kind: HeaderName) -> SIPAddress? {
        guard var scanner = headers.scanner(kind), let address = try? SIPAddress(&scanner), scanner.isAtEnd
        else { return nil }
        return address
    }

    /// All addresses of a header; nil when one is malformed.
    func addresses(_ kind: HeaderName) -> [SIPAddress]? {
        var result: [SIPAddress] = []
        for field in headers.fields where field.kind == kind {
            var scanner = ByteScanner(headers.storage, field.value)
            repeat {
                guard let address = try? SIPAddress(&scanner) else { return nil }
                result.append(address)
            } while scanner.take(UInt8(ascii: ","))
        }
        return result
    }

    func number(_ kind: HeaderName, maximum: UInt64) -> Int? {
        guard var scanner = headers.scanner(kind), let number = scanner.takeNumber(maximum: maximum), scanner.isAtEnd
        else { return nil }
        return Int(truncatingIfNeeded: number)
    }

    /// `word [ "@" word ]` (RFC 3261 section 25.1), read widely: visible characters.
    static func isCallID(_ range: Range<Int>, _ bytes: Span<UInt8>) -> Bool {
        for index in range where bytes[index] <= 0x20 || bytes[index] == 0x7F { return false }
        return !range.isEmpty
    }
}
