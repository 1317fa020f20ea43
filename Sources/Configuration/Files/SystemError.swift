import Glibc

/// What the system says about an error number: `No such file or directory`.
///
/// glibc's `strerror` is thread-safe: constant text for known numbers, a buffer of the thread for others. It never
/// returns null.
func systemMessage(_ number: Int32) -> String {
    String(cString: strerror(number))
}

/// A path as a word for a shell command that a message proposes.
public func shellWord(_ path: String) -> String {
    let isPlain = path.utf8.allSatisfy { byte in
        let lower = byte | 0x20
        return (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(lower) || isDigit(byte)
            || "/._-+,@%:".utf8.contains(byte)
    }
    guard !isPlain || path.isEmpty else { return path }
    var word = "'"
    for character in path {
        word += character == "'" ? "'\\''" : String(character)
    }
    return word + "'"
}
