/// The names that the machine's owner has given to addresses: the hosts file (hosts(5)).
public struct HostsTable: Sendable {
    /// Names that are kept; a hosts file that blocks advertising has some hundred thousand, all for address zero.
    public static let maximumNames = 16_384

    private var addresses: [String: [String]] = [:]

    /// An empty table.
    public init() {}

    /// Reads the file's text. Lines that make no sense are skipped, as everywhere.
    ///
    /// - Parameter isAddress: whether a text is a numeric address.
    public init(parsing text: some Sequence<UInt8>, isAddress: (String) -> Bool) {
        for line in Array(text).split(separator: UInt8(ascii: "\n")) {
            let fields = line.prefix { $0 != UInt8(ascii: "#") }
                .split { $0 == 0x20 || $0 == 0x09 || $0 == 0x0D }
                .map { String(decoding: $0, as: UTF8.self) }
            guard let address = fields.first, fields.count > 1, isAddress(address) else { continue }
            for name in fields.dropFirst() { add(name, address) }
        }
    }

    private mutating func add(_ name: String, _ address: String) {
        guard DNSName.isValid(name), addresses.count < Self.maximumNames else { return }
        let name = DNSName.withoutFinalDot(DNSName.lowercased(name))
        if addresses[name]?.contains(address) != true { addresses[name, default: []].append(address) }
    }

    /// The numeric addresses of a name; nil when the table does not know it.
    public func addresses(of name: String) -> [String]? {
        addresses[DNSName.withoutFinalDot(DNSName.lowercased(name))]
    }
}
