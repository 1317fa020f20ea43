import Testing
import WebSocket

@Suite struct WebSocketCloseCodeTests {
    @Test func normalIsOneThousand() {
        #expect(WebSocketCloseCode.normal.rawValue == 1000)
    }
}
