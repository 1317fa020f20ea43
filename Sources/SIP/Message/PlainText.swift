extension String {
    /// The text with a question mark for each control character (C0, C1 and DEL), line ends among them: what a peer wrote
    /// may be shown on a terminal, where such characters are commands.
    public var withoutControls: String {
        guard unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) else { return self }
        return String(
            String.UnicodeScalarView(
                unicodeScalars.map { $0.properties.generalCategory == .control ? "?" : $0 }))
    }
}
