/// Lower-case hexadecimal digits, two for each byte.
public func hexadecimal(_ bytes: [UInt8]) -> String {
    func digit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
    }
    var text: [UInt8] = []
    text.reserveCapacity(bytes.count * 2)
    for byte in bytes {
        text.append(digit(byte >> 4))
        text.append(digit(byte & 0xF))
    }
    return String(decoding: text, as: UTF8.self)
}

/// The bytes that hexadecimal digits of either case stand for; nil for an odd number of digits or any other character.
public func hexadecimalDecode(_ text: String) -> [UInt8]? {
    func value(_ digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
        default: nil
        }
    }
    var bytes: [UInt8] = []
    var high: UInt8?
    for digit in text.utf8 {
        guard let value = value(digit) else { return nil }
        if let first = high {
            bytes.append(first << 4 | value)
            high = nil
        } else {
            high = value
        }
    }
    return high == nil ? bytes : nil
}
