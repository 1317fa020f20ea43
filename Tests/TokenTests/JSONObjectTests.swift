import Testing

@testable import Token

@Suite struct JSONObjectTests {
    @Test func values() throws {
        let text =
            #" { "s" : "a\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00é" , "i":-12,"z":0, "f":1.50,"e":-1E+2,"#
            + #""t":true,"n":null,"o":{"a":[[1,2],{}]},"b":false,"big":9223372036854775808, "": "" } "#
        let members = try JSONReader.object(Array(text.utf8))
        #expect(members["s"] == .string("a\"\\/\u{8}\u{c}\n\r\té😀é"))
        #expect(members["i"] == .integer(-12))
        #expect(members["z"] == .integer(0))
        #expect(members["f"] == .number("1.50"))
        #expect(members["e"] == .number("-1E+2"))
        #expect(members["big"] == .number("9223372036854775808"))
        #expect(members["t"] == .boolean(true))
        #expect(members["b"] == .boolean(false))
        #expect(members["n"] == .null)
        #expect(members["o"] == .composite)
        #expect(members[""] == .string(""))
        #expect(members.count == 11)
        #expect(try JSONReader.object(Array("{}".utf8)).isEmpty)
    }

    @Test(arguments: [
        "", " ", "null", "[]", "\"a\"", "{", "}", "{]", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{,}", "{\"a\":1 \"b\":2}",
        "{\"a\":1}x", "{\"a\":1}{}", "{a:1}", "{'a':1}", "{\"a\":01}", "{\"a\":-}", "{\"a\":+1}", "{\"a\":.5}",
        "{\"a\":1.}", "{\"a\":1e}", "{\"a\":1e+}", "{\"a\":0x10}", "{\"a\":NaN}", "{\"a\":Infinity}", "{\"a\":tru}",
        "{\"a\":True}", "{\"a\":nul", "{\"a\":\"b}", "{\"a\":\"\\", "{\"a\":\"\\x\"}", "{\"a\":\"\\u12\"}",
        "{\"a\":\"\\u123g\"}", "{\"a\":\"\\ud800\"}", "{\"a\":\"\\ud800\\u0041\"}", "{\"a\":\"\\ude00\"}",
        "{\"a\":\"\\ud800x\"}", "{\"a\":\"\n\"}", "{\"a\":\"\u{0}\"}", "{\"a\":[1,]}", "{\"a\":[,1]}", "{\"a\":[1 2]}",
        "{\"a\":[1", "{\"a\" 1}", "\u{feff}{}", "{\"a\":1}//", "{\"a\":--1}", "{\"a\":\"\\u+123\"}",
        "{\"a\":\"\\u12 3\"}",
    ])
    func refuses(_ text: String) {
        #expect {
            try JSONReader.object(Array(text.utf8))
        } throws: { error in
            if case JSONError.syntax(_, let offset) = error { return offset <= text.utf8.count }
            return false
        }
    }

    @Test(
        arguments: [
            [0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xc3], [0xe2, 0x82],
        ] as [[UInt8]])
    func refusesWhatIsNotUTF8(_ bad: [UInt8]) {
        let bytes = Array("{\"a\":\"".utf8) + bad + Array("\"}".utf8)
        #expect(throws: JSONError.encoding) { try JSONReader.object(bytes) }
    }

    @Test func depth() throws {
        #expect(try JSONReader.object(Array(#"{"a":{"b":{"c":{}}}}"#.utf8))["a"] == .composite)
        #expect(throws: JSONError.depth) { try JSONReader.object(Array(#"{"a":{"b":{"c":{"d":{}}}}}"#.utf8)) }
        #expect(throws: JSONError.depth) { try JSONReader.object(Array(#"{"a":[[[[]]]]}"#.utf8)) }
        let deep = Array(("{\"a\":" + String(repeating: "[", count: 10_000)).utf8)
        #expect(throws: JSONError.depth) { try JSONReader.object(deep) }
        let deepObject = Array(String(repeating: "{\"a\":", count: 10_000).utf8)
        #expect(throws: JSONError.depth) { try JSONReader.object(deepObject) }
    }

    @Test func duplicates() {
        #expect(throws: JSONError.duplicate(name: "a")) { try JSONReader.object(Array(#"{"a":1,"\u0061":2}"#.utf8)) }
    }

    @Test func literalsComeBack() throws {
        for text in ["", "a/b", "\"\\", "\u{0}\u{1f}\u{7f}", "é😀", "//rtc.sinch.com"] {
            let json = "{\"a\":" + jsonLiteral(text) + "}"
            #expect(try JSONReader.object(Array(json.utf8))["a"] == .string(text))
        }
        #expect(jsonLiteral("a/b\u{1}") == "\"a/b\\u0001\"")
    }
}
