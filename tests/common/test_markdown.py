import pytest

from common.markdown import render


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("**bold** and `code`", "<p><strong>bold</strong> and <code>code</code></p>\n"),
        (
            "[run](https://ci.example/1)",
            '<p><a href="https://ci.example/1" rel="nofollow noopener noreferrer">run</a></p>\n',
        ),
        ("# Top", "<h3>\nTop</h3>\n"),
        ("###### Deep", "<h6>\nDeep</h6>\n"),
        (
            "![a chart](https://x.example/c.png)",
            '<p><a href="https://x.example/c.png" rel="nofollow noopener noreferrer">a chart</a></p>\n',
        ),
        (
            "[![a](https://x.example/c.png)](https://y.example)",
            '<p><a href="https://y.example" rel="nofollow noopener noreferrer">a</a></p>\n',
        ),
    ],
)
def test_markdown_becomes_html(text: str, html: str) -> None:
    assert render(text) == html


def test_tables_are_taken() -> None:
    assert "<td>1</td>" in render("|a|\n|-|\n|1|\n")


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[a](javascript:alert(1))",
        "[a](JaVaScRiPt:alert(1))",
        "[a](&#106;avascript:alert(1))",
        "[a](data:text/html;base64,PHNjcmlwdD4=)",
        "[a](vbscript:x)",
        "[a](/services/default/digits/rollback)",
        "[a](//evil.example/)",
        "![a](javascript:alert(1))",
        "<javascript:alert(1)>",
        "[a]: javascript:alert(1)\n\n[a]",
        '[a](https://x.example "&quot; onmouseover=alert(1) x=&quot;")',
        "```<script>\nx\n```",
        "`<b onclick=x>`",
        "<!-- --><b>",
    ],
)
def test_nothing_in_it_runs_loads_or_leads_into_the_platform(text: str) -> None:
    html = render(text)
    for tag in ("<script", "<img", "<b", "<!--", 'href="/', 'href="javascript', 'href="data'):
        assert tag not in html.lower()
    assert ' onmouseover="' not in html.replace('title="', "")
    assert " onmouseover=alert(1)" not in html or "&quot; onmouseover" in html
