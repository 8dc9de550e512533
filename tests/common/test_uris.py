import pytest

from common.errors import InvalidInput
from common.uris import check_allowed, parse, parse_prefixes


@pytest.mark.parametrize(
    ("uri", "url"),
    [
        ("https://Models.Example.com:443/a/b.onnx", "https://models.example.com/a/b.onnx"),
        ("http://[::1]:8000/a%20b/%6Dodel.onnx", "http://[::1]:8000/a%20b/model.onnx"),
        ("https://h/m.onnx?sig=a%2Fb&x=1", "https://h/m.onnx?sig=a%2Fb&x=1"),
        ("s3://My.Bucket/models/a b/", "s3://My.Bucket/models/a b/"),
        ("gs://bucket/m+1.onnx", "gs://bucket/m+1.onnx"),
        ("file:///srv/models/d%C3%A4.onnx", "file:///srv/models/d%C3%A4.onnx"),
        ("file://localhost/srv/m.onnx", "file:///srv/m.onnx"),
    ],
)
def test_a_uri_has_one_normal_form_which_is_read_back_as_itself(uri: str, url: str) -> None:
    assert parse(uri).url == url
    assert parse(url) == parse(uri)


@pytest.mark.parametrize(
    ("uri", "told"),
    [
        ("ftp://h/m.onnx", "expected one of http://, https://, s3://"),
        ("m.onnx", "expected one of"),
        ("https:///m.onnx", "names the host"),
        ("https://h./m.onnx", "names the host"),
        ("https://h%2fo/m.onnx", "names the host"),
        ("https://h:99999/m.onnx", "is no URI"),
        ("https://allowed.example@evil.example/m.onnx", "user or password"),
        ("https://allowed.example\\@evil.example/m.onnx", "backslashes"),
        ("https://h/m.onnx#part", "a fragment"),
        ("s3://b/m.onnx?versionId=1", "a query"),
        ("file:///srv/m.onnx?x", "a query"),
        ("file://other/srv/m.onnx", "file:///absolute/path"),
        ("https://h/a/../m.onnx", "'.' or '..'"),
        ("https://h/a/%2e%2e/m.onnx", "'.' or '..'"),
        ("https://h/a/%252e%252e/m.onnx", "'.' or '..'"),
        ("https://h/a%2fm.onnx", "coded slashes"),
        ("https://h/a%5cm.onnx", "coded slashes"),
        ("https://h/a//m.onnx", "empty"),
        ("https://h//m.onnx", "empty"),
        ("https://h/%ff.onnx", "UTF-8"),
        ("https://h/a%0ab.onnx", "expected parts"),
        ("s3://b/a/../m.onnx", "'.' or '..'"),
        ("https://h/", "names no file"),
        ("s3://bucket", "names no file"),
        ("https://h/m\n.onnx", "printable"),
        (f"https://h/{'a' * 4000}", "at most 4000"),
        (f"https://h/{'ä' * 1000}", "once it is encoded"),
    ],
)
def test_what_could_be_read_in_two_ways_is_refused(uri: str, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        parse(uri)


ALLOWED = ["https://models.example.com/released", "s3://team/", "file:///srv/models", "http://127.0.0.1:9000"]


@pytest.mark.parametrize(
    "uri",
    [
        "https://models.example.com/released/a/m.onnx",
        "https://MODELS.example.com:443/%72eleased/m.onnx",
        "s3://team/m.onnx",
        "file:///srv/models/1/",
        "http://127.0.0.1:9000/m.onnx",
    ],
)
def test_what_is_below_a_prefix_is_allowed(uri: str) -> None:
    check_allowed(parse(uri), parse_prefixes(ALLOWED))


@pytest.mark.parametrize(
    "uri",
    [
        "https://models.example.com/released-not/m.onnx",
        "https://models.example.com/m.onnx",
        "http://models.example.com/released/m.onnx",
        "https://models.example.com:8443/released/m.onnx",
        "https://models.example.com.evil.example/released/m.onnx",
        "s3://team-two/m.onnx",
        "gs://team/m.onnx",
        "file:///srv/models-two/m.onnx",
        "http://127.0.0.1/m.onnx",
        "http://localhost:9000/m.onnx",
    ],
)
def test_all_else_is_refused_with_the_name_of_the_setting(uri: str) -> None:
    with pytest.raises(InvalidInput, match="FAIRLEAD_IMPORT_FROM does not allow"):
        check_allowed(parse(uri), parse_prefixes(ALLOWED))


def test_without_prefixes_the_refusal_says_how_to_switch_it_on() -> None:
    with pytest.raises(InvalidInput, match="switched off; an operator switches it on by setting FAIRLEAD_IMPORT_FROM"):
        check_allowed(parse("https://h/m.onnx"), ())


@pytest.mark.parametrize("text", ["https://", "file:///", "https://h/?x=1", "models.example.com", "https://u:p@h/"])
def test_a_prefix_that_would_allow_too_much_or_nothing_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="FAIRLEAD_IMPORT_FROM"):
        parse_prefixes([text])


@pytest.mark.parametrize("end", ["#part", "\t"])
def test_a_refusal_does_not_repeat_a_query_which_may_be_a_signature(end: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse(f"https://models.example.com/a?sig=s3cret{end}")
    assert "s3cret" not in refused.value.message
