import Agent
import Configuration
import Dispatch
import FoundationEssentials
import Glibc

/// Debian's baresip as the other phone: a user with a digest password behind a SIP server, controlled over its TCP port.
final class Baresip: Peer {
    /// An event, or the answer to a command, as baresip's `ctrl_tcp` module gives it.
    struct Message: Sendable {
        let type: String
        let parameter: String
        let isResponse: Bool
        let isOK: Bool
    }

    private let directory: String
    private let process: PeerProcess
    private let control: Int32
    private let messages = Mailbox<Message>()

    /// How it is set up.
    struct Options: Sendable {
        /// `udp`, `tcp` or `tls`.
        var transport = "udp"
        /// Codec modules, best first.
        var codecs = ["opus", "g711"]
        var answersItself = false
        var caFile: String?
        /// More account parameters: `;medianat=ice`.
        var account = ""
        /// More configuration lines.
        var configuration = ""
    }

    /// Starts it and waits for its registration. It plays `sound` (48 kHz mono) and records what it hears.
    static func start(
        user: String, at server: PeerServer, playing sound: String, in scratch: Scratch, options: Options = Options()
    ) async throws -> Baresip {
        let phone = try Baresip(user: user, at: server, playing: sound, in: scratch, options: options)
        do {
            // The registration may be over before the control port is connected, so its log says it for certain.
            try await phone.process.line(containing: "200 OK")
        } catch {
            await phone.stop()
            throw error
        }
        return phone
    }

    private init(
        user: String, at server: PeerServer, playing sound: String, in scratch: Scratch, options: Options
    ) throws {
        let directory = scratch.root + "/baresip-" + user
        guard mkdir(directory, 0o700) == 0 else { throw TestFailure("cannot make \(directory)") }
        self.directory = directory
        let port = try freePort()
        let modules = "/usr/lib/baresip/modules"
        guard access(modules, R_OK) == 0 else {
            throw TestFailure("baresip's modules are not installed; run: scripts/setup test")
        }
        var lines = [
            "sip_listen 127.0.0.1:0", "net_interface 127.0.0.1", "ctrl_tcp_listen 127.0.0.1:\(port)",
            "audio_source aufile,\(sound)", "audio_player aubridge,nil", "audio_alert aubridge,nil",
            "ausrc_srate 48000", "auplay_srate 48000", "ausrc_channels 1", "auplay_channels 1", "opus_stereo no",
            "opus_sprop_stereo no", "module_path \(modules)", "sip_verify_server yes", "snd_path \(directory)",
        ]
        if let caFile = options.caFile { lines.append("sip_cafile \(caFile)") }
        lines += (options.codecs + ["aufile", "aubridge", "sndfile"]).map { "module \($0).so" }
        lines += ["account", "menu", "ctrl_tcp"].map { "module_app \($0).so" }
        lines.append(options.configuration)
        try writeFile(directory + "/config", Array((lines.joined(separator: "\n") + "\n").utf8))
        let outbound = "sip:\(server.host):\(server.port(options.transport));transport=\(options.transport)"
        let answering = options.answersItself ? ";answermode=auto" : ""
        let account =
            "<sip:\(user)@\(server.domain);transport=\(options.transport)>;auth_pass=\(server.password(of: user))"
            + ";outbound=\"\(outbound)\"\(answering)\(options.account)\n"
        try writeFile(directory + "/accounts", Array(account.utf8))
        try writeFile(directory + "/contacts", [])
        process = try PeerProcess("baresip", ["-f", directory], directory: directory)
        guard let control = try? connectToLoopback(port, within: .seconds(10)) else {
            throw TestFailure("baresip opened no control port: \(process.lines.untaken.suffix(10))")
        }
        self.control = control
        let messages = messages
        DispatchQueue(label: "baresip-control").async { Self.readMessages(control, into: messages) }
    }

    /// Sends a command: `dial`, `accept`, `hangup`, `hold`, `resume`, `transfer`.
    func command(_ name: String, _ parameters: String = "") {
        let text = "{\"command\":\"\(name)\",\"params\":\"\(parameters)\"}"
        let bytes = Array("\(text.utf8.count):\(text),".utf8)
        _ = bytes.withUnsafeBytes { send(control, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
    }

    /// Waits for an event, such as `CALL_ESTABLISHED`.
    @discardableResult
    func event(_ type: String, within limit: Duration = .seconds(15)) async throws -> Message {
        if let message = await messages.take(within: limit, { $0.type == type }) { return message }
        throw TestFailure(
            "baresip reported no \(type) but \(messages.untaken.suffix(10).map(\.type)); it said: "
                + process.lines.untaken.filter { !$0.contains("bit/s") }.suffix(10).joined(separator: " | "))
    }

    /// Waits for a line of its log.
    @discardableResult
    func line(containing text: String, within limit: Duration = .seconds(15)) async throws -> String {
        try await process.line(containing: text, within: limit)
    }

    /// What it heard in its last call; complete when the call is over.
    func heard() throws -> [Int16] {
        guard let file = Scratch.files(under: directory).filter({ $0.hasSuffix("-dec.wav") }).max() else {
            throw TestFailure("baresip recorded nothing: \(process.lines.untaken.suffix(10))")
        }
        return try Sound.readAny(file)
    }

    func stop() async {
        await process.stop()
        shutdown(control, Int32(SHUT_RDWR))
    }

    private static func readMessages(_ control: Int32, into messages: Mailbox<Message>) {
        var pending: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 16_384)
        while true {
            let count = recv(control, &chunk, chunk.count, 0)
            guard count > 0 else { break }
            pending += chunk[0..<count]
            // A netstring: LENGTH:JSON,
            while let colon = pending.firstIndex(of: 0x3A),
                let length = Int(String(decoding: pending[..<colon], as: UTF8.self)),
                pending.count > colon + 1 + length
            {
                let json = pending[(colon + 1)...(colon + length)]
                if let message = Message(Array(json)) { messages.put(message) }
                pending.removeFirst(colon + 2 + length)
            }
        }
        close(control)
        messages.close()
    }
}

extension Baresip.Message {
    fileprivate init?(_ json: [UInt8]) {
        guard let value = try? JSONDecoder().decode(JSONValue.self, from: Data(json)) else { return nil }
        isResponse = value["response"] != nil
        type = value["type"]?.string ?? ""
        parameter = (value["param"] ?? value["data"])?.string ?? ""
        isOK = value["ok"] == .bool(true)
    }
}
