"""Names that strangers could give to functions, services, labels and files, and that must stay text."""

import unicodedata

MARKUP = [
    "<script>window.hacked=1</script>",
    "<img src=x onerror=window.hacked=1>",
    "<svg onload=window.hacked=1>",
    "<svg/onload=window.hacked=1//",
    "</title><script>window.hacked=1</script>",
    "]]><script>window.hacked=1</script>",
    "--><script>window.hacked=1</script>",
    "</text></svg><script>window.hacked=1</script>",
    "</style><script>window.hacked=1</script>",
    "\"><img src=x onerror=window.hacked=1>",
    "' onmouseover='window.hacked=1",
    "\" onfocus=\"window.hacked=1\" autofocus=\"",
    "javascript:window.hacked=1",
    "<iframe srcdoc='<script>parent.hacked=1</script>'>",
    "<a href=javascript:window.hacked=1>",
    "<base href=//evil.invalid/>",
    "<meta http-equiv=refresh content='0;url=//evil.invalid/'>",
    "<form action=//evil.invalid/><button>",
    "<math><mi xlink:href=javascript:hacked=1>",
    "<template><script>",
    "<plaintext>",
    "<xmp>",
    "<!--",
    "<![CDATA[",
    "&lt;script&gt;",
    "&#x3c;script&#x3e;",
    "&amp;amp;",
    "<?xml version='1.0'?>",
    "<!DOCTYPE x [<!ENTITY e SYSTEM 'file:///etc/passwd'>]>&e;",
    "%3Cscript%3E",
    "\\u003cscript\\u003e",
    "{{7*7}}",
    "${7*7}",
    "#{7*7}",
    "<%= 7*7 %>",
    "<b>bold</b>",
    "<style>*{display:none}</style>",
    "<link rel=stylesheet href=//evil.invalid/>",
    "<object data=//evil.invalid/>",
    "<details open ontoggle=window.hacked=1>",
    "<video><source onerror=window.hacked=1>",
    "<foreignObject><body onload=window.hacked=1>",
]
OTHER_LANGUAGES = [
    "`x`",
    "$(x)",
    "; rm -rf /",
    "| x",
    "%s%n%x",
    "${jndi:ldap://x}",
    "=cmd|' /C calc'!A0",
    "+1+1",
    "@SUM(1)",
    "-1",
    "a;b;c 5",
    "a b  c",
    "'; DROP TABLE x; --",
    "__proto__",
    "constructor",
    "toString",
    "hasOwnProperty",
    "undefined",
    "null",
    "NaN",
    "true",
    "0",
    "1e999",
    "[object Object]",
    "(a+)+$",
    "[",
    ".*",
    "\\",
    "../../x",
]
BIDI = ["a%sgnp.exe" % chr(c) for c in (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C)]
UNSEEN = [
    "a%sb" % chr(c)
    for c in (0x200B, 0x200C, 0x200D, 0x2060, 0x2062, 0xFEFF, 0xAD, 0x034F, 0x180E, 0x3164, 0xE0041, 0x2028, 0x2029)
]
CONTROL = ["c%sx%02x" % (chr(c), c) for c in (*range(1, 32), *range(0x7F, 0xA0))]
SCRIPTS = [
    "\u05e9\u05dc\u05d5\u05dd::\u05e2\u05d5\u05dc\u05dd",
    "\u0645\u0631\u062d\u0628\u0627.\u062f\u0627\u0644\u0629",
    "\u51fd\u6570.\u65b9\u6cd5",
    "\U0001f469\u200d\U0001f469\u200d\U0001f467",
    "Z\u0351\u036b\u0343\u036a\u0302a",
    "\uffff",
    "\ue000",
    " ",
    "\u00a0",
]
LONG = ["x" * 10_240, "<" * 10_240, "\u05e9" * 5_000, "a." * 5_000, "(" * 3_000]
NAMES = MARKUP + OTHER_LANGUAGES + BIDI + UNSEEN + CONTROL + SCRIPTS + LONG

# Of the page's own HTML; whatever else stands in the document has been made of a name.
ELEMENTS = """
    a aside b bdi body button canvas circle code datalist dd defs details dialog div dl dt fieldset footer
    form g h1 h2 h3 head header html i input kbd label legend li line link main meta meter nav noscript ol
    optgroup option output p path pattern pre progress rect script search section select small span strong sub
    summary sup svg symbol table tbody td text textarea tfoot th thead title tr ul use
""".split()


def unseen(text):
    """Characters that cannot be seen, or that change how others are seen, but for line feeds."""
    return sorted(
        {"U+%04X" % ord(c) for c in text if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")}
    )
