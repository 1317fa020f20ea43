import Audio
import Configuration
import Glibc
import Testing

@testable import Agent

struct FileTests {
    private func withDirectory(_ body: (String) throws -> Void) throws {
        var template = Array("/tmp/agent-tests.XXXXXX".utf8CString)
        let path = try #require(mkdtemp(&template).map { String(cString: $0) })
        defer { rmdir(path) }
        try body(path)
    }

    private func paths(_ root: String) throws -> Paths {
        try Paths(environment: ["HOME": root, "XDG_RUNTIME_DIR": root, "XDG_STATE_HOME": root, "XDG_CONFIG_HOME": root])
    }

    @Test func everyUserHasASocketOfItsOwn() throws {
        try withDirectory { root in
            let paths = try paths(root)
            let long = String(repeating: "a", count: 254)
            let users = ["alice", "Alice", "environment", "a", "=", "-", long + "b", long + "c"]
            let sockets = try users.map { try AgentPlaces.socket(user: $0, paths: paths) }
            #expect(Set(sockets).count == users.count)
            for (user, socket) in zip(users, sockets) {
                #expect(socket.hasPrefix(root + "/sinchctl/client-"))
                #expect(socket.utf8.count <= Paths.maxSocketPathBytes)
                if user.utf8.count <= 40 { #expect(AgentPlaces.user(ofSocket: socket) == user) }
            }
            #expect(AgentPlaces.sockets(in: paths).isEmpty, "asking makes nothing")
        }
    }

    @Test(arguments: ["", "a/b", "..", "../alice", "a.b", "a b", "a\0b", "é", String(repeating: "a", count: 256)])
    func userIdsThatAreNoFileNamesAreRefused(user: String) throws {
        try withDirectory { root in
            let paths = try paths(root)
            let failure = #expect(throws: CommandFailure.self) { try AgentPlaces.socket(user: user, paths: paths) }
            #expect(failure?.exit == .usage)
            #expect(throws: CommandFailure.self) { try AgentPlaces(user: user, paths: paths) }
        }
    }

    @Test func recordingsAreTriedWithoutATrace() throws {
        try withDirectory { root in
            let path = root + "/new.wav"
            try OutputFile.checkWritable(path)
            #expect(access(path, F_OK) != 0, "the try leaves no file")
            let descriptor = open(path, O_WRONLY | O_CREAT, 0o600)
            write(descriptor, "old", 3)
            close(descriptor)
            try OutputFile.checkWritable(path)
            var status = stat()
            #expect(stat(path, &status) == 0 && status.st_size == 3, "what is there is not touched")
            unlink(path)
            #expect(throws: AudioError.self) { try OutputFile.checkWritable(root) }
            #expect(throws: AudioError.self) { try OutputFile.checkWritable(root + "/none/new.wav") }
            // A pipe without a reader would block for ever.
            mkfifo(path, 0o600)
            #expect(throws: AudioError.self) { try OutputFile.checkWritable(path) }
            unlink(path)
        }
    }

    @Test func tokensAreOneWordOfThreeParts() throws {
        func read(_ text: String) throws(CommandFailure) -> String {
            try TokenInput.compact(TokenInput.checked(Array(text.utf8), from: "x"), from: "x")
        }
        #expect(try read(" \n aa.bb-_9.CC\r\n") == "aa.bb-_9.CC")
        let bad = [
            "", "  \n", "aa.bb", "aa.bb.cc.dd", "aa..cc", "aa.bb.cc dd.ee.ff", "aa.b\u{0}b.cc", "aa.bé.cc", "a+a.bb.cc",
            String(repeating: "a", count: 9_000) + ".b.c",
        ]
        for text in bad {
            let failure = #expect(throws: CommandFailure.self) { try read(text) }
            #expect(failure?.exit == .dataUnusable)
            #expect(failure?.message.contains("aa") == false, "a token is never shown")
        }
    }

    @Test func soundIsLookedForWhereItIs() throws {
        try withDirectory { root in
            #expect(SoundPresence.isLikely(["ALSA_CONFIG_PATH": "/x"]))
            #expect(SoundPresence.isLikely(["PULSE_SERVER": "unix:/x"]))
            let hasCard = access("/dev/snd/controlC0", F_OK) == 0
            #expect(SoundPresence.isLikely(["XDG_RUNTIME_DIR": root]) == hasCard)
            close(open(root + "/pipewire-0", O_CREAT | O_WRONLY, 0o600))
            #expect(SoundPresence.isLikely(["XDG_RUNTIME_DIR": root]))
            unlink(root + "/pipewire-0")
        }
    }
}
