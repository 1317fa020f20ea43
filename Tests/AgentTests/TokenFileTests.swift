import Configuration
import Glibc
import Testing

@testable import Agent

/// A token to register with must be its owner's alone.
struct TokenFileTests {
    @Test(arguments: [(0o600, true), (0o400, true), (0o640, false), (0o604, false), (0o666, false), (0o610, false)])
    func modes(mode: Int, isAccepted: Bool) async throws {
        try await withScratchDirectory { directory in
            let path = directory + "/it's a token"
            let descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
            #expect(write(descriptor, "a.b.c\n", 6) == 6)
            #expect(fchmod(descriptor, mode_t(mode)) == 0)
            close(descriptor)
            if isAccepted {
                let text = try TokenInput.readPrivate(path: path)
                #expect(text == "a.b.c")
            } else {
                let failure = #expect(throws: CommandFailure.self) { try TokenInput.readPrivate(path: path) }
                #expect(failure?.exit == .configuration)
                #expect(failure?.hint == "run: chmod 600 '\(directory)/it'\\''s a token'")
            }
            // To look at a token, it may be anybody's.
            let text = try TokenInput.read(path: path)
            #expect(text == "a.b.c")
        }
    }
}
