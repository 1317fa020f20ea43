import Foundation
import Testing

@testable import SIP

/// Text written with plain line ends as the bytes of a message.
func wire(_ text: String) -> [UInt8] {
    Array(text.replacingOccurrences(of: "\n", with: "\r\n").utf8)
}

/// A request that is valid, with header lines of the test's choice put in the place of, or beside, its own.
func request(
    _ startLine: String = "OPTIONS sip:bob@example.com SIP/2.0", replacing: [String: String] = [:],
    adding: [String] = [], body: String = ""
) -> [UInt8] {
    let method = startLine.prefix { $0 != " " }
    let standard = [
        ("Via", "SIP/2.0/UDP client.example.com;branch=z9hG4bKnashds8"), ("Max-Forwards", "70"),
        ("From", "\"Alice\" <sip:alice@example.com>;tag=9fxced76sl"), ("To", "<sip:bob@example.com>"),
        ("Call-ID", "3848276298220188511@client.example.com"), ("CSeq", "1 \(method)"),
        ("Content-Length", String(body.utf8.count)),
    ]
    var lines = [startLine]
    for (name, value) in standard {
        if replacing[name] != "" { lines.append("\(name): \(replacing[name] ?? value)") }
    }
    return Array(((lines + adding).joined(separator: "\r\n") + "\r\n\r\n" + body).utf8)
}

/// What a server does with these bytes: 200 when they are accepted, the status of the fault, 0 for a drop; nil when
/// they cannot even be taken apart.
func verdict(_ bytes: [UInt8], limits: SIPLimits = .default) -> Int? {
    guard let message = try? SIPMessage.parse(bytes, limits: limits) else { return nil }
    return message.validate()?.status ?? 200
}

func string(_ bytes: [UInt8]) -> String {
    String(decoding: bytes, as: UTF8.self)
}

/// The message without Content-Length, which the printer puts in another place.
func withoutLength(_ message: SIPMessage) -> SIPMessage {
    var message = message
    message.headers.remove("Content-Length")
    return message
}
