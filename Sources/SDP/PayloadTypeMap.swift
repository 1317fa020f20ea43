/// Which payload type stands for which codec in this session.
///
/// A dynamic payload type must not change its meaning while the session lasts (RFC 3264 section 8.3.2), so the
/// numbers that were ever used are remembered, the peer's when it made the offer.
struct PayloadTypeMap: Equatable {
    private var codecs: [UInt8: AudioCodec] = [:]
    /// The latest number of each codec comes last.
    private var order: [UInt8] = []

    /// Remembers a number in use.
    mutating func record(_ codec: AudioCodec) {
        codecs[codec.payloadType] = codec
        order.removeAll { $0 == codec.payloadType }
        order.append(codec.payloadType)
    }

    /// Gives each codec the number it has already, or its own when that is free, or another free one.
    func assign(_ wanted: [AudioCodec]) -> [AudioCodec] {
        var taken = Set(codecs.keys)
        var assigned: [AudioCodec?] = wanted.map { codec in
            guard let number = order.last(where: { codecs[$0]?.isSameFormat(as: codec) == true }) else { return nil }
            var numbered = codec
            numbered.payloadType = number
            return numbered
        }
        for (index, codec) in wanted.enumerated() where assigned[index] == nil {
            var numbered = codec
            if taken.contains(codec.payloadType) {
                // 96...127 first; 35...63 is what RFC 5761 section 4 leaves beside them.
                guard let free = (Array(96...127) + Array(35...63)).first(where: { !taken.contains($0) }) else {
                    continue
                }
                numbered.payloadType = free
            }
            taken.insert(numbered.payloadType)
            assigned[index] = numbered
        }
        return assigned.compactMap { $0 }
    }
}
