extension String {
    /// The text with a question mark for whatever has no shape of its own: control characters (line ends among them),
    /// marks that turn the direction of writing, and what is no character. What a peer wrote may be shown on a terminal or
    /// in a log, where such characters are commands.
    public var withoutControls: String {
        guard unicodeScalars.contains(where: { $0.properties.isShapeless }) else { return self }
        return String(String.UnicodeScalarView(unicodeScalars.map { $0.properties.isShapeless ? "?" : $0 }))
    }
}

extension Unicode.Scalar.Properties {
    fileprivate var isShapeless: Bool {
        switch generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned: true
        default: false
        }
    }
}
