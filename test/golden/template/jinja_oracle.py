"""Renders the cases of cases.json (or of the named file) with Python jinja2, set up as transformers 5.24.0 sets it up for chat
templates. make_random.py uses the same environment.

Run:  pip install jinja2==3.1.6 && python jinja_oracle.py [file]            compares with the stored results
      python jinja_oracle.py [file] --write                                 stores them
"""
import datetime
import json
import os
import sys

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

FILE = next(
    (a for a in sys.argv[1:] if not a.startswith("--")),
    os.path.join(os.path.dirname(os.path.abspath(__file__)), "cases.json"),
)
NOW = datetime.datetime(2026, 3, 5, 4, 7, 9)


class Generation(jinja2.ext.Extension):
    """{% generation %}...{% endgeneration %}: prints its body."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


class TemplateDict:
    def __call__(self, *args, **kwargs):
        return dict(*args, **kwargs)

    def fromkeys(self, *args, **kwargs):
        return dict.fromkeys(*args, **kwargs)


class TemplateNamespace(jinja2.utils.Namespace):
    """A namespace takes no attributes that begin with an underscore."""

    def __init__(*args, **kwargs):
        self, args = args[0], args[1:]
        attrs = dict(*args, **kwargs)
        for name in attrs:
            TemplateNamespace.check(name)
        jinja2.utils.Namespace.__init__(self, attrs)

    def __setitem__(self, name, value):
        TemplateNamespace.check(name)
        jinja2.utils.Namespace.__setitem__(self, name, value)

    @staticmethod
    def check(name):
        if isinstance(name, str) and name.startswith("_"):
            raise jinja2.exceptions.SecurityError("underscore attribute on a namespace: %r" % name)


env = ImmutableSandboxedEnvironment(
    trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
)
env.filters["tojson"] = tojson
env.globals["raise_exception"] = raise_exception
env.globals["strftime_now"] = NOW.strftime
env.globals["dict"] = TemplateDict()
env.globals["namespace"] = TemplateNamespace


def render(case):
    try:
        return {"expected": env.from_string(case["template"]).render(**case.get("context", {}))}
    except Exception as e:
        result = {"error": type(e).__name__}
        if type(e) is jinja2.exceptions.TemplateError and "message" in case:
            result["message"] = str(e)
        return result


if __name__ == "__main__":
    data = json.load(open(FILE, encoding="utf-8"))
    bad = 0
    for case in data["cases"]:
        result = render(case)
        old = {k: case[k] for k in ("expected", "error", "message") if k in case}
        if "--write" in sys.argv:
            for k in old:
                del case[k]
            case.update(result)
        elif result != old:
            bad += 1
            print(case["name"], result, old)
    if "--write" in sys.argv:
        data["made_with"] = {
            "python": sys.version.split()[0],
            "jinja2": jinja2.__version__,
            "now": NOW.isoformat(),
        }
        with open(FILE, "w", encoding="utf-8") as f:
            lines = ",\n".join(json.dumps(c, ensure_ascii=False) for c in data["cases"])
            f.write('{"made_with": %s,\n"cases": [\n%s\n]}\n' % (json.dumps(data["made_with"]), lines))
    print(len(data["cases"]), "cases,", bad, "differ")
    sys.exit(1 if bad else 0)
