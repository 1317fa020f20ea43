import FoundationEssentials
import Primitives
import Token

/// Signs registration tokens, for development: in production a backend does, and the secret never leaves it.
public enum SinchJWT {
    /// Signs a token for a user of an application.
    ///
    /// - Parameters:
    ///   - applicationSecret: base64, as the dashboard shows it.
    ///   - lifetime: seconds, at least 60.
    /// - Throws: `TokenError`.
    public static func sign(
        applicationKey: String, applicationSecret: String, userId: String, lifetime: Int64 = 600
    ) throws -> String {
        try sign(
            applicationKey: applicationKey, applicationSecret: ApplicationSecret(base64: applicationSecret),
            userId: userId, lifetime: lifetime)
    }

    /// Signs a token with a secret that was read before.
    ///
    /// - Throws: `TokenError`.
    public static func sign(
        applicationKey: String, applicationSecret: ApplicationSecret, userId: String, lifetime: Int64 = 600
    ) throws -> String {
        var random = RandomSource.system
        return try RegistrationToken.sign(
            applicationKey: applicationKey, applicationSecret: applicationSecret, userID: userId,
            issuedAt: Int64(Date().timeIntervalSince1970), lifetime: lifetime,
            nonce: RegistrationToken.makeNonce(random: &random))
    }
}
