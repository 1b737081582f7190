"""Plain HTTP for monitoring: is it alive, may it get clients, what has it done."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from parakeet_live.web.access import AccessControl
from parakeet_live.web.lifecycle import Lifecycle, NotReadyError, Phase
from parakeet_live.web.metrics import ServerMetrics

HEALTH_PATH = "/healthz"
READY_PATH = "/readyz"
STATS_PATH = "/v1/stats"
METRICS_PATH = "/metrics"


def probe_routes(lifecycle: Lifecycle, access: AccessControl, metrics: ServerMetrics) -> APIRouter:
    """The routes, answered from the first moment on."""
    routes = APIRouter()

    @routes.get(HEALTH_PATH)
    async def health(request: Request) -> dict[str, str | int]:
        found: dict[str, str | int] = {"status": "ok", "state": lifecycle.status}
        if not access.may_monitor(request):
            return found
        found["version"] = version("parakeet-live")
        try:
            recognizer, service = lifecycle.recognizer, lifecycle.service
        except NotReadyError:
            return found
        return found | {
            "model": recognizer.bundle_name,
            "active_streams": recognizer.active_streams,
            "max_streams": service.admission.size,
            "waiting_clients": service.admission.waiting,
            "estimated_streams_left": service.admission.left,
        }

    @routes.get(READY_PATH)
    async def ready() -> JSONResponse:
        status = lifecycle.status
        return JSONResponse({"status": status}, 200 if status == Phase.READY else 503)

    @routes.get(STATS_PATH)
    async def stats(request: Request) -> JSONResponse:
        if not access.may_monitor(request):
            return access.refuse_monitoring()
        try:
            recognizer, service = lifecycle.recognizer, lifecycle.service
        except NotReadyError as error:
            return JSONResponse({"error": str(error)}, 503)
        found: dict[str, Any] = {
            "streams": {
                "active": recognizer.active_streams,
                "max": service.admission.size,
                "left": service.admission.left,
                "waiting": service.admission.waiting,
                "detached": service.sessions.detached,
                "overloaded": service.admission.held,
                "largest_backlog_ms": recognizer.largest_backlog_ms,
                "largest_lag_ms": round(1000 * recognizer.largest_lag),
            },
            "lanes": recognizer.lanes,
            "step_cost_ms": round(recognizer.step_cost_ms, 2),
            "engine": recognizer.stats.snapshot(),
        }
        if lifecycle.capacity is not None:
            found["real_time_factor"] = round(lifecycle.capacity.real_time_factor, 4)
            found["streams"]["suggested_max"] = lifecycle.capacity.streams
        return JSONResponse(found)

    @routes.get(METRICS_PATH)
    async def metrics_page(request: Request) -> Response:
        if not access.may_monitor(request):
            return access.refuse_monitoring()
        page, content_type = metrics.exposition(request.headers.get("accept", ""))
        return Response(page, media_type=content_type)

    return routes
