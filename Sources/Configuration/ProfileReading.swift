extension ConfigurationDocument {
    /// Applies what the file says under `profiles.NAME` to a profile, and tells which settings that were.
    func apply(_ member: JSON5Member, to profile: inout Profile) -> (keys: [ProfileKey], findings: [Finding]) {
        let path = "profiles." + member.name
        guard let members = member.value.object else {
            let message = "\(path) must be an object, not \(member.value.kind)"
            return ([], [finding(.wrongType, at: member.value.offset, message, hint: "write { … }")])
        }
        var keys: [ProfileKey] = []
        var findings: [Finding] = []
        for member in members {
            guard let key = ProfileKey(rawValue: member.name) else {
                findings.append(
                    finding(
                        .unknownKey, at: member.offset, "the key \(path).\(printable(member.name)) is unknown",
                        hint: Self.suggestion(member.name, among: ProfileKey.allCases.map(\.rawValue))))
                continue
            }
            do throws(LocatedProblem) {
                let setting = try setting(key, member.value, path: "\(path).\(member.name)")
                do throws(SettingProblem) {
                    try profile.set(key, to: setting)
                } catch {
                    throw LocatedProblem(problem: error, offset: member.value.offset, path: "\(path).\(member.name)")
                }
                keys.append(key)
            } catch {
                findings.append(
                    finding(
                        error.problem.code, at: error.offset, "\(error.path): \(error.problem.reason)",
                        hint: error.problem.hint))
            }
        }
        for key in keys {
            guard let file = key.secretFileKey, keys.contains(file) else { continue }
            findings.append(
                finding(
                    .invalidValue, at: member.offset, "\(path) has both \(key.rawValue) and \(file.rawValue)",
                    hint: "keep one of them"))
        }
        return (keys, findings)
    }

    private struct LocatedProblem: Error {
        var problem: SettingProblem
        var offset: Int
        var path: String

        init(problem: SettingProblem, offset: Int, path: String) {
            self.problem = problem
            self.offset = offset
            self.path = path
        }

        init(_ value: JSON5Value, at path: String, mustBe type: String, hint: String? = nil) {
            problem = SettingProblem(code: .wrongType, reason: "must be \(type), not \(value.kind)", hint: hint)
            offset = value.offset
            self.path = path
        }
    }

    private func setting(_ key: ProfileKey, _ value: JSON5Value, path: String) throws(LocatedProblem) -> Setting {
        if value.content == .null { return .unset }
        switch key {
        case .tokenCommand:
            let hint = "write [\"program\", \"argument\"]"
            guard let elements = value.array else {
                throw LocatedProblem(value, at: path, mustBe: "a list of strings", hint: hint)
            }
            return .list(try strings(elements, path: path))
        case .iceServers:
            guard let elements = value.array else {
                throw LocatedProblem(
                    value, at: path, mustBe: "a list of objects", hint: "write [{\"urls\": \"stun:HOST\"}]")
            }
            var servers: [ICEServer] = []
            for (index, element) in elements.enumerated() {
                servers.append(try server(element, path: "\(path)[\(index)]"))
            }
            return .servers(servers)
        case .caFile, .tokenFile, .applicationSecretFile, .passwordFile:
            guard let text = value.string else { throw LocatedProblem(value, at: path, mustBe: "a string") }
            return .text(besideTheFile(text))
        default:
            guard let text = value.string else {
                throw LocatedProblem(value, at: path, mustBe: "a string", hint: "write it in quotes")
            }
            return key == .environmentHost && text == "embedded" ? .unset : .text(text)
        }
    }

    private func strings(_ elements: [JSON5Value], path: String) throws(LocatedProblem) -> [String] {
        var strings: [String] = []
        for (index, element) in elements.enumerated() {
            guard let text = element.string else {
                throw LocatedProblem(element, at: "\(path)[\(index)]", mustBe: "a string")
            }
            strings.append(text)
        }
        return strings
    }

    private func server(_ value: JSON5Value, path: String) throws(LocatedProblem) -> ICEServer {
        guard let members = value.object else { throw LocatedProblem(value, at: path, mustBe: "an object") }
        var server = ICEServer(urls: [])
        for member in members {
            let path = path + "." + printable(member.name)
            switch member.name {
            case "urls":
                if let url = member.value.string {
                    server.urls = [url]
                } else if let elements = member.value.array {
                    server.urls = try strings(elements, path: path)
                } else {
                    throw LocatedProblem(member.value, at: path, mustBe: "a string or a list of strings")
                }
            case "username", "credential":
                guard let text = member.value.string else {
                    throw LocatedProblem(member.value, at: path, mustBe: "a string")
                }
                if member.name == "username" { server.username = text } else { server.credential = ConcealedText(text) }
            default:
                let hint = Self.suggestion(member.name, among: ["urls", "username", "credential"])
                throw LocatedProblem(
                    problem: SettingProblem(code: .unknownKey, reason: "the key is unknown", hint: hint),
                    offset: member.offset, path: path)
            }
        }
        return server
    }

    /// Relative paths in the file mean files beside it, wherever a command is run.
    private func besideTheFile(_ name: String) -> String {
        guard !name.isEmpty, !name.hasPrefix("/"), !name.hasPrefix("~"),
            let slash = path.utf8.lastIndex(of: UInt8(ascii: "/"))
        else { return name }
        return String(path[...slash]) + name
    }
}
