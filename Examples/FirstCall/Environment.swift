import FoundationEssentials

/// Where to register, and what tokens are signed with: the discovery file of the embedded environment, or one like it.
struct Environment: Decodable {
    /// Numeric address or host name.
    var host: String
    /// SIP port.
    var port: UInt16
    /// The application.
    var applicationKey: String
    /// Its secret, base64.
    var applicationSecret: String

    /// `HOST:PORT`, as `client(withApplicationKey:environmentHost:userId:)` takes it.
    var address: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }

    static func read(_ path: String) throws -> Environment {
        try JSONDecoder().decode(Environment.self, from: Data(contentsOf: URL(filePath: path)))
    }
}
