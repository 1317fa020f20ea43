import Primitives
import SIP
import Testing

@testable import Signalling

/// Damaged and misplaced messages into a user agent with live calls: nothing traps, nothing grows, nothing ends twice.
struct UserAgentFuzzTests {
    private static let words = [
        "INVITE", "ACK", "BYE", "CANCEL", "OPTIONS", "REGISTER", "SIP/2.0 200 OK", "SIP/2.0 180 Ringing",
        "SIP/2.0 401 Unauthorized", "SIP/2.0 487 Gone", "CSeq: 4294967295 INVITE", "CSeq: 0 BYE", ";tag=", ";tag=x",
        "Require: 100rel", "Expires: 99999999999999999999", "Expires: 0", "Content-Length: 0", "m=audio 0 RTP/AVP 0",
        "c=IN IP4 0.0.0.0", "a=inactive", "\r\n", "\r\n\r\n", "Contact: *", "Retry-After: -1", "Reason: SIP;cause=200",
        "Reason: ;;=\";", "Record-Route: <sip:a;lr>, <sip:b>", "<>", "\u{0}", "é", "Require: 100rel\r\nRSeq: 1",
        "RSeq: 4294967295", "RAck: 1 1 INVITE", "Session-Expires: 1", "Session-Expires: 90;refresher=uac",
        "Min-SE: 9999999",
        "Supported: timer, 100rel", "Allow: UPDATE", "Content-Type: multipart/mixed;boundary=x", "--x\r\n", "--x--",
        "Refer-To: <sip:a@b?Replaces=x%3Bto-tag%3Dy%3Bfrom-tag%3Dz>", "Replaces: x;to-tag=y;from-tag=z",
        "Event: refer;id=1",
        "Subscription-State: terminated", "SIP/2.0 603 No", "Refer-Sub: false", "Signal=5", "Contact: <sip:a@b>;q=0.5",
        "Content-Disposition: session;handling=required", "Reason: Q.850;cause=17", "Via: SIP/2.0/UDP x;branch=z9hG4bK",
    ]

    private static func mutate(_ bytes: [UInt8], _ random: inout RandomSource, _ others: [[UInt8]]) -> [UInt8] {
        var result = bytes
        func position() -> Int { result.isEmpty ? 0 : Int(random.next() % UInt64(result.count)) }
        for _ in 0...Int(random.next() % 3) {
            switch random.next() % 7 {
            case 0 where !result.isEmpty: result[position()] = UInt8(truncatingIfNeeded: random.next())
            case 1 where !result.isEmpty:
                let start = position()
                result.removeSubrange(start..<min(result.count, start + Int(random.next() % 40)))
            case 2:
                result.insert(contentsOf: Array(words[Int(random.next() % UInt64(words.count))].utf8), at: position())
            case 3: result = Array(result.prefix(position()))
            case 4:
                // The head of one message, the rest of another.
                let other = others[Int(random.next() % UInt64(others.count))]
                result = Array(result.prefix(position())) + other.suffix(Int(random.next() % UInt64(other.count + 1)))
            case 5:
                var lines = String(decoding: result, as: UTF8.self).split(
                    separator: "\r\n", omittingEmptySubsequences: false)
                guard lines.count > 2 else { break }
                let (a, b) = (Int(random.next() % UInt64(lines.count)), Int(random.next() % UInt64(lines.count)))
                if random.next() & 1 == 0 { lines.swapAt(a, b) } else { lines[a] = lines[b] }
                result = Array(lines.joined(separator: "\r\n").utf8)
            default: break
            }
        }
        return result
    }

    /// REFER, its reports, and an INVITE that takes a call over.
    private func transfers(_ lone: inout LoneAgent, _ callID: String, _ tag: String) -> [SIPMessage] {
        var refer = lone.request(.refer, callID: callID, toTag: tag)
        refer.headers["Refer-To"] = "<sip:carol@example.org>"
        var notify = lone.request(
            .notify, callID: callID, toTag: tag, body: "SIP/2.0 200 OK\r\n", type: "message/sipfrag")
        notify.headers["Event"] = "refer"
        notify.headers["Subscription-State"] = "active;expires=60"
        let keys = lone.request(.info, callID: callID, toTag: tag, body: "Signal=5", type: "application/dtmf-relay")
        var replacing = lone.request(.invite, callID: callID + "-replaced", body: LoneAgent.offer)
        replacing.headers["Replaces"] = "\(callID);to-tag=\(tag);from-tag=peer"
        return [refer, notify, keys, replacing]
    }

    @Test(arguments: 1...12)
    func mutatedMessages(seed: UInt64) throws {
        var random = RandomSource.seeded(seed)
        var lone = LoneAgent { $0.acceptsTransfers = true }
        lone.act { $0.start(at: $1) }
        try lone.acceptRegistration()
        for number in 0..<4 {
            _ = try lone.established(callID: "running-\(number)", body: number == 0 ? nil : LoneAgent.offer)
        }
        let media = LoneAgent.media
        for _ in 0..<400 {
            // Messages that mean something now.
            var seeds: [SIPMessage] = []
            let running = lone.agent.calls.values.compactMap { call in call.dialog.map { ($0.callID, $0.localTag) } }
            if let (callID, tag) = running.randomElement(using: &random) {
                for method in [SIPMethod.invite, .ack, .bye, .options, .cancel, .prack, .update, .info] {
                    let body = random.next() & 1 == 0 ? LoneAgent.offer : nil
                    seeds.append(lone.request(method, callID: callID, toTag: tag, body: body))
                }
            }
            if let (callID, tag) = running.randomElement(using: &random) { seeds += transfers(&lone, callID, tag) }
            seeds.append(lone.request(.invite, callID: "new-\(random.next())", body: LoneAgent.offer))
            for request in lone.sent.suffix(6) where request.isRequest && request.method != .ack {
                for status in [100, 180, 200, 302, 401, 403, 422, 487, 491, 503] {
                    seeds.append(lone.response(status, to: request, tag: "peer", body: LoneAgent.offer))
                }
                let number = UInt32(truncatingIfNeeded: random.next() % 3) + 1
                seeds.append(lone.reliable(183, number: number, to: request, tag: "fork", body: LoneAgent.offer))
            }
            let texts = try seeds.shuffled(using: &random).prefix(2).map { try $0.encoded() }
            guard let text = texts.randomElement(using: &random) else { continue }
            if let message = try? SIPMessage.parse(Self.mutate(text, &random, texts)) {
                lone.act { $0.receive(message, from: LoneAgent.flow, at: $1) }
            }
            switch random.next() % 12 {
            case 0: lone.act { _ = $0.call(SIPURI(user: "x", host: "example.org"), media: media, at: $1) }
            case 1, 2:
                if let record = lone.records.randomElement(using: &random) {
                    lone.act { $0.hangUp(record.handle, at: $1) }
                }
            case 3, 4:
                if let record = lone.records.randomElement(using: &random) {
                    lone.act { $0.answer(record.handle, media: media, at: $1) }
                }
            case 5: lone.advance(by: .milliseconds(Int64(random.next() % 3_000)))
            case 7, 8:
                if let record = lone.records.randomElement(using: &random) {
                    let holds = random.next() & 1 == 0
                    lone.act { holds ? $0.hold(record.handle, at: $1) : $0.resume(record.handle, at: $1) }
                    lone.act { $0.startEarlyMedia(record.handle, media: media, at: $1) }
                }
            case 9:
                if let record = lone.records.randomElement(using: &random) {
                    let other = lone.records.randomElement(using: &random) ?? record
                    lone.act { $0.transfer(record.handle, to: other.handle, at: $1) }
                    lone.act { $0.transfer(record.handle, to: SIPURI(user: "x", host: "example.org"), at: $1) }
                    lone.act { $0.sendKeys("12", in: record.handle, at: $1) }
                }
            case 10, 11:
                if let record = lone.records.last(where: { $0.transferRequest != nil }) {
                    lone.act { _ = $0.followTransfer(record.handle, media: media, at: $1) }
                }
            case 6 where random.next() % 4 == 0: lone.act { $0.flowFailed(reason: "ICMP", at: $1) }
            default: break
            }
            #expect(lone.agent.activeCalls <= lone.agent.configuration.maximumCalls)
            // Everything it says can be printed.
            for message in lone.sent.suffix(4) { _ = try message.encoded() }
        }
        for record in lone.records { lone.act { $0.hangUp(record.handle, at: $1) } }
        #expect(lone.records.allSatisfy { $0.termination != nil })
        lone.advance(by: .seconds(130))
        #expect(lone.agent.calls.isEmpty)
        lone.advance(by: .seconds(70))
        #expect(lone.agent.legs.isEmpty && lone.agent.answeredInvites.isEmpty)
        #expect(lone.agent.referrers.isEmpty && lone.agent.reports.isEmpty)
    }
}
