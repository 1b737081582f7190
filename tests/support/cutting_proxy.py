"""A TCP proxy that breaks connections: the bad network between a client and a server."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit, urlunsplit

BLOCK = 16 * 1024


class CuttingProxy:
    """Forwards connections until told otherwise. ``url`` is that of the server behind it."""

    def __init__(self, target: str) -> None:
        parts = urlsplit(target)
        self._target = (parts.hostname or "", parts.port or 0)
        self._parts = parts
        self._writers: set[asyncio.StreamWriter] = set()
        self._open = asyncio.Event()
        self._open.set()
        self.url = ""
        self.accepted = 0
        self.refusing = False
        """New connections are reset."""

    def cut(self) -> None:
        """Reset every connection, in both directions; what was underway is lost."""
        for writer in self._writers:
            raw = writer.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        self._writers.clear()

    def stall(self) -> None:
        """Forward nothing more, and tell nobody: a half-open connection for both sides."""
        self._open.clear()

    def go_on(self) -> None:
        """Forward again."""
        self._open.set()

    async def serve(self) -> asyncio.Server:
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        self.url = urlunsplit(self._parts._replace(netloc=f"127.0.0.1:{port}"))
        return server

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        if self.refusing:
            writer.transport.abort()
            return
        far_reader, far_writer = await asyncio.open_connection(*self._target)
        self._writers |= {writer, far_writer}
        await asyncio.gather(
            self._forward(reader, far_writer), self._forward(far_reader, writer), return_exceptions=True
        )
        self._writers -= {writer, far_writer}

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_now = self._open
        try:
            while data := await reader.read(BLOCK):
                await open_now.wait()
                writer.write(data)
                await writer.drain()
        finally:
            writer.close()


@asynccontextmanager
async def cutting_proxy(target: str) -> AsyncIterator[CuttingProxy]:
    """A proxy before the server at this URL."""
    proxy = CuttingProxy(target)
    server = await proxy.serve()
    try:
        yield proxy
    finally:
        proxy.cut()
        server.close()
