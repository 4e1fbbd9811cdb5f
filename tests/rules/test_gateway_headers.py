"""Which headers go on, and where a request goes."""

import pytest

from injector.gateway_headers import address, to_client, to_upstream


def test_keys_go_on_and_what_is_between_two_hops_does_not() -> None:
    kept = [
        (b"authorization", b"Bearer sk"), (b"x-api-key", b"k"), (b"anthropic-version", b"2023-06-01"), (b"anthropic-beta", b"a"),
        (b"anthropic-beta", b"b"), (b"openai-organization", b"o"), (b"traceparent", b"00-1"), (b"accept-encoding", b"gzip"),
    ]  # fmt: skip
    dropped = [
        (b"Host", b"h"), (b"Content-Length", b"3"), (b"Connection", b"keep-alive, X-Hop"), (b"X-Hop", b"1"), (b"TE", b"trailers"),
        (b"Transfer-Encoding", b"chunked"), (b"X-Dualwall-Token", b"secret"), (b"X-DUALWALL-Anything", b"x"), (b"Expect", b"100-continue"),
        (b"Upgrade", b"h2c"), (b"Proxy-Authorization", b"p"), (b"Keep-Alive", b"5"),
    ]  # fmt: skip
    assert to_upstream([*kept, *dropped]) == kept


def test_an_answer_keeps_its_encoding_and_its_cookies() -> None:
    kept = [(b"content-type", b"text/event-stream"), (b"content-encoding", b"gzip"), (b"content-length", b"7")]
    kept += [(b"set-cookie", b"a=1"), (b"set-cookie", b"b=2"), (b"request-id", b"r")]
    dropped = [(b"Transfer-Encoding", b"chunked"), (b"Server", b"x"), (b"Date", b"d"), (b"X-Dualwall", b"forged")]
    told = to_client([*kept, *dropped], "injected; tokens=4; notes=1", "")
    assert told == [*kept, (b"x-dualwall", b"injected; tokens=4; notes=1"), (b"x-accel-buffering", b"no")]
    assert (b"x-dualwall-reason", b"why?") in to_client([], "empty", "why\u00e9")


@pytest.mark.parametrize(
    ("base", "path", "query", "expected"),
    [
        ("", b"/v1/models", b"", b"/v1/models"),
        ("/", b"/v1/models", b"", b"/v1/models"),
        ("/v1", b"/v1/models", b"", b"/v1/models"),
        ("/v1/", b"/v1/models", b"limit=2&x=%20", b"/v1/models?limit=2&x=%20"),
        ("/openai/v1", b"/v1/files/a%2Fb", b"", b"/openai/v1/files/a%2Fb"),
        ("/tenant", b"/v1/x..y", b"a=../..", b"/tenant/v1/x..y?a=../.."),
        ("/tenant", b"/v1/../../x", b"", None),
        ("/tenant", b"/v1/%2e%2E/x", b"", None),
        ("/tenant", b"/v1/..%2fx", b"", None),
        ("/tenant", b"/v1/..%5Cx", b"", None),
        ("/tenant", b"/v1/x/..", b"", None),
    ],
)
def test_a_request_stays_below_its_upstream(base: str, path: bytes, query: bytes, expected: bytes | None) -> None:
    assert address(base, path, query) == expected
