import Foundation
import FuzzTargets
import Testing

/// Every input of the corpora goes through its fuzz target: what was found once is tested for ever, without a fuzzer.
@Suite struct CorpusTests {
    private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent("Fuzz/Corpus")

    @Test(arguments: FuzzTarget.all.map(\.name)) func everyInputIsBorne(name: String) throws {
        let target = try #require(FuzzTarget.all.first { $0.name == name })
        let folder = Self.folder.appendingPathComponent(name)
        let files = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
        #expect(files.count > 10, "a corpus that says nothing")
        for file in files {
            let bytes = Array(try Data(contentsOf: folder.appendingPathComponent(file)))
            #expect(throws: Never.self, "\(name)/\(file)") { try target.run(bytes) }
        }
    }

    @Test func everyCorpusHasATarget() throws {
        let folders = try FileManager.default.contentsOfDirectory(atPath: Self.folder.path)
        #expect(folders.sorted() == FuzzTarget.all.map(\.name).sorted())
    }
}
