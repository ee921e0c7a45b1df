"""The connection to a server: requests, errors, and streams that survive a broken connection."""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any

# The events after which a stream has nothing more.
_LAST = {"done", "error", "end"}


class ContinuoError(Exception):
    """An answer of the server that is an error.

    status is the HTTP status, code the cause for programs (such as not_found), and body the whole answer; of a turn that
    failed it has the text so far.
    """

    def __init__(self, status: int, code: str, message: str, body: Any) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.body = body


def quoted(part: object) -> str:
    """Return a part of a path."""
    return urllib.parse.quote(str(part), safe="")


class Transport:
    """The connection to a server. It has no state besides its settings, and may be used by several threads."""

    def __init__(
        self,
        base_url: str = "http://127.0.0.1:8787",
        key: str | None = None,
        *,
        timeout: float = 600,
        headers: Mapping[str, str] | None = None,
        reconnects: int = 5,
        reconnect_delay: float = 0.25,
    ) -> None:
        """Make a client.

        key is an API key (continuo keys create). timeout is how many seconds the server may send nothing. reconnects is
        how often in a row a broken stream is connected again, the first time after reconnect_delay seconds, which double
        each time.
        """
        self._base_url = base_url.rstrip("/")
        self._headers = dict(headers or {})
        if key:
            self._headers["Authorization"] = f"Bearer {key}"
        self._timeout = timeout
        self._reconnects = reconnects
        self._reconnect_delay = reconnect_delay

    def _call(self, method: str, path: str, **parts: Any) -> Any:
        """Send a request and return what its answer holds: JSON as a value, anything else as text."""
        with self._send(method, path, "application/json, text/plain;q=0.9, */*;q=0.8", **parts) as response:
            data = response.read()
            if response.status == 204:
                return None
            if response.headers.get_content_type().endswith("json"):
                return json.loads(data)
            return data.decode()

    def _stream(self, method: str, path: str, **parts: Any) -> Iterator[Any]:
        """Send a request whose answer is a stream, and yield its events until the last one.

        When the connection breaks, it continues after the last event that it got, without gaps or duplicates.
        """
        place = path if method == "GET" else None
        following, request, last_id, failures = path, parts, None, 0
        while True:
            cause: Exception = ConnectionError("the connection ended before the stream did")
            try:
                with self._send(method, following, "text/event-stream", **request) as response:
                    if response.status == 204:
                        return
                    for event in _events(response):
                        failures = 0
                        last_id = event.get("id", last_id)
                        place = place or _follows(path, event)
                        yield event
                        if event["event"] in _LAST:
                            return
            except ContinuoError as error:
                if error.status < 500 and error.status != 429:
                    raise
                cause = error
            except (OSError, http.client.HTTPException) as error:
                cause = error
            if place is None or failures >= self._reconnects:
                raise cause
            time.sleep(self._reconnect_delay * 2**failures)
            failures += 1
            method, following = "GET", place
            same = place == path
            request = {"query": parts.get("query")} if same else {}
            if last_id is not None:
                request["headers"] = {"Last-Event-ID": last_id}
            elif same:
                request["headers"] = parts.get("headers")

    def _send(
        self,
        method: str,
        path: str,
        accept: str,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, Any] | None = None,
        body: Any = None,
    ) -> http.client.HTTPResponse:
        sent = {"Accept": accept, **self._headers}
        sent.update({name: str(value) for name, value in (headers or {}).items() if value is not None})
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            sent["Content-Type"] = "application/json"
        request = urllib.request.Request(self._base_url + path + _search(query), data=data, headers=sent, method=method)
        try:
            return urllib.request.urlopen(request, timeout=self._timeout)
        except urllib.error.HTTPError as error:
            raise _failure(error) from None


def _follows(path: str, event: Mapping[str, Any]) -> str | None:
    """Return where the stream that a request began can be continued, as far as an event says it."""
    name, data = event["event"], event["data"]
    if name == "turn" and (path == "/chat" or "/turns/" in path):
        return f"/api/conversations/{quoted(data['conversation_id'])}/turns/{quoted(data['turn_id'])}/events"
    if name == "status" and path == "/api/runs":
        return f"/api/runs/{quoted(data['id'])}/events"
    if name == "status" and "crew" in data:
        return f"/api/crews/{quoted(data['crew'])}/events?session_id={quoted(data['session_id'])}"
    return None


def _search(query: Mapping[str, Any] | None) -> str:
    pairs: list[tuple[str, str]] = []
    for name, value in (query or {}).items():
        if isinstance(value, Mapping):
            pairs += [(name + member, str(text)) for member, text in value.items()]
        elif isinstance(value, bool):
            pairs.append((name, "true" if value else "false"))
        elif value is not None:
            pairs.append((name, str(value)))
    return "?" + urllib.parse.urlencode(pairs) if pairs else ""


def _failure(error: urllib.error.HTTPError) -> ContinuoError:
    with error:
        text = error.read().decode(errors="replace")
    try:
        body = json.loads(text)
        return ContinuoError(error.code, body["error"]["code"], body["error"]["message"], body)
    except (ValueError, KeyError, TypeError):
        return ContinuoError(error.code, "", text or str(error.reason), text)


def _events(response: http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
    """Read server-sent events."""
    event: dict[str, Any] = {"event": "message"}
    data: list[str] = []
    for raw in response:
        if not raw.endswith(b"\n"):
            return  # the connection ended within a line, and perhaps within a character
        line = raw.decode().rstrip("\r\n")
        if not line:
            if data:
                yield {**event, "data": json.loads("\n".join(data))}
            event, data = {"event": "message"}, []
            continue
        name, _, text = line.partition(":")
        text = text.removeprefix(" ")
        if name == "data":
            data.append(text)
        elif name in ("event", "id"):
            event[name] = text
