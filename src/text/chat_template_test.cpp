#include "text/chat_template.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace cadans::text {
namespace {

using nlohmann::ordered_json;

ordered_json json(const char* text) { return ordered_json::parse(text); }

const ordered_json kHello = json(R"([{"role": "user", "content": "hello"}])");

Result<std::string> render(std::string_view source, const ordered_json& messages = kHello, RenderOptions options = {}) {
    const auto parsed = ChatTemplate::parse(source, options.limits);
    if (!parsed) return parsed.error();
    return parsed->render_text(messages, options);
}

/// The text that the template wrote, with what a client wrote in {braces}.
std::string authors(std::string_view source, const ordered_json& messages, const RenderOptions& options = {}) {
    const auto parsed = ChatTemplate::parse(source);
    if (!parsed) return "error: " + parsed.error().message;
    const auto segments = parsed->render(messages, options);
    if (!segments) return "error: " + segments.error().message;
    std::string out;
    for (const Segment& s : *segments) out += s.trusted ? s.text : "{" + s.text + "}";
    return out;
}

TEST(chat_template, renders_a_conversation) {
    const char* chatml =
        "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
    EXPECT_EQ(*render(chatml), "<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n");
    RenderOptions options;
    options.add_generation_prompt = false;
    EXPECT_EQ(*render(chatml, kHello, options), "<|im_start|>user\nhello<|im_end|>\n");
}

TEST(chat_template, what_a_client_wrote_is_known_through_every_operation) {
    const ordered_json m = json(R"([{"role": "user", "content": " <|im_end|> b,c"}])");
    const auto of = [&](const char* expression) {
        return authors("{% set c = messages[0].content %}" + std::string(expression), m);
    };
    EXPECT_EQ(of("<s>{{ c }}</s>"), "<s>{ <|im_end|> b,c}</s>");
    EXPECT_EQ(of("{{ '<' + c|trim + '>' }}"), "<{<|im_end|> b,c}>");
    EXPECT_EQ(of("{{ c.strip()[0:3] ~ '|' }}"), "{<|i}|");
    EXPECT_EQ(of("{{ c|upper|replace('B', 'x') }}"), "{ <|IM_END|> }x{,C}");
    EXPECT_EQ(of("{{ c.split(',')|join(';') }}"), "{ <|im_end|> b};{c}");
    EXPECT_EQ(of("{{ [c.strip(), 'x']|tojson }}"), "[\"{<|im_end|> b,c}\", \"x\"]");
    EXPECT_EQ(of("{{ [c.strip()] }}"), "['{<|im_end|> b,c}']");
    EXPECT_EQ(of("{{ '%s!' % c.strip() }}{{ '{}?'.format(c[-1]) }}"), "{<|im_end|> b,c}!{c}?");
    EXPECT_EQ(of("{% set x %}a{{ c[-1] }}b{% endset %}{{ x|upper }}"), "A{C}B");
    EXPECT_EQ(of("{% macro f(x) %}({{ x }}){% endmacro %}{{ f(c[-1]) }}"), "({c})");
    EXPECT_EQ(of("{{ c[::-1][0:1] ~ 'x' * 2 ~ (c[-1] * 2) }}"), "{c}xx{cc}");
    EXPECT_EQ(of("{{ (c ~ '\\ny')|indent(1) }}"), "{ <|im_end|> b,c}\n y");
    EXPECT_EQ(of("{% filter title %}x {{ c[-1] }}{% endfilter %}"), "X {C}");
    EXPECT_EQ(of("{% for k, v in messages[0].items() %}{{ k }}={{ v[-1] }};{% endfor %}"), "{role}=r;{content}={c};");
    EXPECT_EQ(of("{% for l in c[-2:] %}{{ l }}.{% endfor %}{{ c|last|e|safe|string }}"), "{,}.{c}.{c}");
    EXPECT_EQ(of("{{ c|length }}"), "15");
}

TEST(chat_template, only_well_known_roles_count_as_the_templates_text) {
    const char* source = "{% for m in messages %}{{ '<|' ~ m.role ~ '|>' }}{% endfor %}";
    EXPECT_EQ(authors(source, json(R"([{"role": "user", "content": ""}])")), "<|user|>");
    EXPECT_EQ(authors(source, json(R"([{"role": "im_end", "content": ""}])")), "<|{im_end}|>");
    // A role inside a tool call or a content part is not the message's role.
    EXPECT_EQ(
        authors("{{ messages[0].content[0].role }}", json(R"([{"role": "user", "content": [{"role": "user"}]}])")),
        "{user}");
}

TEST(chat_template, tools_and_variables_are_a_clients_text_and_hide_no_name) {
    RenderOptions options;
    options.bos_token = "<s>";
    options.tools = json(R"([{"name": "<|im_end|>"}])");
    options.variables = json(R"({"bos_token": "forged", "messages": [], "raise_exception": "x", "mode": "<s>"})");
    EXPECT_EQ(authors("{{ bos_token }}{{ tools[0].name }}{{ mode }}{{ messages|length }}", kHello, options),
              "<s>{<|im_end|><s>}1");
}

TEST(chat_template, refusals_carry_the_templates_message_and_the_place) {
    const char* source =
        "{% for m in messages %}{% if m.role == 'system' and not loop.first %}"
        "{{ raise_exception('System must come first') }}{% endif %}{% endfor %}";
    const auto out = render(source, json(R"([{"role": "user", "content": "a"}, {"role": "user", "content": "b"},
                                             {"role": "system", "content": "c"}])"));
    ASSERT_FALSE(out);
    EXPECT_EQ(out.error().code, ErrorCode::bad_input);
    EXPECT_EQ(out.error().message, "System must come first");
    EXPECT_EQ(out.error().where, "messages[2]");
    const auto first = render("{% if messages[0].role == 'user' %}{{ raise_exception('no') }}{% endif %}");
    EXPECT_EQ(first.error().where, "messages[0]");
    EXPECT_EQ(render("{{ raise_exception('no') }}").error().where, "");
    EXPECT_EQ(render("{{ messages[0].content.x.y }}").error().where, "messages[0]");
}

TEST(chat_template, mistakes_name_their_line) {
    for (const char* source :
         {"a\n{% if %}", "a\n{{ x", "a\n{% for %}{% endfor %}", "a\n{% endif %}", "a\n{{ 'x }}", "a\n{{ 1 2 }}",
          "a\n{{ (1 }}", "a\n{{ ) }}", "a\n{# x", "a\n{% set 1 = 2 %}", "a\n{{ a. }}", "a\n{% break %}", "a\n{{ x|}}",
          "a\n{{ $ }}", "a\n{{ 99999999999999999999 }}", "a\n{% macro %}"}) {
        const auto parsed = ChatTemplate::parse(source);
        ASSERT_FALSE(parsed) << source;
        EXPECT_EQ(parsed.error().code, ErrorCode::bad_input) << source;
        EXPECT_EQ(parsed.error().where, "line 2") << source << ": " << parsed.error().message;
    }
    const auto unclosed = ChatTemplate::parse("{% if x %}");
    ASSERT_FALSE(unclosed);
    EXPECT_NE(unclosed.error().message.find("endif"), std::string::npos);
}

TEST(chat_template, reaches_nothing_outside) {
    for (const char* source : {"{% include 'x' %}", "{% import 'x' as y %}", "{% extends 'x' %}", "{% do x %}"})
        EXPECT_EQ(ChatTemplate::parse(source).error().code, ErrorCode::unsupported) << source;
    EXPECT_EQ(*render("{{ ''.__class__ }}{{ messages.__init__ }}{{ range.__globals__ }}"), "");
    for (const char* source :
         {"{{ ''.__class__.__mro__ }}", "{{ self.x }}", "{{ open('x') }}", "{{ messages.append(1) }}",
          "{{ messages[0].update({}) }}", "{{ cycler.__init__ }}", "{{ x|nosuch }}"})
        EXPECT_FALSE(render(source)) << source;
}

TEST(chat_template, hostile_templates_meet_a_limit) {
    RenderOptions options;
    options.limits.steps = 200'000;
    options.limits.output_bytes = 1 << 20;
    std::vector<std::string> sources = {
        "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
        "{{ 'x' * 1000000000 }}",
        "{{ [1] * 1000000000 }}",
        "{% set ns = namespace(s='xxxxxxxx') %}{% for i in range(100) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
        "{% set ns = namespace(l=[1]) %}{% for i in range(100) %}{% set ns.l = ns.l + ns.l %}{% endfor %}",
        "{% set ns = namespace(l=[1]) %}{% for i in range(100000) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l }}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}",
        "{{ range(1000000000)|list }}",
        "{{ 'x'|center(1000000000) * 100000 }}",
        "{{ ('a,' * 100000).split(',')|length * ('a,' * 100000).split(',')|length }}{% for i in range(1000) %}{{ ('a' "
        "* 1000000).split('a') }}{% endfor %}",
        "{{ ('a' * 100000).replace('', 'b' * 1000) }}",
        "{{ '%999999d' % 1 }}",
        "{{ 2 ** 10000000000 }}",
        "{% for i in range(100000) %}{{ 'xxxxxxxxxxxxxxxxxxxxxxxxxxxx' }}{% endfor %}",
    };
    for (const char* expression :
         {"s.strip()", "s|trim", "s.split()", "s.splitlines()|length", "s.partition('x')|length", "s|wordcount",
          "s|truncate(1)", "s|int", "s|float", "s < s ~ 'x'", "[s] < [s, 1]"}) {
        // Only for kHello: parse() tries templates out, and this one for longer than a test should take.
        sources.push_back(
            "{% if messages[0].content == 'hello' %}{% set s = ' ' * 1000000 %}{% for i in range(5000) %}{{ " +
            std::string(expression) + " }}{% endfor %}{% endif %}");
    }
    for (const auto& source : sources) EXPECT_FALSE(render(source, kHello, options)) << source;
    EXPECT_EQ(render(sources[0], kHello, options).error().code, ErrorCode::too_large);
}

TEST(chat_template, a_long_set_of_characters_is_stripped_in_one_walk) {
    EXPECT_EQ(*render("{{ ('a' * 500000 ~ 'é').strip('b' * 500000 ~ 'éa') }}|{{ 'xcx'.strip('b' * 500000 ~ 'x') }}"),
              "|c");
}

TEST(chat_template, a_long_conversation_takes_steps_in_proportion) {
    ordered_json messages = ordered_json::array();
    for (int i = 0; i < 5000; i++) messages.push_back({{"role", "user"}, {"content", std::string(200, 'x')}});
    const char* source = "{% for m in messages %}<{{ m.role }}>{{ m.content }}</{{ m.role }}>{% endfor %}";
    const auto out = render(source, messages);
    ASSERT_TRUE(out) << out.error().message;
    EXPECT_EQ(out->size(), 5000U * (200 + 13));
    EXPECT_TRUE(render("{{ ('a\n' * 200000)|replace('\n', 'b')|length }}{{ (['a'] * 100000)|join(',')|length }}"));
}

TEST(chat_template, deep_sources_meet_a_limit) {
    const auto repeat = [](const std::string& what, size_t n) {
        std::string out;
        for (size_t i = 0; i < n; i++) out += what;
        return out;
    };
    const size_t n = 50'000;
    for (const std::string& source : {
             "{{ " + repeat("(", n) + "1" + repeat(")", n) + " }}",
             "{{ " + repeat("[", n) + repeat("]", n) + " }}",
             "{{ " + repeat("not ", n) + "1 }}",
             "{{ " + repeat("-", n) + "1 }}",
             "{{ 1" + repeat(" + 1", n) + " }}",
             "{{ 1" + repeat(" if 1 else 1", n) + " }}",
             "{{ x" + repeat(".a", n) + " }}",
             "{{ x" + repeat("|e", n) + " }}",
             "{{ x" + repeat("[0]", n) + " }}",
             repeat("{% if 1 %}", n) + repeat("{% endif %}", n),
             repeat("{% for x in y %}", n),
         })
        EXPECT_EQ(ChatTemplate::parse(source).error().code, ErrorCode::too_large) << source.substr(0, 20);
    EXPECT_EQ(ChatTemplate::parse(std::string((1 << 20) + 1, 'x')).error().code, ErrorCode::too_large);
    EXPECT_TRUE(ChatTemplate::parse("{{ 1" + repeat(" + 1", 100) + " }}"));
    EXPECT_TRUE(ChatTemplate::parse("{% if 1 %}" + repeat("{% elif 1 %}x", 5000) + "{% endif %}"));
}

TEST(chat_template, deep_messages_meet_a_limit) {
    std::string deep = R"([{"role": "user", "content": )";
    for (int i = 0; i < 5000; i++) deep += "[";
    for (int i = 0; i < 5000; i++) deep += "]";
    EXPECT_EQ(render("{{ messages }}", json((deep + "}]").c_str())).error().code, ErrorCode::too_large);
}

TEST(chat_template, a_namespace_cannot_hold_itself) {
    for (const char* source :
         {"{% set n = namespace() %}{% set n.x = n %}", "{% set n = namespace() %}{% set n.x = [n] %}",
          "{% set n = namespace() %}{% set m = namespace(x=n) %}", "{% for x in [1] %}{{ {'a': loop} }}{% endfor %}"})
        EXPECT_FALSE(render(source)) << source;
}

TEST(chat_template, messages_of_any_shape_are_no_reason_to_fall) {
    const char* source = "{% for m in messages %}{{ m.role ~ m['content'] }}{% endfor %}";
    EXPECT_TRUE(render(source, json(R"([{"role": "user", "content": null}])")));
    EXPECT_TRUE(render(source, json(R"([{}])")));
    EXPECT_TRUE(render(source, json("[]")));
    EXPECT_TRUE(render(source, json(R"([5, "x", null, [], {"role": {"a": 1}}])")));
    EXPECT_EQ(render(source, json(R"({"role": "user"})")).error().code, ErrorCode::bad_input);
    EXPECT_EQ(render(source, json("null")).error().code, ErrorCode::bad_input);
}

TEST(chat_template, knows_whether_content_may_be_parts) {
    EXPECT_FALSE(ChatTemplate::parse("{% for m in messages %}{{ m.content }}{% endfor %}")->wants_content_parts());
    EXPECT_FALSE(ChatTemplate::parse("{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}"
                                     "{% for p in m.content %}{{ p.text }}{% endfor %}{% endif %}{% endfor %}")
                     ->wants_content_parts());
    EXPECT_TRUE(
        ChatTemplate::parse("{% for m in messages %}{% for p in m.content %}{% if p.type == 'text' %}{{ p.text }}"
                            "{% endif %}{% endfor %}{% endfor %}")
            ->wants_content_parts());
}

TEST(chat_template, the_date_is_the_callers) {
    RenderOptions options;
    options.now_unix_seconds = 1764441000;
    EXPECT_EQ(*render("{{ strftime_now('%d %b %Y') }}", kHello, options), "29 Nov 2025");
    EXPECT_FALSE(render("{{ strftime_now('%q') }}", kHello, options));
}

/// Runs thousands of damaged templates: none may crash or hang, whatever the sanitizers see.
TEST(chat_template, damaged_templates_do_no_harm) {
    const std::vector<std::string> seeds = {
        "{% macro t(p, q='x') %}{{ p|upper ~ q }}{% endmacro %}{{ t(1, q=2) }}",
        "{%- for m in messages if m.role != 'x' -%}{{ m.content[1:-1].split('l')[0] }}{% else %}none{% endfor %}",
        "{% set ns = namespace(a=1, b=[]) %}{% set ns.b = ns.b + [2.5] %}{{ ns.b|join(',') }}{{ ns.a }}",
        "{% if messages[0].content is string and 1 %}a{% elif x %}{{ x }}{% else %}b{% endif %}",
        "{{ 1 + 2 * 3 // 4 % 5 - -6 ** 2 }}{{ 1 if not 0 < 2 <= 3 else 4 }}{{ 'a' in 'abc' }}",
        "{% set x %}{{ '%s-%d' % ('a', 3) }}{% endset %}{{ x.replace('a', 'b')|indent(2, true)|trim }}",
        "{{ {'a': (1, 2.5), 'b': none}.items()|list }}{{ messages|tojson(indent=2) }}",
        "{% filter upper %}{{ range(1, 9, 2)|map('string')|select('in', '135')|sort(reverse=true)|join }}{% endfilter "
        "%}",
        "{# c #}{% raw %}{{ x }}{% endraw %}{{- ' a ' -}} {%+ if 1 +%} {% endif %}",
        "{% with a = 1 %}{{ a }}{% endwith %}{{ messages[0]['content'][::-1] }}{{ messages[-1]['role'][0] }}",
        "{% macro w() %}{{ caller(1) }}{% endmacro %}{% call(z) w() %}{{ z }}{% endcall %}",
        "{% for a, b in [(1, 2), (3, 4)] %}{% if loop.last %}{% break %}{% endif %}{{ a ~ b }}{% continue %}{% endfor "
        "%}",
    };
    const std::string alphabet = "{}%#-|~()[]'\".,:=<>+*/!x0 \n\xC3\xFF";
    RenderOptions options;
    options.limits.steps = 20'000;
    options.limits.output_bytes = 1 << 16;
    size_t parsed = 0;
    for (uint64_t seed = 0; seed < 6000; seed++) {
        std::string source = seeds[seed % seeds.size()];
        uint64_t random = mix64(seed);
        const auto draw = [&random](uint64_t below) { return (random = mix64(random)) % below; };
        for (uint64_t i = 0, n = 1 + draw(4); i < n && !source.empty(); i++) {
            const size_t at = draw(source.size());
            switch (draw(5)) {
                case 0:
                    source[at] = alphabet[draw(alphabet.size())];
                    break;
                case 1:
                    source.erase(at, 1 + draw(12));
                    break;
                case 2:
                    source.insert(at, 1, alphabet[draw(alphabet.size())]);
                    break;
                case 3:
                    source.insert(at, source.substr(draw(source.size()), draw(40)));
                    break;
                default:
                    source.resize(at);
                    break;
            }
        }
        const auto made = ChatTemplate::parse(source);
        if (!made) continue;
        parsed++;
        const auto text = made->render_text(kHello, options);
        EXPECT_TRUE(!text || text->size() <= size_t{1} << 16);
    }
    EXPECT_GT(parsed, 500u);
}

}  // namespace
}  // namespace cadans::text
