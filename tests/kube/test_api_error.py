"""Tests of error responses: Status objects, and other bodies."""

from __future__ import annotations

import pytest
from scripted import status

from kube.errors import ApiError


def test_a_status_object_is_read() -> None:
    body = status(409, "AlreadyExists", 'pods "a" already exists', details={"name": "a", "kind": "pods"})
    error = ApiError.of(409, body, None)
    assert (error.status, error.reason, error.message) == (409, "AlreadyExists", 'pods "a" already exists')
    assert error.details == {"name": "a", "kind": "pods"}
    assert error.retry_after is None
    assert str(error) == '409 AlreadyExists: pods "a" already exists'


@pytest.mark.parametrize(
    ("code", "reason", "true"),
    [
        (404, "NotFound", "not_found"),
        (409, "AlreadyExists", "already_exists"),
        (409, "Conflict", "conflict"),
        (422, "Invalid", None),
        (500, "Conflict", None),
    ],
)
def test_error_responses_are_classified(code: int, reason: str, true: str | None) -> None:
    error = ApiError.of(code, status(code, reason), None)
    sorts = ("not_found", "already_exists", "conflict")
    assert [sort for sort in sorts if getattr(error, sort)] == ([true] if true else [])


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", ""),
        (b"404 page not found\n", "404 page not found"),
        (b"<html>Bad Gateway</html>", "<html>Bad Gateway</html>"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b"null", "null"),
        (b"[1]", "[1]"),
        (b'{"kind":"Pod"}', '{"kind":"Pod"}'),
        (b"x" * 10_000, "x" * 500),
        (b'{"kind":"Status","reason":null,"message":null,"details":null}', ""),
        (b'{"kind":"Status","code":"x","details":[1]}', ""),
    ],
)
def test_an_invalid_status_body_does_not_cause_a_crash(body: bytes, message: str) -> None:
    error = ApiError.of(502, body, None)
    assert (error.status, error.reason, error.message, error.details) == (502, "", message, {})
    assert str(error) == (f"502: {message}" if message else "502")


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("3", 3.0),
        ("86400", 60.0),
        ("0", None),
        (None, None),
        ("", None),
        ("-1", None),
        ("1.5", None),
        ("²", None),
        ("Wed", None),
    ],
)
def test_retry_after_is_whole_seconds_or_none(header: str | None, seconds: float | None) -> None:
    assert ApiError.of(429, b"", header).retry_after == seconds


def test_retry_after_may_be_given_only_in_the_status() -> None:
    body = status(429, "TooManyRequests", details={"retryAfterSeconds": 5})
    assert ApiError.of(429, body, None).retry_after == 5.0
    assert ApiError.of(429, body, "2").retry_after == 2.0


def test_the_code_of_an_error_event_comes_from_its_status() -> None:
    assert ApiError.of(0, status(410, "Expired"), None).status == 410
    assert ApiError.of(0, b"{}", None).status == 0
