import Primitives
import Testing

@testable import Configuration

@Suite struct JSON5Tests {
    private func parse(_ text: String) throws(JSON5Error) -> JSON5Value { try JSON5Reader.parse(Array(text.utf8)) }

    @Test func everythingThatJSON5Adds() throws {
        let value = try parse(
            """
            \u{feff}// comment
            { /* another
               */ unquoted: 'single "quotes"', "double": "it's", $_a1: +.5, b: 5., c: -0x1F, d: 1e3, é: true,
              lineBreak: 'a\\
            b', escapes: '\\x41\\u00e9\\ud83d\\ude00\\v\\0\\'\\q\\é', inf: -Infinity, nan: NaN, list: [1, null, false,],
              "empty": {}, none: [],
            }
            """)
        #expect(value["unquoted"]?.string == "single \"quotes\"")
        #expect(value["double"]?.string == "it's")
        #expect(value["$_a1"]?.content == .number(0.5))
        #expect(value["b"]?.content == .number(5))
        #expect(value["c"]?.integer == -31)
        #expect(value["d"]?.content == .number(1_000))
        #expect(value["é"]?.content == .boolean(true))
        #expect(value["lineBreak"]?.string == "ab")
        #expect(value["escapes"]?.string == "Aé😀\u{b}\u{0}'qé")
        #expect(value["inf"]?.content == .number(-.infinity))
        if case .number(let number) = value["nan"]?.content { #expect(number.isNaN) } else { Issue.record("no NaN") }
        #expect(value["list"]?.array?.map(\.content) == [.integer(1), .null, .boolean(false)])
        #expect(value["empty"]?.object?.isEmpty == true)
        #expect(value["none"]?.array?.isEmpty == true)
    }

    @Test(arguments: [
        ("", 1, 1), ("{", 1, 2), ("{\n  \"a\": 1\n  \"b\": 2\n}", 3, 3), ("{\n\n  a: tru }", 3, 6), ("{a:1,a:2}", 1, 6),
        ("[1,\n2", 2, 2), ("{a:'x\ny'}", 1, 4), ("{a:1} x", 1, 7), ("{é: 1, ö 2}", 1, 10), ("/* never", 1, 1),
        ("{a: \"\\u12\"}", 1, 10), ("{a: '\\1'}", 1, 6), ("{a: 01}", 1, 5), ("{a: .}", 1, 5), ("{a: 1e}", 1, 7),
        ("{a: 0x}", 1, 5), ("{a: '\\ud800'}", 1, 6), ("{1a: 2}", 1, 2), ("[,]", 1, 2), ("{,}", 1, 2), ("/", 1, 1),
        ("{a: \"x", 1, 5), ("{a:: 1}", 1, 4), ("{\r\n a: @ }", 2, 5), ("{a: 0xFFFFFFFFFFFFFFFFFF}", 1, 5),
    ])
    func mistakesHaveAPlace(_ wrong: (text: String, line: Int, column: Int)) throws {
        let error = try #require(throws: JSON5Error.self) { try parse(wrong.text) }
        let position = TextPosition(offset: error.offset, in: Array(wrong.text.utf8))
        #expect(position.line == wrong.line && position.column == wrong.column, "\(error.reason) at \(position)")
    }

    @Test func depthAndEncoding() throws {
        _ = try parse(String(repeating: "[", count: 16) + String(repeating: "]", count: 16))
        #expect(throws: JSON5Error.self) { try parse(String(repeating: "[", count: 100_000)) }
        #expect(throws: JSON5Error.self) { try parse(String(repeating: "{a:", count: 100_000)) }
        let error = #expect(throws: JSON5Error.self) { try JSON5Reader.parse([0x7b, 0x0a, 0x27, 0xff, 0x27, 0x7d]) }
        #expect(error?.offset == 2)
    }

    @Test func mutatedDocumentsNeverTrap() {
        var random = RandomSource.seeded(11)
        let original = Array(templateWithExamples().utf8)
        let interesting = Array("{}[]\",:.'\\u0xe-+/*\n".utf8) + [0, 0x80, 0xff, 0xc2, 0xed]
        var accepted = 0
        for _ in 0..<1_500 {
            var bytes = original
            for _ in 0...Int(random.next() % 4) {
                let position = Int(random.next() % UInt64(bytes.count))
                switch random.next() % 4 {
                case 0: bytes[position] = UInt8(truncatingIfNeeded: random.next())
                case 1: bytes[position] = interesting[Int(random.next() % UInt64(interesting.count))]
                case 2: bytes.removeSubrange(position..<min(bytes.count, position + Int(random.next() % 30)))
                default: bytes.removeSubrange(position...)
                }
                if bytes.isEmpty { break }
            }
            do throws(JSON5Error) {
                _ = try JSON5Reader.parse(bytes)
                accepted += 1
            } catch {
                #expect(error.offset >= 0 && error.offset <= bytes.count)
            }
        }
        #expect(accepted > 0)
    }

    @Test func writtenTextIsRead() throws {
        let text = JSONText.object([
            ("s", .string("a\"\\\n\u{1}\u{7f}é😀/")), ("i", .integer(.min)), ("b", .boolean(true)), ("n", .null),
            ("l", .array([.integer(1), .string("x")])), ("o", .array([.object([]), .object([("k", .null)])])),
        ]).text()
        let value = try parse(text)
        #expect(value["s"]?.string == "a\"\\\n\u{1}\u{7f}é😀/")
        #expect(value["l"]?.array?.count == 2)
        #expect(value["o"]?.array?[1]["k"]?.content == .null)
        #expect(value["i"]?.content == .integer(.min))
        #expect(!text.contains("\u{1}"))
    }
}
