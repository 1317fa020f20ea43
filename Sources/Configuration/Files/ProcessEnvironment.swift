import Glibc

/// The process's environment variables.
public enum ProcessEnvironment {
    /// All of them; the first of two with the same name counts.
    public static var all: [String: String] {
        var result: [String: String] = [:]
        var cursor = environ
        while let entry = cursor.pointee {
            let parts = String(cString: entry).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            if parts.count == 2, result[String(parts[0])] == nil { result[String(parts[0])] = String(parts[1]) }
            cursor += 1
        }
        return result
    }
}
