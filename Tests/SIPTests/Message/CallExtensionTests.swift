import Testing

@testable import SIP

/// Headers of reliable responses and session timers, and bodies of several parts.
struct CallExtensionTests {
    private func message(_ name: String, _ value: String) throws -> SIPMessage {
        try SIPMessage.parse(
            Array("OPTIONS sip:a@b SIP/2.0\r\n\(name): \(value)\r\nContent-Length: 0\r\n\r\n".utf8))
    }

    @Test func rack() throws {
        let rack = try #require(try message("RAck", " 776656 \t 1   INVITE ").rack)
        #expect(rack == SIPRAck(responseNumber: 776_656, cseq: SIPCSeq(number: 1, method: .invite)))
        #expect(rack.description == "776656 1 INVITE")
        #expect(try message("RAck", "4294967295 2147483647 X-Y").rack?.cseq.method.rawValue == "X-Y")
        for value in [
            "", "1", "1 2", "1 INVITE", "4294967296 1 INVITE", "1 2147483648 INVITE", "1 2 IN VITE", "-1 1 INVITE",
        ] {
            #expect(try message("RAck", value).rack == nil, "\(value)")
        }
    }

    @Test func rseq() throws {
        #expect(try message("RSeq", "988789").rseq == 988_789)
        #expect(try message("RSeq", "4294967295").rseq == .max)
        for value in ["", "0", "-1", "1a", "4294967296", "99999999999999999999999"] {
            #expect(try message("RSeq", value).rseq == nil, "\(value)")
        }
    }

    @Test func sessionExpires() throws {
        let value = try #require(try message("x", "4000 ; Refresher=UAC;other=1").sessionExpires)
        #expect(value == SIPSessionExpires(seconds: 4_000, refresher: .uac))
        #expect(value.description == "4000;refresher=uac")
        #expect(try message("Session-Expires", "90").sessionExpires == SIPSessionExpires(seconds: 90))
        #expect(try message("Session-Expires", "90;refresher=proxy").sessionExpires?.refresher == nil)
        for value in ["", ";refresher=uac", "-1", "+5", "4294967296", "9x", "٣"] {
            #expect(try message("Session-Expires", value).sessionExpires == nil, "\(value)")
        }
        #expect(try message("Min-SE", "3600;lr").minSE == 3_600)
        #expect(try message("Min-SE", "x").minSE == nil)
    }

    @Test func optionTags() throws {
        let supported = try message("k", "100rel, Timer , ,replaces")
        #expect(supported.hasOption("timer", in: "Supported") && supported.hasOption("replaces", in: "Supported"))
        #expect(!supported.hasOption("rel", in: "Supported") && !supported.hasOption("timer", in: "Require"))
    }

    @Test func parts() throws {
        let text =
            "preamble\r\n--x y\r\nContent-Type: a/b\r\n\r\none\r\ntwo\r\n--x y\r\n\r\n\r\n--x y \r\nA: 1\r\n  2\r\n\r\nlast\r\n"
            + "--x y--\r\nepilogue"
        let body = try #require(MultipartBody(Array(text.utf8), contentType: "multipart/mixed; Boundary = \"x y\""))
        #expect(body.parts.map { String(decoding: $0.body, as: UTF8.self) } == ["one\r\ntwo", "", "last"])
        #expect(body.parts.first?.header("content-type") == "a/b")
        #expect(body.parts.last?.header("a") == "1 2")
        // Lines that end with LF only, and no last delimiter.
        let loose = try #require(
            MultipartBody(Array("--b\nC: d\n\nbody\n--b\nE: f\n\nrest".utf8), contentType: "m/x;boundary=b"))
        #expect(loose.parts.map { String(decoding: $0.body, as: UTF8.self) } == ["body", "rest"])
        for type in [
            "multipart/mixed", "multipart/mixed;boundary=", "multipart/mixed;boundary=\"\"", "m/x;boundary=zz",
        ] {
            #expect(MultipartBody(Array(text.utf8), contentType: type) == nil, "\(type)")
        }
    }

    /// Whatever the bytes: no trap, and no more than a few parts.
    @Test func mutatedParts() {
        let text = "--b\r\nContent-Type: a/b\r\n\r\none\r\n--b\r\nX: y\r\n\r\ntwo\r\n--b--\r\n"
        var state: UInt64 = 1
        func next(_ limit: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(truncatingIfNeeded: state >> 33) % limit
        }
        for _ in 0..<20_000 {
            var bytes = Array(text.utf8)
            for _ in 0...next(4) {
                switch next(3) {
                case 0: bytes.insert([10, 13, 45, 98, 58, 0][next(6)], at: next(bytes.count + 1))
                case 1 where !bytes.isEmpty: bytes.remove(at: next(bytes.count))
                default: bytes = Array(bytes.prefix(next(bytes.count + 1)))
                }
            }
            let parts = MultipartBody(bytes, contentType: "multipart/mixed;boundary=b")?.parts ?? []
            #expect(parts.count <= 8)
        }
        let many = String(repeating: "--b\r\n\r\nx\r\n", count: 1_000)
        #expect(
            MultipartBody(Array(many.utf8), contentType: "m/x;boundary=b")?.parts.count == MultipartBody.maximumParts)
    }
}
