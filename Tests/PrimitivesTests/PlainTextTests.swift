import Primitives
import Testing

@Suite struct PlainTextTests {
    @Test(arguments: [
        ("Busy Here", "Busy Here"), ("Besetzt – später", "Besetzt – später"), ("\u{1B}[31mEVIL\u{7}", "?[31mEVIL?"),
        ("one\r\ntwo", "one??two"), ("\u{9B}31m", "?31m"), ("\u{202E}left", "?left"), ("👩‍🚀", "👩?🚀"), ("", ""),
    ])
    func commandsOfATerminalAreNoText(text: String, shown: String) { #expect(text.withoutControls == shown) }

    @Test func uuidsHaveTheirFormAndDiffer() {
        var random = RandomSource.system
        let made = (0..<200).map { _ in random.uuid() }
        #expect(Set(made).count == 200)
        for text in made {
            #expect(text.split(separator: "-").map(\.count) == [8, 4, 4, 4, 12])
            let characters = Array(text)
            #expect(characters[14] == "4" && "89ab".contains(characters[19]))
        }
    }
}
