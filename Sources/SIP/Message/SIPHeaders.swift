/// A message's headers in order. Names ignore case, and a compact name is the same header as its long form
/// (RFC 3261 section 7.3). A value that was parsed keeps its bytes, whatever they are, until it is replaced.
public struct SIPHeaders: Sendable, Equatable {
    /// Where one header line lies in `storage`. A message has many of them: they are kept small.
    struct Field: Sendable {
        var kind: HeaderName
        /// The bytes came from the network, where the parser checked them: it let a NUL pass only in a quoted-pair.
        var isReceived = false
        private var nameStart: UInt32
        private var nameCount: UInt32
        private var valueStart: UInt32
        private var valueCount: UInt32

        init(kind: HeaderName, name: Range<Int>, value: Range<Int>, isReceived: Bool = false) {
            self.kind = kind
            self.isReceived = isReceived
            nameStart = UInt32(clamping: name.lowerBound)
            nameCount = UInt32(clamping: name.count)
            valueStart = UInt32(clamping: value.lowerBound)
            valueCount = UInt32(clamping: value.count)
        }

        var name: Range<Int> { Int(nameStart)..<(Int(nameStart) &+ Int(nameCount)) }

        var value: Range<Int> {
            get { Int(valueStart)..<(Int(valueStart) &+ Int(valueCount)) }
            set {
                valueStart = UInt32(clamping: newValue.lowerBound)
                valueCount = UInt32(clamping: newValue.count)
            }
        }
    }

    /// Names and values; after parsing, the received message itself.
    private(set) var storage: [UInt8]
    private(set) var fields: [Field]
    /// Bytes of `storage` that replaced headers left behind.
    private var unused = 0

    /// No headers.
    public init() {
        storage = []
        fields = []
    }

    init(storage: [UInt8], fields: [Field]) {
        self.storage = storage
        self.fields = fields
    }

    // MARK: By name

    /// The first value of that name as text, nil when there is none. Setting replaces all values of the name by
    /// one, in the place of the first; nil removes them.
    public subscript(_ name: String) -> String? {
        get {
            let key = Key(name)
            return fields.first { matches($0, key) }.map(text)
        }
        set {
            let key = Key(name)
            guard let newValue else { return removeAll(key) }
            replaceAll(key, with: [newValue])
        }
    }

    /// The values of that name, one for each header line.
    public func all(_ name: String) -> [String] {
        let key = Key(name)
        return fields.filter { matches($0, key) }.map(text)
    }

    /// The values of that name with comma-separated lists taken apart; commas in quotes, angle brackets and
    /// comments do not separate.
    public func values(_ name: String) -> [String] {
        let key = Key(name)
        return fields.filter { matches($0, key) }.flatMap { field in
            HeaderList.elements(ByteScanner(storage, field.value)).map {
                String(decoding: storage[$0], as: UTF8.self)
            }
        }
    }

    /// Adds a header line at the end.
    public mutating func append(_ name: String, _ value: String) {
        fields.append(store(Key(name), value))
    }

    /// Adds a header line before all others.
    public mutating func prepend(_ name: String, _ value: String) {
        fields.insert(store(Key(name), value), at: 0)
    }

    /// Removes all header lines of that name.
    public mutating func remove(_ name: String) {
        removeAll(Key(name))
    }

    /// Whether a header of that name is there.
    public func contains(_ name: String) -> Bool {
        let key = Key(name)
        return fields.contains { matches($0, key) }
    }

    /// The number of header lines.
    public var count: Int { fields.count }

    /// All header lines in order, names as they were written.
    public var all: [(name: String, value: String)] {
        fields.map { (String(decoding: storage[$0.name], as: UTF8.self), text($0)) }
    }

    /// Headers are equal when names (ignoring case and compact forms), value bytes and order are.
    public static func == (left: SIPHeaders, right: SIPHeaders) -> Bool {
        left.fields.count == right.fields.count
            && zip(left.fields, right.fields).allSatisfy { first, second in
                first.kind == second.kind
                    && left.storage[first.value] == right.storage[second.value]
                    && (first.kind != .other
                        || left.storage[first.name].elementsEqual(right.storage[second.name]) {
                            $0.asciiLowercased == $1.asciiLowercased
                        })
            }
    }

    // MARK: By kind

    /// A name to look for.
    struct Key {
        let kind: HeaderName
        let name: String

        init(_ name: String) {
            self.kind = HeaderName(name)
            self.name = name
        }

        init(_ kind: HeaderName) {
            self.kind = kind
            self.name = kind.names.long
        }
    }

    func first(_ kind: HeaderName) -> Field? {
        fields.first { $0.kind == kind }
    }

    func count(_ kind: HeaderName) -> Int {
        fields.reduce(0) { $1.kind == kind ? $0 + 1 : $0 }
    }

    /// A scanner over the first value of that kind.
    func scanner(_ kind: HeaderName) -> ByteScanner? {
        first(kind).map { ByteScanner(storage, $0.value) }
    }

    func text(_ field: Field) -> String {
        String(decoding: storage[field.value], as: UTF8.self)
    }

    func text(_ kind: HeaderName) -> String? {
        first(kind).map(text)
    }

    mutating func set(_ kind: HeaderName, _ value: String?) {
        replaceAll(Key(kind), with: value.map { [$0] } ?? [])
    }

    mutating func replaceAll(_ key: Key, with values: [String]) {
        let index = fields.firstIndex { matches($0, key) } ?? fields.count
        removeAll(key)
        let position = min(index, fields.count)
        compactIfWorthwhile()
        fields.insert(contentsOf: values.map { store(key, $0) }, at: position)
    }

    /// Replaces the value of the line at `index`, or removes the line.
    mutating func replaceValue(at index: Int, with value: String?) {
        guard fields.indices.contains(index) else { return }
        unused += fields[index].value.count
        if let value {
            fields[index].value = store(value)
            fields[index].isReceived = false
        } else {
            fields.remove(at: index)
        }
        compactIfWorthwhile()
    }

    /// Writes `text` behind the first value of that kind, whose bytes stay as they are.
    mutating func extendValue(_ kind: HeaderName, with text: String) {
        guard let index = fields.firstIndex(where: { $0.kind == kind }) else { return }
        let value = fields[index].value
        unused += value.count
        let start = store(Array(storage[value])[...]).lowerBound
        fields[index].value = start..<store(text).upperBound
        compactIfWorthwhile()
    }

    mutating func insert(_ kind: HeaderName, _ value: String, at index: Int) {
        fields.insert(store(Key(kind), value), at: max(0, min(index, fields.count)))
    }

    /// Takes over all lines of a kind from another message, byte for byte.
    mutating func copy(_ kind: HeaderName, from other: SIPHeaders) {
        for field in other.fields where field.kind == kind {
            fields.append(
                Field(
                    kind: kind, name: store(other.storage[field.name]), value: store(other.storage[field.value]),
                    isReceived: field.isReceived))
        }
    }

    private mutating func removeAll(_ key: Key) {
        for index in fields.indices.reversed() where matches(fields[index], key) {
            unused += fields[index].name.count + fields[index].value.count
            fields.remove(at: index)
        }
    }

    private func matches(_ field: Field, _ key: Key) -> Bool {
        guard field.kind == key.kind else { return false }
        return key.kind != .other
            || field.name.count == key.name.utf8.count
                && zip(storage[field.name], key.name.utf8).allSatisfy { $0.asciiLowercased == $1.asciiLowercased }
    }

    // MARK: Storage

    private mutating func store(_ key: Key, _ value: String) -> Field {
        Field(kind: key.kind, name: store(key.name), value: store(value))
    }

    private mutating func store(_ text: String) -> Range<Int> {
        let start = storage.count
        storage.append(contentsOf: text.utf8)
        return start..<storage.count
    }

    private mutating func store(_ bytes: ArraySlice<UInt8>) -> Range<Int> {
        let start = storage.count
        storage.append(contentsOf: bytes)
        return start..<storage.count
    }

    /// Copies what is in use when replaced values take more than that, so that a message that is changed again and
    /// again does not grow.
    private mutating func compactIfWorthwhile() {
        guard unused > 4_096, unused > storage.count / 2 else { return }
        var compact = SIPHeaders()
        for field in fields {
            compact.fields.append(
                Field(
                    kind: field.kind, name: compact.store(storage[field.name]),
                    value: compact.store(storage[field.value]), isReceived: field.isReceived))
        }
        self = compact
    }
}
