"""The other end of a WebSocket, by the package `websockets`: tests drive it line by line.

    websockets-peer.py server [CERTIFICATE KEY]   serves /ws on a free port of 127.0.0.1; says "listening PORT"
    websockets-peer.py client PORT                connects to /ws on 127.0.0.1

Both say "open SUBPROTOCOL", "text VALUE" or "binary SIZE SUM" for each message, "pong" for an answered ping and
"closed CODE REASON". Commands come on standard input, one a line:

    text VALUE        binary SIZE       fragments A B C      ping
    raw HEX           close CODE REASON
"""

import asyncio
import ssl
import sys
from http import HTTPStatus

from websockets.asyncio.client import connect
from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed


def say(*words):
    print(*words, flush=True)


def payload(size):
    return bytes(i % 251 for i in range(size))


async def obey(socket, line):
    command, _, rest = line.partition(" ")
    if command == "text":
        await socket.send(rest)
    elif command == "binary":
        await socket.send(payload(int(rest)))
    elif command == "fragments":
        await socket.send(rest.split(" "))
    elif command == "ping":
        await (await socket.ping())
        say("pong")
    elif command == "raw":
        socket.transport.write(bytes.fromhex(rest))
    elif command == "close":
        code, _, reason = rest.partition(" ")
        await socket.close(int(code), reason)


async def commands(socket, lines):
    while True:
        line = await lines.get()
        try:
            await obey(socket, line)
        except ConnectionClosed:
            pass


async def converse(socket, lines):
    say("open", socket.subprotocol)
    obeying = asyncio.create_task(commands(socket, lines))
    try:
        async for message in socket:
            if isinstance(message, str):
                say("text", message)
            else:
                say("binary", len(message), sum(message))
    except ConnectionClosed:
        pass
    obeying.cancel()
    say("closed", socket.close_code, socket.close_reason)


async def read_lines(lines):
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        await lines.put(line.rstrip("\n"))


def only_ws(connection, request):
    if request.path != "/ws":
        return connection.respond(HTTPStatus.NOT_FOUND, "nothing here\n")


async def main():
    lines = asyncio.Queue()
    reading = asyncio.create_task(read_lines(lines))
    options = dict(subprotocols=["sip"], max_size=1 << 20, ping_interval=None)
    if sys.argv[1] == "server":
        context = None
        if len(sys.argv) > 2:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(sys.argv[2], sys.argv[3])
        handler = lambda socket: converse(socket, lines)
        async with serve(handler, "127.0.0.1", 0, process_request=only_ws, ssl=context, **options) as server:
            say("listening", server.sockets[0].getsockname()[1])
            await reading
    else:
        async with connect(f"ws://127.0.0.1:{sys.argv[2]}/ws", proxy=None, **options) as socket:
            await converse(socket, lines)


asyncio.run(main())
