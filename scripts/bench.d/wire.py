"""What passes over loopback, with the kernel's time stamps: SIP messages and RTP packets.

Times are seconds of CLOCK_REALTIME, as time.time() gives them.
"""

import re
import socket
import struct
import threading
import time

ETH_P_IP = 0x0800
SO_TIMESTAMPNS = 35


class Event:
    """One datagram: when, from which port to which, and what it is."""

    __slots__ = ("time", "source", "target", "start", "text")

    def __init__(self, moment, source, target, start, text):
        self.time = moment
        self.source = source
        self.target = target
        self.start = start  # "INVITE", "180" and so on; "RTP"
        self.text = text

    def user(self, header):
        """The user part of the address in a header."""
        found = re.search(rf"^{header}:[^\r\n]*?sip:([^@>;\r\n]+)@", self.text, re.M | re.I)
        return found.group(1) if found else None

    def method(self):
        found = re.search(r"^CSeq:\s*\d+\s+(\w+)", self.text, re.M | re.I)
        return found.group(1) if found else None

    def media_port(self):
        found = re.search(r"^m=audio (\d+)", self.text, re.M)
        return int(found.group(1)) if found else None


class Wire:
    """Listens until `close`. Only the first RTP packet of each direction since `forget` is kept."""

    def __init__(self, sip_port):
        self.sip_port = sip_port
        try:
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_IP))
        except PermissionError:
            raise SystemExit("bench: watching loopback needs root (CAP_NET_RAW); run: sudo make bench") from None
        self.socket.bind(("lo", ETH_P_IP))
        self.socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        self.socket.settimeout(0.2)
        self.changed = threading.Condition()
        self.events = []
        self.seen = set()
        self.bytes = {}
        self.is_open = True
        self.thread = threading.Thread(target=self._listen, daemon=True)
        self.thread.start()

    def close(self):
        self.is_open = False
        self.thread.join()
        self.socket.close()

    def forget(self):
        with self.changed:
            self.events.clear()
            self.seen.clear()
            self.bytes.clear()

    def reset_counts(self):
        """Begins to count packets and payload bytes anew, by target port."""
        with self.changed:
            self.bytes.clear()

    def wait(self, search, timeout=10.0):
        """The first result of `search(events)` that is not None; None when the time is over."""
        deadline = time.monotonic() + timeout
        with self.changed:
            while True:
                found = search(self.events)
                left = deadline - time.monotonic()
                if found is not None or left <= 0:
                    return found
                self.changed.wait(left)

    def _listen(self):
        while self.is_open:
            try:
                packet, ancillary, _, address = self.socket.recvmsg(65536, 64)
            except TimeoutError:
                continue
            # Loopback shows every packet twice: on its way out and on its way in.
            if address[2] == socket.PACKET_OUTGOING or len(packet) < 28 or packet[9] != socket.IPPROTO_UDP:
                continue
            seconds, nanoseconds = struct.unpack("qq", ancillary[0][2][:16])
            begin = (packet[0] & 15) * 4
            source, target = struct.unpack_from("!HH", packet, begin)
            self._note(seconds + nanoseconds / 1e9, source, target, packet[begin + 8:])

    def _note(self, moment, source, target, payload):
        if self.sip_port in (source, target):
            text = payload.decode("utf-8", "replace")
            words = text.split(" ", 2)
            if len(words) < 3:
                return
            event = Event(moment, source, target, words[1] if words[0] == "SIP/2.0" else words[0], text)
        elif len(payload) >= 12 and payload[0] >> 6 == 2 and not 192 <= payload[1] <= 223:
            with self.changed:
                packets, size = self.bytes.get(target, (0, 0))
                self.bytes[target] = (packets + 1, size + len(payload) - 12)
            if target in self.seen:
                return
            self.seen.add(target)
            event = Event(moment, source, target, "RTP", "")
        else:
            return
        with self.changed:
            self.events.append(event)
            self.changed.notify_all()


def registration(user, sip_port):
    """A search for the success of a user's REGISTER."""
    def search(events):
        for event in events:
            if event.source == sip_port and event.start == "200" and event.method() == "REGISTER" \
                    and event.user("To") == user:
                return event.time
        return None
    return search


def setup(caller, callee, sip_port):
    """A search for all that a call's set-up consists of, seen from the caller."""
    def search(events):
        found = {}
        ports = {}
        for event in events:
            if event.start == "RTP" or event.method() != "INVITE" or event.user("From") != caller \
                    or event.user("To") != callee:
                continue
            if event.start == "INVITE" and event.target == sip_port:
                found.setdefault("invite", event.time)
                found["client port"] = event.source
                ports["caller"] = event.media_port()
            elif event.start in ("180", "200") and event.source == sip_port \
                    and event.target == found.get("client port"):
                found.setdefault(event.start, event.time)
            if event.start == "200" and event.media_port():
                ports["callee"] = event.media_port()
        # A callee may send before its answer has passed, so this comes when both ports are known.
        for event in events:
            for side, port in ports.items():
                if event.start == "RTP" and event.target == port:
                    found.setdefault("rtp to " + side, event.time)
        wanted = ("invite", "180", "200", "rtp to caller", "rtp to callee")
        if not all(name in found for name in wanted):
            return None
        found["ports"] = ports
        return found
    return search


def goodbye(caller, callee, sip_port):
    """A search for the answered BYE of a call, whoever sent it."""
    def search(events):
        for event in events:
            if event.start == "200" and event.method() == "BYE" and event.target == sip_port \
                    and {event.user("From"), event.user("To")} == {caller, callee}:
                return event.time
        return None
    return search
