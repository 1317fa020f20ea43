// The strings and numbers of JSON5 (sections 5 and 6).

extension JSON5Reader {
    /// A string; the position is at its opening quote.
    mutating func string() throws(JSON5Error) -> String {
        let start = position
        let quote = bytes[position]
        position += 1
        var content: [UInt8] = []
        while let byte = peek {
            switch byte {
            case quote:
                position += 1
                return String(decoding: content, as: UTF8.self)
            case UInt8(ascii: "\\"):
                position += 1
                content.append(contentsOf: try escape().utf8)
            case UInt8(ascii: "\n"), UInt8(ascii: "\r"):
                throw JSON5Error(reason: "the string does not end on its line", offset: start)
            default:
                content.append(byte)
                position += 1
            }
        }
        throw JSON5Error(reason: "the string does not end", offset: start)
    }

    /// What follows a backslash; nothing, for a line that continues.
    private mutating func escape() throws(JSON5Error) -> String {
        if consume("\r\n") || consume("\n") || consume("\r") || consume("\u{2028}") || consume("\u{2029}") { return "" }
        guard let byte = peek else { throw error("the string does not end") }
        let start = position - 1
        position += 1
        switch byte {
        case UInt8(ascii: "b"): return "\u{8}"
        case UInt8(ascii: "f"): return "\u{c}"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "v"): return "\u{b}"
        case UInt8(ascii: "0"):
            if let next = peek, isDigit(next) { throw JSON5Error(reason: "no such escape", offset: start) }
            return "\0"
        case UInt8(ascii: "x"):
            return String(Unicode.Scalar(UInt8(truncatingIfNeeded: try hexadecimal(digits: 2))))
        case UInt8(ascii: "u"):
            return String(try escapedScalar(start))
        case UInt8(ascii: "1")...UInt8(ascii: "9"):
            throw JSON5Error(reason: "no such escape", offset: start)
        default:
            // Any other character stands for itself; the rest of its UTF-8 follows as it is.
            guard byte < 0x80 else {
                position -= 1
                return ""
            }
            return String(Unicode.Scalar(byte))
        }
    }

    private mutating func escapedScalar(_ start: Int) throws(JSON5Error) -> Unicode.Scalar {
        var value = try hexadecimal(digits: 4)
        if (0xD800..<0xDC00).contains(value) {
            guard consume("\\u") else { throw JSON5Error(reason: "half of a surrogate pair", offset: start) }
            let second = try hexadecimal(digits: 4)
            guard (0xDC00..<0xE000).contains(second) else {
                throw JSON5Error(reason: "half of a surrogate pair", offset: start)
            }
            value = 0x10000 + ((value - 0xD800) << 10) + (second - 0xDC00)
        }
        guard let scalar = Unicode.Scalar(value) else {
            throw JSON5Error(reason: "half of a surrogate pair", offset: start)
        }
        return scalar
    }

    private mutating func hexadecimal(digits: Int) throws(JSON5Error) -> UInt32 {
        var value: UInt32 = 0
        for _ in 0..<digits {
            guard let byte = peek, let digit = Character(Unicode.Scalar(byte)).hexDigitValue else {
                throw error("\(digits) hexadecimal digits must stand here")
            }
            value = value << 4 | UInt32(digit)
            position += 1
        }
        return value
    }

    /// A number: decimal, hexadecimal, `Infinity` or `NaN`, with a sign or without.
    mutating func number() throws(JSON5Error) -> JSON5Value.Content {
        let start = position
        let isNegative = consume("-")
        if !isNegative { _ = consume("+") }
        if consume("Infinity") { return .number(isNegative ? -.infinity : .infinity) }
        if consume("NaN") { return .number(.nan) }
        if consume("0x") || consume("0X") {
            let digits = take { Character(Unicode.Scalar($0)).isHexDigit && $0 < 0x80 }
            guard let magnitude = Int64(digits, radix: 16) else {
                throw JSON5Error(reason: "no hexadecimal number of 63 bits", offset: start)
            }
            return .integer(isNegative ? -magnitude : magnitude)
        }
        let whole = take(isDigit)
        guard whole.utf8.count < 2 || whole.utf8.first != UInt8(ascii: "0") else {
            throw JSON5Error(reason: "a number begins with 0", offset: start)
        }
        var text = whole
        var isWhole = true
        if consume(".") {
            isWhole = false
            let fraction = take(isDigit)
            guard !whole.isEmpty || !fraction.isEmpty else {
                throw JSON5Error(reason: "a number without digits", offset: start)
            }
            text = (whole.isEmpty ? "0" : whole) + "." + (fraction.isEmpty ? "0" : fraction)
        } else if whole.isEmpty {
            throw JSON5Error(reason: "a number without digits", offset: start)
        }
        if consume("e") || consume("E") {
            isWhole = false
            let sign = consume("-") ? "-" : ""
            if sign.isEmpty { _ = consume("+") }
            let exponent = take(isDigit)
            guard !exponent.isEmpty else { throw error("digits must follow the exponent's e") }
            text += "e" + sign + exponent
        }
        text = (isNegative ? "-" : "") + text
        if isWhole, let integer = Int64(text) { return .integer(integer) }
        guard let number = Double(text) else { throw JSON5Error(reason: "no number", offset: start) }
        return .number(number)
    }

    private mutating func take(_ isMember: (UInt8) -> Bool) -> String {
        let start = position
        while let byte = peek, isMember(byte) { position += 1 }
        return String(decoding: bytes[start..<position], as: UTF8.self)
    }
}
