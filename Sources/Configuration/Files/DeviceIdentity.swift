/// The name of this device toward registrars (RFC 5626, section 4.1): one for each state directory, kept in the file
/// `device`, so that a client that is started again takes the place of the one before instead of ringing beside it.
public enum DeviceIdentity {
    /// The name, `urn:uuid:…`; nil when it cannot be kept, and a client has to make one for itself.
    ///
    /// - Parameter make: makes a name when there is none yet.
    public static func load(_ paths: Paths, make: () -> String) -> String? {
        guard let path = try? paths.prepareStateDirectory() + "/device" else { return nil }
        if let known = read(path) { return known }
        let name = make()
        // Two clients may start at once: the first one's name counts. What is no name is replaced.
        do {
            try AtomicFile.write(Array((name + "\n").utf8), to: path, replacing: false)
            return name
        } catch {
            if let known = read(path) { return known }
            return (try? AtomicFile.write(Array((name + "\n").utf8), to: path)) == nil ? nil : name
        }
    }

    private static func read(_ path: String) -> String? {
        guard let bytes = (try? ProtectedFile.read(path, limit: 1_024))?.bytes else { return nil }
        let text = String(decoding: bytes.prefix(64), as: UTF8.self).prefix { !$0.isNewline }
        let digits = text.dropFirst("urn:uuid:".count)
        guard text.hasPrefix("urn:uuid:"), digits.utf8.count == 36,
            digits.allSatisfy({ $0 == "-" || $0.isHexDigit && $0.isASCII })
        else { return nil }
        return String(text)
    }
}
