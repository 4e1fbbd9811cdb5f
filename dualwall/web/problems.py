"""Errors over HTTP: RFC 9457, with the exit code, so that the command line says what it would have said by itself."""

from collections.abc import Mapping
from http import HTTPStatus

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from palace.errors import BusyError, DualwallError, Exit, NotFoundError, UsageError

MEDIA_TYPE = "application/problem+json"
_STATUS = {Exit.USAGE: 400, Exit.BUSY: 409, Exit.UNREACHABLE: 503}


class Problem(BaseModel):
    """What went wrong, and what to do next."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    hint: str = ""
    exit_code: int


def response(status: int, error: DualwallError, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """An error as a response."""
    kind = type(error)
    title = HTTPStatus(status).phrase if kind in {DualwallError, UsageError} else kind.__name__
    body = Problem(
        title=title, status=status, detail=error.message, hint=error.hint, exit_code=int(error.exit_code)
    ).model_dump()
    return JSONResponse(body, status_code=status, media_type=MEDIA_TYPE, headers=dict(headers or {}))


async def answer(_request: Request, error: Exception) -> JSONResponse:
    """The handler of errors that routes raise."""
    if isinstance(error, HTTPException):
        return response(error.status_code, DualwallError(str(error.detail)), error.headers)
    if isinstance(error, RequestValidationError):
        return response(400, UsageError(_faults(error), "The shapes are in /openapi.json."))
    if not isinstance(error, DualwallError):
        return response(500, DualwallError("Something went wrong inside the server.", "Its log says what."))
    status = 404 if isinstance(error, NotFoundError) else _STATUS.get(error.exit_code, 500)
    return response(status, error, {"Retry-After": "5"} if isinstance(error, BusyError) else None)


def _faults(error: RequestValidationError) -> str:
    """Every fault with its place, without the value that was given: it may be as long as a note, or be one."""
    found = (f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors())
    return "; ".join(text[:300] for text in found)
