"""HTTP side of the handshake: keeps what a client sends right behind its upgrade request."""

from __future__ import annotations

from typing import cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol


class UpgradeProtocol(H11Protocol):
    """uvicorn's HTTP/1.1 protocol, without the loss of early messages.

    A client should wait for the server's answer before its first message (RFC 6455, section 4.1). One that does
    not may have its first words in the same TCP segment as the request, and uvicorn would drop them.
    """

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        early, _ = self.conn.trailing_data
        super().handle_websocket_upgrade(event)
        if early:
            cast(WebSocketsSansIOProtocol, self.transport.get_protocol()).data_received(early)
