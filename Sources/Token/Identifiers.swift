/// The rules for the names in a token.
public enum TokenIdentifier {
    /// The longest user id, in bytes.
    public static let maxUserIDBytes = 255

    /// Checks a user id: 1 to 255 bytes of `A-Z a-z 0-9 - _ =`.
    public static func checkUserID(_ userID: String) throws(TokenError) {
        guard !userID.isEmpty else {
            throw TokenError(.userID, "the user id is empty", hint: "give the user a name, such as alice")
        }
        guard userID.utf8.count <= maxUserIDBytes else {
            throw TokenError(
                .userID, "the user id has \(userID.utf8.count) bytes, at most \(maxUserIDBytes) are allowed",
                hint: "use a shorter id")
        }
        guard userID.utf8.allSatisfy(isUserIDByte) else {
            throw TokenError(
                .userID, "the user id \(quoted(userID)) has characters other than A-Z a-z 0-9 - _ =",
                hint: "encode such an id with base64url")
        }
    }

    /// Checks an application key: a UUID, 8-4-4-4-12 hexadecimal digits.
    public static func checkApplicationKey(_ key: String) throws(TokenError) {
        guard isApplicationKey(key) else {
            throw TokenError(
                .applicationKey,
                "the application key \(quoted(key)) is not a UUID (8-4-4-4-12 hexadecimal digits)",
                hint: "copy the key from the application's page; it is not the secret")
        }
    }

    static func isApplicationKey(_ key: some StringProtocol) -> Bool {
        let groups = key.utf8.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        guard groups.map(\.count) == [8, 4, 4, 4, 12] else { return false }
        return groups.allSatisfy { group in
            group.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
                    UInt8(ascii: "A")...UInt8(ascii: "F"):
                    true
                default: false
                }
            }
        }
    }

    private static func isUserIDByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "="):
            true
        default: false
        }
    }
}
