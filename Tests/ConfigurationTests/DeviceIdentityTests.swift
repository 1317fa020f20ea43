import Testing

@testable import Configuration

/// The name of a device stays the same, whatever becomes of its clients.
@Suite struct DeviceIdentityTests {
    private static let first = "urn:uuid:0a0b0c0d-0000-4000-8000-000000000001"
    private static let second = "urn:uuid:0a0b0c0d-0000-4000-8000-000000000002"

    @Test func madeOnceAndKept() throws {
        let scratch = try Scratch()
        let paths = try Paths(environment: scratch.environment)
        #expect(DeviceIdentity.load(paths) { Self.first } == Self.first)
        #expect(DeviceIdentity.load(paths) { Self.second } == Self.first)
        let other = try Scratch()
        #expect(DeviceIdentity.load(try Paths(environment: other.environment)) { Self.second } == Self.second)
    }

    @Test(arguments: ["", "no name", "urn:uuid:short", "urn:uuid:\u{661}a0b0c0d-0000-4000-8000-000000000001"])
    func whatIsNoNameIsReplaced(content: String) throws {
        let scratch = try Scratch()
        let paths = try Paths(environment: scratch.environment)
        try scratch.write(content, to: try paths.prepareStateDirectory() + "/device")
        #expect(DeviceIdentity.load(paths) { Self.first } == Self.first)
        #expect(DeviceIdentity.load(paths) { Self.second } == Self.first)
    }
}
