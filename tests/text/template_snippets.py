"""Small templates, each for one habit of the language; rendered over CONTEXT by us and by Jinja."""

CONTEXT = {
    "s": "Hello, Wörld", "empty": "", "pad": "  a b\t\n", "n": 7, "neg": -7, "f": 2.5, "t": True, "nil": None,
    "xs": [3, 1, 2], "words": ["b", "A", "c", "a"], "nested": [[1, 2], [3, [4]]], "d": {"b": 1, "a": [1, 2], "items": "key"},
    "people": [{"name": "Zoë", "age": 30, "tags": ["x"]}, {"name": "bob", "age": 25, "tags": []}, {"name": "Al", "age": 30}],
    "html": "<a href='x'>\"&\"</a>", "lines": "one\n\ntwo\n  three", "thought": "<think>\nhm\n</think>\n\nanswer",
    "big": 123456789012, "tiny": 1e-7, "huge": 1e22, "unicode": "日本\u2028語\u00e9\U0001F600", "ctl": "a\u0001\u007f\t\"\\/b",
}

SNIPPETS = r"""
{{ s }} {{ n }} {{ neg }} {{ f }} {{ t }} {{ nil }} {{ xs }} {{ d }} {{ empty }}|
{{ tiny }} {{ huge }} {{ big }} {{ 1.0 }} {{ 100000000000000000.0 }} {{ 0.1 + 0.2 }} {{ 1e16 }} {{ 123456.789e3 }}
{{ missing }}|{{ missing is defined }}|{{ missing | default('x') }}|{{ nil | default('x') }}|{{ nil | default('x', true) }}
{{ missing.deeper }}
{{ d.missing }}|{{ d['missing'] }}|{{ d.missing is undefined }}|{{ xs[10] }}|{{ xs[-1] }}|{{ s[0] }}|{{ s[-1] }}|{{ unicode[1] }}
{{ d.a }} {{ d['a'] }} {{ d.a[0] }} {{ d.a.0 }} {{ d['items'] }} {{ d.b + 1 }}
{{ d.items() | list }} {{ d.keys() | list }} {{ d.values() | list }} {{ d.get('a') }} {{ d.get('q') }} {{ d.get('q', 5) }}
{{ 1 + 2 * 3 - 4 / 2 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 2 ** 10 }} {{ 7.5 // 2 }} {{ -7.5 % 2 }} {{ 2 ** -1 }} {{ 2 ** 0.5 }}
{{ 1 / 0 }}
{{ 1 // 0 }}
{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 1 == 1.0 }} {{ true == 1 }} {{ 'a' < 'b' }} {{ [1,2] < [1,3] }} {{ 'a' == 1 }} {{ none == none }} {{ (1,2) == [1,2] }}
{{ 'a' < 1 }}
{{ 'ell' in s }} {{ 3 in xs }} {{ 'b' in d }} {{ 4 not in xs }} {{ not 3 in xs }} {{ 'x' in missing }}
{{ 1 in s }}
{{ true and 'x' }} {{ '' or 'y' }} {{ not '' }} {{ none or false }} {{ 0 and 1 }} {{ 1 and 0 or 2 }}
{{ 'yes' if n > 5 else 'no' }} {{ 'yes' if n > 50 }}| {{ 'a' if false else 'b' if false else 'c' }}
{{ 'a' ~ 1 ~ none ~ true ~ 2.0 ~ [1] }} {{ 'a' + 'b' }} {{ 'ab' * 3 }} {{ [1] * 2 }} {{ [1] + [2] }} {{ 3 * 'x' }} {{ 'x' * -1 }}
{{ 'a' + 1 }}
{{ 1 + 'a' }}
{{ [] + 'a' }}
{{ -n }} {{ +n }} {{ - -n }} {{ -f }} {{ -n|abs }} {{ (-n)|abs }}
{{ s[1:3] }} {{ s[:-1] }} {{ s[::-1] }} {{ s[::2] }} {{ xs[1:] }} {{ xs[::-1] }} {{ xs[-2:] }} {{ xs[5:] }} {{ unicode[1:4] }} {{ s[10:2] }} {{ xs[:100] }} {{ xs[-100:2] }}
{{ s|upper }} {{ s|lower }} {{ s|title }} {{ s|capitalize }} {{ "they're bill's" | title }} {{ 'ǆ'|title }}
{{ pad|trim }}| {{ pad.strip() }}| {{ pad.lstrip() }}| {{ pad.rstrip() }}| {{ 'xxaxx'.strip('x') }} {{ 'xyaxy'.lstrip('yx') }} {{ 'éaé'.strip('é') }} {{ 'xaax'|trim('x') }}
{{ s.split(',') }} {{ 'a  b c'.split() }} {{ 'a,b,c'.split(',', 1) }} {{ 'a,b,c'.rsplit(',', 1) }} {{ ' a b '.split(None, 1) }} {{ 'a b  c '.rsplit(None, 1) }} {{ ''.split() }} {{ ''.split(',') }} {{ lines.splitlines() }} {{ lines.splitlines(true) }}
{{ 'abc'.split('') }}
{{ s.startswith('He') }} {{ s.endswith(('x', 'd')) }} {{ s.find('l') }} {{ s.rfind('l') }} {{ s.find('q') }} {{ s.count('l') }} {{ s.replace('l', 'L') }} {{ s.replace('l', 'L', 1) }} {{ 'aaa'.replace('', '-') }} {{ 'abc'.replace('', '-', 2) }}
{{ s.upper() }} {{ s.title() }} {{ s.capitalize() }} {{ 'x'.join(['a','b']) }} {{ '12'.isdigit() }} {{ ''.isdigit() }} {{ ' '.isspace() }} {{ 'ab'.isalpha() }} {{ 'AB'.isupper() }} {{ 'aB'.islower() }}
{{ 'pre-x'.removeprefix('pre-') }} {{ 'x.py'.removesuffix('.py') }} {{ 'a=b=c'.partition('=') }} {{ 'a=b=c'.rpartition('=') }} {{ 'abc'.partition('=') }}
{{ '{} and {}'.format(1, 'x') }} {{ '{0}{1}{0}'.format('a', 'b') }} {{ '{x}'.format(x=3) }} {{ '{{}}'.format() }}
{{ '%s is %d or %.2f%%' % ('a', 3, 2.5) }} {{ '%s' % 5 }} {{ '%05d|%-5s|%5s' % (42, 'ab', 'cd') if false else '%05d' % 42 }} {{ '%x' % 255 }} {{ '%r' % 'a' }}
{{ '%s %s' % 'a' }}
{{ '%s' % ('a', 'b') }}
{{ xs|length }} {{ s|length }} {{ d|count }} {{ unicode|length }} {{ missing|length }}
{{ n|length }}
{{ xs|first }} {{ xs|last }} {{ []|first }}| {{ s|first }} {{ xs|sort }} {{ words|sort }} {{ words|sort(case_sensitive=true) }} {{ xs|sort(reverse=true) }} {{ people|sort(attribute='age')|map(attribute='name')|list }}
{{ xs|join(', ') }} {{ xs|join }} {{ people|join('/', attribute='name') }} {{ 'abc'|join('-') }}
{{ xs|reverse|list }} {{ s|reverse }} {{ xs|sum }} {{ people|sum(attribute='age') }} {{ xs|min }} {{ xs|max }} {{ words|min }} {{ []|min }}| {{ [1,1,2,1]|unique|list }} {{ words|unique|list }}
{{ people|map(attribute='name')|list }} {{ words|map('upper')|list }} {{ people|map(attribute='tags', default='none')|list }} {{ people|map(attribute='tags.0')|list }} {{ xs|map('string')|join('') }}
{{ people|selectattr('age', 'equalto', 30)|map(attribute='name')|join(',') }} {{ people|rejectattr('tags')|list|length }} {{ people|selectattr('tags', 'defined')|list|length }} {{ xs|select('odd')|list }} {{ xs|reject('gt', 1)|list }} {{ [0,1,'',none]|select|list }} {{ people|selectattr('age', '>', 26)|list|length }}
{{ xs|batch(2)|list }} {{ xs|batch(2, 'x')|list }} {{ d|dictsort }} {{ {'b':1,'A':2}|dictsort }} {{ {'b':1,'A':2}|dictsort(by='value') }} {{ d|items|list }} {{ people|groupby('age')|map('first')|list }}
{{ '5'|int }} {{ '5.9'|int }} {{ 'x'|int }} {{ 'x'|int(-1) }} {{ '0x1f'|int(0, 16) if false else '1f'|int(0, 16) }} {{ 3.99|int }} {{ '2.5'|float }} {{ 'x'|float }} {{ 5|float }} {{ none|int }} {{ true|int }} {{ ' 12 '|int }}
{{ 2.5|round }} {{ 3.5|round }} {{ 2.567|round(2) }} {{ 2.1|round(method='ceil') }} {{ 2.9|round(0, 'floor') }} {{ 2.675|round(2) }} {{ 1234.5|round(-2) }} {{ 5|round }}
{{ neg|abs }} {{ 'ab'|string }} {{ 5|string ~ 'x' }} {{ html|escape }} {{ html|e }} {{ html|safe }} {{ s|center(20) }}| {{ 'a b c'|wordcount }} {{ 'hello world foo bar'|truncate(10) }} {{ 'hello world'|truncate(8, true) }} {{ 'hello world foo bar'|truncate(12, false, '…', 0) }}
{{ lines|indent }}
{{ lines|indent(2, true) }}
{{ lines|indent(2, false, true) }}
{{ lines|indent('--') }} {{ 'x\n'|indent }}| {{ ''|indent(2, true) }}|
{{ d|tojson }} {{ s|tojson }} {{ ctl|tojson }} {{ unicode|tojson }} {{ unicode|tojson(ensure_ascii=true) }} {{ nested|tojson }} {{ [true, none, 1.0, 2]|tojson }} {{ {1: 2, true: 3, none: 4}|tojson }} {{ html|tojson }} {{ huge|tojson }} {{ {}|tojson }} {{ []|tojson(indent=2) }}
{{ d|tojson(indent=2) }}
{{ people|tojson(indent=4, sort_keys=true) }} {{ d|tojson(separators=(',', ':')) }}
{{ missing|tojson }}
{{ [s, ctl, unicode, html, "it's", 'say "hi"', 'both \' and "', none, true, 1.5, (1,), ()] }}
{{ n is number }} {{ s is number }} {{ n is integer }} {{ f is float }} {{ t is boolean }} {{ t is number }} {{ t is integer }} {{ s is string }} {{ d is mapping }} {{ xs is iterable }} {{ s is iterable }} {{ n is iterable }} {{ xs is sequence }} {{ d is sequence }} {{ nil is none }} {{ t is true }} {{ t is false }} {{ n is odd }} {{ n is even }} {{ n is divisibleby 7 }} {{ 'A' is upper }} {{ 'a' is lower }} {{ n is eq 7 }} {{ n is ne 7 }} {{ n is gt 3 }} {{ n is in xs }} {{ 1 is sameas 1 }} {{ t is sameas true }} {{ range is callable }} {{ n is not string }} {{ missing is not defined and true }}
{% for x in xs %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.cycle('a', 'b') }};{% endfor %}
{% for x in xs if x > 1 %}{{ x }}{{ loop.index }}/{{ loop.length }} {% else %}none{% endfor %}{% for x in [] %}{% else %}empty{% endfor %}
{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}{% for k in d %}{{ k }}{% endfor %}{% for c in 'aé' %}<{{ c }}>{% endfor %}{% for x in missing %}x{% endfor %}{% for (a, b) in [[1, 2]] %}{{ a }}{{ b }}{% endfor %}
{% for x in n %}{% endfor %}
{% for x in none %}{% endfor %}
{% for a, b in [[1, 2, 3]] %}{% endfor %}
{% for x in xs %}{% for y in xs %}{{ loop.depth }}{{ loop.index }}{% if y == 1 %}{% break %}{% endif %}{% endfor %}|{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}
{% set x = 1 %}{% for y in xs %}{% set x = x + y %}{{ x }} {% endfor %}{{ x }}{% if true %}{% set x = 99 %}{% endif %}{{ x }}
{% set ns = namespace(x=1, found=false) %}{% for y in xs %}{% set ns.x = ns.x + y %}{% endfor %}{{ ns.x }} {{ ns.found }} {{ ns.missing }}|
{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set c = 1, %}{{ c }}{% set x %}block {{ s }}{% endset %}{{ x }}|{{ x|length }}{% set y | upper | trim %} abc {% endset %}{{ y }}|
{% macro m(a, b='B', c=none) %}[{{ a }}{{ b }}{{ c }}]{% endmacro %}{{ m('1') }}{{ m(1, c=3) }}{{ m() }}{{ m('x')|upper }}{{ m(1, 2, 3) }}
{% macro fact(k) %}{{ 1 if k < 2 else k * fact(k - 1)|int }}{% endmacro %}{{ fact(5) }}
{% macro va() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ va(1, 2, x=3) }}
{% macro wrap(x) %}<{{ caller() }}{{ x }}>{% endmacro %}{% call wrap(1) %}in {{ s }}{% endcall %}{% macro wrap2() %}{{ caller('v') }}{% endmacro %}{% call(x) wrap2() %}got {{ x }}{% endcall %}
{% set g = 5 %}{% macro sees() %}{{ g }}{% endmacro %}{{ sees() }}{% set g = 6 %}{{ sees() }}
{% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}{{ a }}|{% filter upper %}abc {{ s }}{% endfilter %}{% filter replace('a', 'b')|upper %}aXa{% endfilter %}
{% if n == 1 %}1{% elif n == 7 %}7{% else %}?{% endif %}{% if missing %}y{% else %}n{% endif %}{% if not missing %}z{% endif %}{% if xs and d %}both{% endif %}
  {% if true %}  x  {% endif %}  y\n   {% if true %}\n  indented\n   {% endif %}\nend\n
a  {%- if true -%}  b  {%- endif -%}  c {{- ' d ' -}} e\n{#- comment -#}\n f {# x #}\ng
a\n  {# comment #}\nb\n  {%+ if true %}keep{% endif +%}\nc {{ s -}}\n\n d
{% raw %}{{ not }} {% parsed %}{% endraw %}x {%- raw -%}  y  {%- endraw -%} z
{{ "a\nb\t\"q\" \u00e9 \x41 \\ \d" }} {{ 'it''s' }} {{ "a" "b" }} {{ '\101' }} {{ '{{' }} {{ '%}' }}
{{ [1, 2, [3, {'a': (1, 2)}]] }} {{ {} }} {{ [] }} {{ () }} {{ (1) }} {{ (1,) }} {{ {'a': 1, 'a': 2} }} {{ [1,2,] }}
{{ range(5)|list }} {{ range(2, 8, 3)|list }} {{ range(3, 0, -1)|list }} {{ dict(a=1, b=2) }} {{ dict({'a': 1}, b=2) }} {{ range(3)|length }}
{{ range(1, 2, 0) }}
{{ raise_exception('stop here') }}
{{ strftime_now('%d %b %Y %H:%M:%S %A %j %%') }}
{{ thought.split('</think>')[-1].lstrip('\n') }}|{{ thought.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n') }}|{{ '</think>' in thought }}
{{ xs.append(4) }}
{{ d.update({}) }}
{{ missing() }}
{{ n() }}
{{ s|nosuchfilter }}
{{ s is nosuchtest }}
{{ s.__class__ }}|{{ ''.__class__.__mro__ }}
{{ d.__init__.__globals__ }}
{% include 'x' %}
{% for x in xs %}
{% if true %}
{{ 1 + }}
{{ 'open }}
{{ (1 }}
{% endfor %}
{% generation %}abc{% endgeneration %}{% set loop_messages = xs %}{{ loop_messages }}
{{ xs is string or d is mapping and not false }} {{ n == 7 and s is defined }} {{ (xs | length) > 2 }} {{ xs | length > 2 }} {{ xs|length == 3 and 'a' or 'b' }}
{{ people[0].name }} {{ people[0]['tags'][0] }} {{ (people|first).age }} {{ people[-1].tags is defined }} {{ people | map(attribute='age') | unique | list | length }}
{% for p in people if p.age == 30 and p.tags is defined %}{{ p.name }}{% endfor %}{% for g in people|groupby('age') %}{{ g.0 }}:{{ g[1]|length }} {% endfor %}
{{ not true == false }} {{ 1 if 0 else 2 + 3 }} {{ -2 ** 2 }} {{ 2 * 3 ~ 4 }} {{ 1 ~ 2 + 3 if false else 'x' }} {{ 10 - 2 - 3 }} {{ 100 / 10 / 5 }}
{{ 'a' ~ ('b' if t else 'c') ~ "d" }} {{ [x for x in xs] if false else 1 }}
{{ s[missing] }} {{ d[nil] }} {{ nil.x }}|{{ nil['x'] }}|{{ n.x }}|
{{ missing + 1 }}
{{ missing ~ 'x' }} {{ missing == missing2 }} {{ missing|list }} {{ missing|string }}| {{ missing|upper }}| {{ missing|join(',') }}|
{% set x = 5 -%}   a   {%- set y = 6 %}\n b {{ x ~ y }}
{{ true is sameas false }} {{ none is none }} {{ True }} {{ False }} {{ None }} {{ 1_000 }} {{ 0 is false }} {{ '' is false }}
{{ (1, 2) + (3,) }} {{ [1,2,3][1:] + [9] }} {{ 'abc'[1] * 2 }} {{ xs|list == xs }} {{ xs|tojson|length }}
{%- for m in people %}{{ '\n' if not loop.first }}{{- m.name -}}{% endfor -%}  end
{{ 'x' if missing is defined and missing.a else 'safe' }} {{ 'x' if missing is defined and missing.a }}|
""".strip("\n").split("\n")
