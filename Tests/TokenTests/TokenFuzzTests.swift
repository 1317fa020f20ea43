import Crypto
import Primitives
import Testing

@testable import Token

/// Mutated tokens: a token is either accepted, and then says what the signed one said, or refused; it never traps.
@Suite struct TokenFuzzTests {
    @Test(arguments: [1, 2, 3, 4] as [UInt64])
    func mutatedText(_ seed: UInt64) throws {
        var random = RandomSource.seeded(seed)
        for _ in 0..<700 {
            var bytes = Array([Published.guide, Published.sorted, Published.limited][Int(random.next() % 3)].utf8)
            mutate(&bytes, &random)
            let text = String(decoding: bytes, as: UTF8.self)
            guard refusal(text) == nil else { continue }
            #expect([Published.guide, Published.sorted, Published.limited].contains(text))
        }
    }

    @Test(arguments: [5, 6, 7, 8] as [UInt64])
    func mutatedContentSignedAnew(_ seed: UInt64) throws {
        // Signed after the change, so that the readers behind the signature are reached, too.
        var random = RandomSource.seeded(seed)
        let key = try Published.secret().signingKey(day: "20180102")
        var accepted = 0
        for _ in 0..<700 {
            var header = Array(#"{"alg":"HS256","kid":"hkdfv1-20180102","typ":"JWT"}"#.utf8)
            var body = Array(claims(extra: #","sinch:rtc:instance:exp":1530414245,"x":[1.5e3,{"\u00e9":null}]"#).utf8)
            if random.next() % 4 == 0 { mutate(&header, &random) }
            mutate(&body, &random)
            let signed = base64URLEncode(header) + "." + base64URLEncode(body)
            let text = signed + "." + base64URLEncode(hmacSHA256(key: key, Array(signed.utf8)))
            guard refusal(text) == nil else { continue }
            accepted += 1
            let token = try RegistrationToken.parse(text)
            #expect(token.claims.expiry - token.claims.issuedAt >= 60)
            #expect(token.header.algorithm == "HS256")
        }
        // Some changes hit the nonce or the unknown claim only.
        #expect(accepted > 0)
    }

    @Test func noise() {
        var random = RandomSource.seeded(9)
        for _ in 0..<2_000 {
            let bytes = (0..<Int(random.next() % 200)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            #expect(refusal(String(decoding: bytes, as: UTF8.self)) != nil)
            _ = try? JSONReader.object(bytes)
            _ = try? JSONReader.object(Array("{\"a\":".utf8) + bytes)
        }
    }

    private func mutate(_ bytes: inout [UInt8], _ random: inout RandomSource) {
        let interesting = Array("{}[]\",:.=\\u0e-+_9".utf8) + [0, 0x7f, 0x80, 0xff, 0xed, 0xf4]
        for _ in 0...Int(random.next() % 3) {
            guard !bytes.isEmpty else { return }
            let position = Int(random.next() % UInt64(bytes.count))
            switch random.next() % 6 {
            case 0: bytes[position] ^= 1 << UInt8(random.next() % 8)
            case 1: bytes[position] = interesting[Int(random.next() % UInt64(interesting.count))]
            case 2: bytes.remove(at: position)
            case 3: bytes.insert(interesting[Int(random.next() % UInt64(interesting.count))], at: position)
            case 4: bytes.removeSubrange(position..<min(bytes.count, position + Int(random.next() % 20)))
            default: bytes.insert(contentsOf: bytes[position..<min(bytes.count, position + 12)], at: position)
            }
        }
    }
}
