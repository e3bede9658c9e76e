#include "model/safe_open.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace cadans::model {
namespace {

Status read_everything(const std::string& path) {
    auto opened = open_model(path);
    if (!opened) return std::move(opened).error();
    auto vocabulary = text::Vocabulary::make(std::move(opened->vocabulary));
    if (!vocabulary) return std::move(vocabulary).error();
    auto tokenizer = text::Tokenizer::make(*std::move(vocabulary));
    if (!tokenizer) return std::move(tokenizer).error();
    // Parsed for the sake of the crash that would happen here rather than in the server.
    for (const TemplateSource& each : opened->templates) (void)text::ChatTemplate::parse(each.source).has_value();
    return Ok{};
}

}  // namespace

Result<OpenedModel> open_model(const std::string& path) {
    auto file = GgufFile::open(path);
    if (!file) return std::move(file).error();
    auto spec = read_spec(*file);
    if (!spec) return std::move(spec).error();
    auto vocabulary = read_vocabulary(*file);
    if (!vocabulary) return std::move(vocabulary).error();
    auto templates = read_templates(*file);
    if (!templates) return std::move(templates).error();
    return OpenedModel{*std::move(file), *std::move(spec), *std::move(vocabulary), *std::move(templates)};
}

Status vet_model(const std::string& path, const ChildLimits& limits) {
    // The file is mapped whole, and that counts as address space.
    std::error_code none;
    const auto mapped = std::filesystem::file_size(path, none);
    ChildLimits with_file = limits;
    if (!none) with_file.memory_bytes += mapped;
    return run_in_child([&] { return read_everything(path); }, fmt::format("the reader of {}", path), with_file);
}

Result<OpenedModel> safe_open(const std::string& path, const ChildLimits& limits) {
    Status vetted = vet_model(path, limits);
    if (!vetted) return std::move(vetted).error();
    return open_model(path);
}

}  // namespace cadans::model
