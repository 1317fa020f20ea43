/// The configuration file, read and taken apart as far as its profiles.
struct ConfigurationDocument {
    /// The largest file that is read, in bytes.
    static let maxBytes = 262_144

    var path: String
    var bytes: [UInt8]
    /// The profiles, in the file's order.
    var profiles: [JSON5Member] = []
    /// What is wrong outside the profiles.
    var findings: [Finding] = []

    /// Reads the file at `path`; nil when there is none, or when it is `/dev/null`.
    static func read(_ path: String) throws(ConfigurationError) -> ConfigurationDocument? {
        guard path != "/dev/null", let file = try ProtectedFile.read(path, limit: maxBytes) else { return nil }
        try file.requireUnchangeableByOthers()
        var document = ConfigurationDocument(path: path, bytes: file.bytes)
        // An empty file, as `touch` leaves one, configures nothing.
        guard !file.bytes.allSatisfy({ $0 <= 0x20 }) else { return document }
        let root: JSON5Value
        do throws(JSON5Error) {
            root = try JSON5Reader.parse(file.bytes)
        } catch {
            let position = TextPosition(offset: error.offset, in: file.bytes)
            throw ConfigurationError(
                .syntax, "\(path) is not JSON5: \(position): \(printable(error.reason))", hint: "correct that place")
        }
        if containsSecret(root) { try file.requirePrivate(because: "holds a secret") }
        document.takeApart(root)
        return document
    }

    /// Whether a secret stands anywhere, also in a profile that is not used or under a key at the wrong place.
    private static func containsSecret(_ value: JSON5Value) -> Bool {
        switch value.content {
        case .object(let members):
            members.contains { member in
                let isSecret = ProfileKey(rawValue: member.name)?.isSecret == true || member.name == "credential"
                return (isSecret && member.value.content != .null) || containsSecret(member.value)
            }
        case .array(let elements): elements.contains(where: containsSecret)
        default: false
        }
    }

    private mutating func takeApart(_ root: JSON5Value) {
        guard let members = root.object else {
            report(.wrongType, at: root.offset, "the file must be an object, not \(root.kind)", hint: Self.shape)
            return
        }
        for member in members {
            guard member.name == "profiles" else {
                let isSetting = ProfileKey(rawValue: member.name) != nil
                report(
                    .unknownKey, at: member.offset, "the key '\(printable(member.name))' is unknown here",
                    hint: isSetting
                        ? "settings stand in a profile: " + Self.shape
                        : Self.suggestion(member.name, among: ["profiles"]))
                continue
            }
            guard let profiles = member.value.object else {
                report(
                    .wrongType, at: member.value.offset, "profiles must be an object, not \(member.value.kind)",
                    hint: Self.shape)
                continue
            }
            for profile in profiles {
                if Self.isProfileName(profile.name) {
                    self.profiles.append(profile)
                } else {
                    report(
                        .invalidValue, at: profile.offset,
                        "'\(printable(profile.name))' is no name for a profile",
                        hint: "use 1 to 64 letters, digits, dots, hyphens and underscores")
                }
            }
        }
    }

    private static let shape = "write { \"profiles\": { \"default\": { … } } }"

    private static func isProfileName(_ name: String) -> Bool {
        (1...64).contains(name.utf8.count)
            && name.utf8.allSatisfy { byte in
                let lower = byte | 0x20
                return (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(lower) || isDigit(byte)
                    || "._-".utf8.contains(byte)
            }
    }

    static func suggestion(_ name: String, among names: [String]) -> String {
        if let nearest = nearestName(to: name, among: names) { return "did you mean '\(nearest)'?" }
        return "known are: " + names.joined(separator: ", ")
    }

    mutating func report(_ code: ConfigurationError.Code, at offset: Int, _ message: String, hint: String?) {
        findings.append(finding(code, at: offset, message, hint: hint))
    }

    func finding(_ code: ConfigurationError.Code, at offset: Int, _ message: String, hint: String?) -> Finding {
        let position = TextPosition(offset: offset, in: bytes)
        return Finding(.error, code, "\(path):\(position.line):\(position.column): \(message)", hint: hint)
    }
}
