/// Something that bytes from the network are given to. It must bear all of them: a trap is found by the fuzzer, and what
/// is wrong without a trap is thrown as a ``Finding``.
public struct FuzzTarget: Sendable {
    /// The name of its corpus, too.
    public let name: String
    /// Runs one input.
    public let run: @Sendable ([UInt8]) throws -> Void

    /// Every target. Whoever writes another parser for bytes from outside adds it here and gives it a corpus.
    public static let all = [
        FuzzTarget(name: "sip-message", run: fuzzMessage),
        FuzzTarget(name: "sip-stream", run: fuzzStream),
        FuzzTarget(name: "uri", run: fuzzURI),
        FuzzTarget(name: "header-values", run: fuzzHeaderValues),
        FuzzTarget(name: "credentials", run: fuzzCredentials),
        FuzzTarget(name: "token", run: fuzzToken),
        FuzzTarget(name: "sdp", run: fuzzSessionDescription),
        FuzzTarget(name: "rtp", run: fuzzMediaPackets),
        FuzzTarget(name: "websocket", run: fuzzWebSocket),
        FuzzTarget(name: "stun", run: fuzzSTUN),
        FuzzTarget(name: "user-agent", run: fuzzUserAgent),
        FuzzTarget(name: "environment", run: fuzzEnvironment),
    ]
}

/// An input was borne, but what became of it is wrong.
public struct Finding: Error, CustomStringConvertible {
    /// What is wrong.
    public var description: String
}

func expect(_ condition: Bool, _ what: @autoclosure () -> String) throws {
    if !condition { throw Finding(description: what()) }
}

extension [UInt8] {
    /// Its bytes as they may be read in a report.
    var readable: String { String(decoding: self, as: UTF8.self).debugDescription }

    /// The pieces between separators: inputs that stand for a sequence of things.
    func pieces(separatedBy separator: [UInt8]) -> [[UInt8]] {
        var result: [[UInt8]] = [[]]
        var index = 0
        while index < count {
            if self[index...].starts(with: separator) {
                result.append([])
                index += separator.count
            } else {
                result[result.count - 1].append(self[index])
                index += 1
            }
        }
        return result
    }

    /// The bytes in pieces as a stream may bring them; the seed says how they are cut.
    func cut(by seed: UInt8) -> [[UInt8]] {
        var result: [[UInt8]] = []
        var state = UInt32(seed) | 0x100
        var index = 0
        while index < count {
            state = state &* 1_664_525 &+ 1_013_904_223
            let length = Swift.min(count - index, 1 + Int(state >> 24) % (seed < 128 ? 4 : 64))
            result.append([UInt8](self[index..<(index + length)]))
            index += length
        }
        return result
    }
}
