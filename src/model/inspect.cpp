#include "model/inspect.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "model/byte_cursor.h"
#include "model/safe_open.h"
#include "model/spec_reader.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace cadans::model {
namespace {

constexpr size_t kItemsShown = 6;
constexpr size_t kTextShown = 120;

/// Line ends as people write them in code; they would break the table.
std::string one_line(std::string_view text) {
    std::string line;
    for (const char c : text) line += c == '\n' ? std::string("\\n") : std::string(1, c);
    return printable(line);
}

std::string quoted(std::string_view text) {
    if (text.size() <= kTextShown) return fmt::format("\"{}\"", one_line(text));
    size_t cut = kTextShown;
    while (cut > 0 && (static_cast<uint8_t>(text[cut]) & 0xC0) == 0x80) --cut;
    return fmt::format("\"{}\"… ({} bytes)", one_line(text.substr(0, cut)), text.size());
}

template <class Items, class Show>
std::string listed(const Items& items, const Show& show) {
    std::string shown;
    for (size_t i = 0; i < std::min(items.size(), kItemsShown); ++i) shown += (i == 0 ? "" : ", ") + show(items[i]);
    const bool more = items.size() > kItemsShown;
    return fmt::format("[{}{}]{}", shown, more ? ", …" : "", more ? fmt::format(" ({} items)", items.size()) : "");
}

std::string array_value(const GgufFile& file, const GgufEntry& entry) {
    if (entry.element == GgufType::string) {
        const auto items = file.texts(entry.key);
        return items ? listed(**items, [](std::string_view text) { return quoted(text); }) : items.error().message;
    }
    if (entry.element == GgufType::f32 || entry.element == GgufType::f64) {
        const auto items = file.numbers(entry.key);
        return items ? listed(**items, [](float x) { return fmt::format("{}", x); }) : items.error().message;
    }
    if (entry.element == GgufType::array) return fmt::format("({} arrays)", entry.count);
    const auto items = file.integers(entry.key);
    return items ? listed(**items, [](int64_t n) { return fmt::format("{}", n); }) : items.error().message;
}

std::string scalar_value(const GgufFile& file, const GgufEntry& entry) {
    ByteCursor at(entry.payload);
    switch (entry.type) {
        case GgufType::string:
            return quoted(as_text(entry.payload));
        case GgufType::boolean:
            return at.read<uint8_t>().value_or(0) != 0 ? "true" : "false";
        case GgufType::f32:
            return fmt::format("{}", at.read<float>().value_or(0));
        case GgufType::f64:
            return fmt::format("{}", at.read<double>().value_or(0));
        case GgufType::i8:
            return fmt::format("{}", static_cast<int>(at.read<int8_t>().value_or(0)));
        case GgufType::i16:
            return fmt::format("{}", at.read<int16_t>().value_or(0));
        case GgufType::i32:
            return fmt::format("{}", at.read<int32_t>().value_or(0));
        case GgufType::i64:
            return fmt::format("{}", at.read<int64_t>().value_or(0));
        case GgufType::array:
            return array_value(file, entry);
        case GgufType::u8:
            return fmt::format("{}", static_cast<unsigned>(at.read<uint8_t>().value_or(0)));
        case GgufType::u16:
            return fmt::format("{}", at.read<uint16_t>().value_or(0));
        case GgufType::u32:
            return fmt::format("{}", at.read<uint32_t>().value_or(0));
        case GgufType::u64:
            return fmt::format("{}", at.read<uint64_t>().value_or(0));
    }
    return {};
}

void describe_file(const GgufFile& file, InspectReport& report) {
    report.size_bytes = file.size_bytes();
    report.version = file.version();
    for (const GgufEntry& entry : file.metadata()) {
        const std::string type = entry.type == GgufType::array
                                     ? fmt::format("array of {}", gguf_type_name(entry.element))
                                     : std::string(gguf_type_name(entry.type));
        report.metadata.push_back({printable(entry.key), type, scalar_value(file, entry)});
    }
    std::map<TensorType, TensorTypeLine> by_type;
    for (const GgufTensor& tensor : file.tensors()) {
        TensorTypeLine& line = by_type[tensor.type];
        line.tensors += 1;
        line.bytes += tensor.payload.size();
    }
    for (auto& [type, line] : by_type) {
        line.type = tensor_type_info(type).name;
        line.runnable = tensor_type_info(type).runnable;
        report.tensor_types.push_back(line);
    }
    std::ranges::stable_sort(report.tensor_types, std::ranges::greater(), &TensorTypeLine::bytes);
}

/// The first thing that would stop the model from running, beyond what reading the file finds.
std::optional<Error> describe_model(const GgufFile& file, InspectReport& report) {
    auto spec = read_spec(file);
    if (!spec) return std::move(spec).error();
    report.memory = estimate_memory(*spec, file);
    report.spec = *std::move(spec);
    auto data = read_vocabulary(file);
    if (!data) return std::move(data).error();
    auto vocabulary = text::Vocabulary::make(*std::move(data));
    if (!vocabulary) return std::move(vocabulary).error();
    auto tokenizer = text::Tokenizer::make(*std::move(vocabulary));
    if (!tokenizer) return std::move(tokenizer).error();
    auto templates = read_templates(file);
    if (!templates) return std::move(templates).error();
    if (templates->empty())
        report.notes.push_back("no chat template: completions only, unless --chat-template is given");
    for (const TemplateSource& each : *templates) {
        const auto parsed = text::ChatTemplate::parse(each.source);
        if (!parsed)
            report.notes.push_back(
                fmt::format("chat template '{}' cannot be used: {}", printable(each.name), parsed.error().message));
    }
    Status fits = check_fits(*report.memory, report.available, file.name());
    if (!fits) return std::move(fits).error();
    return std::nullopt;
}

}  // namespace

int InspectReport::exit_code() const noexcept {
    if (!obstacle) return 0;
    return obstacle->code == ErrorCode::internal ? 70 : 1;
}

InspectReport inspect(const std::string& path) {
    InspectReport report;
    report.path = path;
    report.available = available_memory();
    Status vetted = vet_model(path);
    if (!vetted) report.obstacle = vetted.error();
    // What killed a child is not read here.
    if (report.exit_code() == 70) return report;
    auto file = GgufFile::open(path);
    if (!file) {
        if (!report.obstacle) report.obstacle = file.error();
        return report;
    }
    describe_file(*file, report);
    auto obstacle = describe_model(*file, report);
    if (!report.obstacle) report.obstacle = std::move(obstacle);
    return report;
}

}  // namespace cadans::model
