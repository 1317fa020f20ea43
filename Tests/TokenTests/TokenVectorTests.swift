import Crypto
import Primitives
import Testing

@testable import Token

@Suite struct TokenVectorTests {
    @Test func signingKeyOfThePublishedDay() throws {
        #expect(
            hexadecimal(try Published.secret().signingKey(day: "20180102"))
                == "0198f912c4bc4bbc1bd3ac6be63111a8f1ecada42ddf0ffe221e447eb862b014")
    }

    @Test(arguments: [Published.guide, Published.sorted, Published.limited])
    func verifies(_ text: String) throws {
        let token = try verify(text)
        #expect(token.applicationKey == Published.applicationKey)
        #expect(token.userID == "foo")
        #expect(token.claims.issuedAt == Published.issuedAt)
        #expect(token.claims.expiry == Published.issuedAt + 600)
        #expect(token.claims.nonce == Published.nonce)
        #expect(token.claims.instanceExpiry == (text == Published.limited ? Published.instanceExpiry : nil))
        #expect(token.header.algorithm == "HS256")
        #expect(token.header.keyID == "hkdfv1-20180102")
        #expect(token.header.type == nil)
        #expect(token.compact == text)
    }

    @Test(arguments: [
        (Published.guide, RegistrationToken.ClaimOrder.guide, nil as Int64?), (Published.sorted, .sorted, nil),
        (Published.limited, .sorted, Published.instanceExpiry),
    ])
    func signsTheIdenticalText(_ vector: (text: String, order: RegistrationToken.ClaimOrder, limit: Int64?)) throws {
        let text = try RegistrationToken.sign(
            applicationKey: Published.applicationKey, applicationSecret: Published.secret(), userID: "foo",
            issuedAt: Published.issuedAt, nonce: Published.nonce, instanceExpiry: vector.limit,
            claimOrder: vector.order)
        #expect(text == vector.text)
    }

    @Test func acceptsTheTypeThatSamplesAdd() throws {
        let text = try forge(header: #"{"alg":"HS256","typ":"JWT","kid":"hkdfv1-20180102","type":"x"}"#)
        #expect(try verify(text).header.type == "JWT")
    }

    @Test(
        arguments: [
            // The last second of a day and the first of the next, around a leap day and a year's end.
            (1_514_937_599, "20180102"), (1_514_937_600, "20180103"), (1_582_934_399, "20200228"),
            (1_582_934_400, "20200229"), (1_583_020_800, "20200301"), (1_609_459_199, "20201231"),
            (1_609_459_200, "20210101"), (951_782_400, "20000229"), (4_107_542_400, "21000301"),
            (0, "19700101"),
        ] as [(Int64, String)])
    func dayChangesAtMidnightUTC(_ moment: (time: Int64, day: String)) throws {
        let text = try RegistrationToken.sign(
            applicationKey: Published.applicationKey, applicationSecret: Published.secret(), userID: "foo",
            issuedAt: moment.time, nonce: "n")
        let token = try verify(text, now: moment.time)
        #expect(token.header.keyID == "hkdfv1-" + moment.day)
        // Still good when the other side of midnight is reached.
        #expect(try verify(text, now: moment.time + 599).userID == "foo")
    }

    @Test func everyDayFollowsTheOneBefore() {
        // 400 years are a whole cycle of the calendar.
        var expected = (year: 1970, month: 1, day: 1)
        var wrong: [Int64] = []
        for day in 0..<Int64(146_097) {
            // Expected once for all days: an expectation each would take seconds.
            let date = CivilDate(unixTime: day * 86_400 + 86_399)
            if date?.year != expected.year || date?.month != expected.month || date?.day != expected.day {
                wrong.append(day)
            }
            let isLeap = expected.year % 4 == 0 && (expected.year % 100 != 0 || expected.year % 400 == 0)
            let lengths = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
            expected.day += 1
            if expected.day > lengths[expected.month - 1] { expected = (expected.year, expected.month + 1, 1) }
            if expected.month > 12 { expected = (expected.year + 1, 1, 1) }
        }
        #expect(wrong.isEmpty)
        #expect(CivilDate(unixTime: -1) == nil)
        #expect(CivilDate(unixTime: 253_402_300_799)?.compact == "99991231")
        #expect(CivilDate(unixTime: 253_402_300_800) == nil)
    }

    @Test func timesAsText() {
        #expect(utcText(unixTime: Published.issuedAt) == "2018-01-02T03:04:05Z")
        #expect(utcText(unixTime: 0) == "1970-01-01T00:00:00Z")
        #expect(utcText(unixTime: .min) == "Unix time -9223372036854775808")
        #expect(utcText(unixTime: .max) == "Unix time 9223372036854775807")
    }

    @Test func noncesAreRandomUUIDs() {
        var random = RandomSource.seeded(7)
        let nonces = (0..<500).map { _ in RegistrationToken.makeNonce(random: &random) }
        #expect(Set(nonces).count == 500)
        for nonce in nonces {
            #expect(TokenIdentifier.isApplicationKey(nonce))
            let digits = Array(nonce)
            #expect(digits[14] == "4")
            #expect("89ab".contains(digits[19]))
        }
    }
}
