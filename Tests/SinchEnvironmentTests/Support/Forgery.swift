import Crypto
import Token

/// Tokens that no honest issuer makes: any header, any payload, signed with the right or another key.
enum Forgery {
    static func token(
        header: String = #"{"alg":"HS256","kid":"hkdfv1-\#(day)"}"#, payload: String,
        secret: [UInt8] = World.secret(World.application), signingDay: String = day
    ) -> String {
        let text = base64URLEncode(Array(header.utf8)) + "." + base64URLEncode(Array(payload.utf8))
        let key = hmacSHA256(key: secret, Array(signingDay.utf8))
        return text + "." + base64URLEncode(hmacSHA256(key: key, Array(text.utf8)))
    }

    /// The UTC day of `World.unixStart`.
    static let day = "20231114"

    static func payload(
        application: String = World.application, user: String = "alice", issuedAt: Int64 = World.unixStart,
        expiry: Int64 = World.unixStart + 600, nonce: String = #","nonce":"n""#, extra: String = ""
    ) -> String {
        let issuer = "//rtc.sinch.com/applications/\(application)"
        return
            #"{"iss":"\#(issuer)","sub":"\#(issuer)/users/\#(user)","iat":\#(issuedAt),"exp":\#(expiry)\#(nonce)\#(extra)}"#
    }
}
