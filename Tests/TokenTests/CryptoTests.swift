import Crypto
import Testing

@Suite struct CryptoTests {
    @Test func digestsOfPublishedVectors() {
        // FIPS 180-4 examples and RFC 1321, appendix A.5.
        #expect(
            hexadecimal(sha256(Array("abc".utf8)))
                == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
        #expect(
            hexadecimal(sha256([])) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
        #expect(hexadecimal(md5([])) == "d41d8cd98f00b204e9800998ecf8427e")
        #expect(hexadecimal(md5(Array("message digest".utf8))) == "f96b697d7cb7938d525a2f31aaf161d0")
        #expect(sha256IsAvailable)
        #expect(md5IsAvailable)
    }

    @Test func hmacOfPublishedVectors() {
        // RFC 4231, test cases 1, 2 and 6 (a key longer than a block).
        #expect(
            hexadecimal(hmacSHA256(key: [UInt8](repeating: 0x0b, count: 20), Array("Hi There".utf8)))
                == "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7")
        #expect(
            hexadecimal(hmacSHA256(key: Array("Jefe".utf8), Array("what do ya want for nothing?".utf8)))
                == "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843")
        #expect(
            hexadecimal(
                hmacSHA256(
                    key: [UInt8](repeating: 0xaa, count: 131),
                    Array("Test Using Larger Than Block-Size Key - Hash Key First".utf8)))
                == "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54")
    }

    @Test func hmacOfEmptyKeyAndMessage() {
        // A known constant; an empty key must not mean "the previous key".
        let expected = "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad"
        #expect(hexadecimal(hmacSHA256(key: [], [])) == expected)
        _ = hmacSHA256(key: [1, 2, 3], [4])
        #expect(hexadecimal(hmacSHA256(key: [], [])) == expected)
    }

    @Test func comparison() {
        #expect(constantTimeEqual([], []))
        #expect(constantTimeEqual([1, 2, 3], [1, 2, 3]))
        #expect(!constantTimeEqual([1, 2, 3], [1, 2]))
        for position in 0..<32 {
            var other = [UInt8](repeating: 7, count: 32)
            other[position] ^= 0x80
            #expect(!constantTimeEqual(other, [UInt8](repeating: 7, count: 32)))
        }
    }

    @Test func hexadecimalDigits() {
        #expect(hexadecimal([0x00, 0x9f, 0xa0, 0xff]) == "009fa0ff")
        #expect(hexadecimalDecode("009fA0Ff") == [0x00, 0x9f, 0xa0, 0xff])
        #expect(hexadecimalDecode("") == [])
        for wrong in ["0", "0g", "0x10", " 00", "é0"] {
            #expect(hexadecimalDecode(wrong) == nil)
        }
    }

    @Test(arguments: [
        ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
        ("foobar", "Zm9vYmFy"),
    ])
    func base64OfPublishedVectors(_ vector: (plain: String, encoded: String)) throws {
        // RFC 4648, section 10.
        #expect(base64Encode(Array(vector.plain.utf8)) == vector.encoded)
        #expect(try base64Decode(vector.encoded) == Array(vector.plain.utf8))
        let unpadded = String(vector.encoded.prefix { $0 != "=" })
        #expect(base64URLEncode(Array(vector.plain.utf8)) == unpadded)
        #expect(try base64URLDecode(unpadded) == Array(vector.plain.utf8))
    }

    @Test func base64AlphabetsDiffer() throws {
        let bytes: [UInt8] = [0xfb, 0xef, 0xff, 0xff]
        #expect(base64Encode(bytes) == "++///w==")
        #expect(base64URLEncode(bytes) == "--___w")
        #expect(throws: Base64Error.character(offset: 0)) { try base64URLDecode("++///w") }
        #expect(throws: Base64Error.character(offset: 0)) { try base64Decode("--___w==") }
    }

    @Test func everyByteStringComesBack() throws {
        for length in 0..<70 {
            let bytes = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 151 &+ length) }
            #expect(try base64Decode(base64Encode(bytes)) == bytes)
            #expect(try base64URLDecode(base64URLEncode(bytes)) == bytes)
            #expect(hexadecimalDecode(hexadecimal(bytes)) == bytes)
        }
    }

    @Test(arguments: [
        ("Zg", Base64Error.padding), ("Zg=", .padding), ("Z===", .padding), ("====", .padding), ("=", .padding),
        ("Zm9v====", .padding), ("Zh==", .trailingBits), ("Zm9=", .trailingBits), ("Zm9v\n", .character(offset: 4)),
        ("Zm 9", .character(offset: 2)), ("Zg==Zg==", .character(offset: 2)), ("Zmö=", .character(offset: 2)),
    ])
    func base64Refuses(_ wrong: (text: String, reason: Base64Error)) {
        #expect(throws: wrong.reason) { try base64Decode(wrong.text) }
    }

    @Test(arguments: [
        ("Zg==", Base64Error.padding), ("Z", .length), ("Zh", .trailingBits), ("Zm9", .trailingBits),
        ("Zm9v Zg", .character(offset: 4)), ("Zm9vZ", .length), ("Z=g", .character(offset: 1)),
    ])
    func base64URLRefuses(_ wrong: (text: String, reason: Base64Error)) {
        #expect(throws: wrong.reason) { try base64URLDecode(wrong.text) }
    }
}
