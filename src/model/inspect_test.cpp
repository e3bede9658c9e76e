#include "model/inspect.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "model/safe_open.h"
#include "model/testing/tiny_model.h"
#include "model/weights.h"

namespace cadans::model {
namespace {

using testing::Bytes;
using testing::GgufWriter;
using testing::tiny_model;

/// A file with these bytes, gone afterwards.
class TempFile {
  public:
    explicit TempFile(const Bytes& bytes)
        : path_(::testing::TempDir() + "/cadans_" + std::to_string(::getpid()) + "_inspect_test.gguf") {
        std::ofstream(path_, std::ios::binary)
            .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    }
    ~TempFile() { std::filesystem::remove(path_); }
    const std::string& path() const { return path_; }

  private:
    std::string path_;
};

TEST(inspect, says_what_a_file_holds_and_that_it_would_run) {
    const TempFile file(tiny_model({.family = "gemma3", .type = TensorType::q8_0}).bytes());
    const InspectReport report = inspect(file.path());
    ASSERT_FALSE(report.obstacle.has_value()) << report.obstacle->message;
    EXPECT_EQ(report.exit_code(), 0);
    EXPECT_TRUE(report.notes.empty());
    ASSERT_EQ(report.tensor_types.size(), 2U);
    EXPECT_EQ(report.tensor_types[0].type, "Q8_0");
    EXPECT_EQ(report.tensor_types[0].tensors, 15U);
    const std::string text = to_text(report);
    for (const char* part :
         {"gemma3", "Q8_0", "window of 32", "Would run   yes", "tokenizer.ggml.tokens", "(48 items)"})
        EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
    const auto json = to_json(report);
    EXPECT_TRUE(json["would_run"].get<bool>());
    EXPECT_TRUE(json["reason"].is_null());
    EXPECT_EQ(json["model"]["layers"], 2);
    EXPECT_GT(json["memory"]["weights_bytes"].get<uint64_t>(), 0U);
}

TEST(inspect, tells_the_reason_when_it_would_not_run) {
    GgufWriter writer = tiny_model();
    writer.remove("general.architecture");
    writer.text("general.architecture", "mamba");
    const TempFile file(writer.bytes());
    const InspectReport report = inspect(file.path());
    EXPECT_EQ(report.exit_code(), 1);
    EXPECT_NE(to_text(report).find("'mamba' are not supported"), std::string::npos);
    EXPECT_FALSE(report.metadata.empty()) << "what could be read is shown";
    EXPECT_FALSE(to_json(report)["would_run"].get<bool>());
}

TEST(inspect, refuses_what_is_no_model_file) {
    const std::string_view words = "once upon a time";
    const auto bytes = std::as_bytes(std::span(words));
    const TempFile file(Bytes(bytes.begin(), bytes.end()));
    EXPECT_EQ(inspect(file.path()).exit_code(), 1);
    EXPECT_EQ(inspect("/nowhere/at/all.gguf").exit_code(), 1);
    EXPECT_EQ(inspect("/tmp").exit_code(), 1);
    EXPECT_EQ(inspect("").exit_code(), 1);
}

TEST(inspect, notes_that_a_base_model_has_no_chat) {
    GgufWriter writer = tiny_model();
    writer.remove("tokenizer.chat_template");
    const TempFile file(writer.bytes());
    const InspectReport report = inspect(file.path());
    EXPECT_EQ(report.exit_code(), 0);
    ASSERT_EQ(report.notes.size(), 1U);
    EXPECT_NE(report.notes[0].find("no chat template"), std::string::npos);
}

TEST(inspect, shows_a_terminal_nothing_but_text) {
    GgufWriter writer = tiny_model();
    writer.text("general.author", "\x1b[2J\x1b[31mred\nline\x7f").text("odd\x1bkey", std::string(500, 'x') + "\xFF");
    const TempFile file(writer.bytes());
    const std::string text = to_text(inspect(file.path()));
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
    EXPECT_EQ(text.find('\x7f'), std::string::npos);
    EXPECT_NE(text.find("(501 bytes)"), std::string::npos);
}

/// A file that says it holds huge matrices, and has the length for them, all of it a hole.
TEST(inspect, refuses_a_model_larger_than_memory_with_both_numbers) {
    GgufWriter writer = tiny_model({.layers = 1});
    for (auto& tensor : writer.tensors) tensor.data.clear();
    const auto scale = [&](std::string_view name, size_t dim, uint64_t n) { writer.find_tensor(name)->dims[dim] = n; };
    constexpr uint64_t kWidth = 65'536, kFfn = 1'048'576;
    writer.replace_u32("llama.embedding_length", kWidth);
    writer.replace_u32("llama.feed_forward_length", kFfn);
    for (const char* name : {"token_embd.weight", "output_norm.weight", "blk.0.attn_norm.weight", "blk.0.attn_q.weight",
                             "blk.0.attn_k.weight", "blk.0.attn_v.weight", "blk.0.ffn_norm.weight",
                             "blk.0.ffn_gate.weight", "blk.0.ffn_up.weight"})
        scale(name, 0, kWidth);
    scale("blk.0.attn_output.weight", 1, kWidth);
    scale("blk.0.ffn_down.weight", 1, kWidth);
    scale("blk.0.ffn_down.weight", 0, kFfn);
    scale("blk.0.ffn_gate.weight", 1, kFfn);
    scale("blk.0.ffn_up.weight", 1, kFfn);
    uint64_t offset = 0;
    for (auto& tensor : writer.tensors) {
        tensor.offset = offset;
        uint64_t bytes = 4;
        for (const uint64_t dim : tensor.dims) bytes *= dim;
        offset += (bytes + 31) / 32 * 32;
    }
    const TempFile file(writer.bytes());
    std::error_code failed;
    std::filesystem::resize_file(file.path(), std::filesystem::file_size(file.path()) + offset, failed);
    if (failed) GTEST_SKIP() << "this file system has no room for holes: " << failed.message();
    const InspectReport report = inspect(file.path());
    ASSERT_TRUE(report.obstacle.has_value());
    EXPECT_EQ(report.obstacle->code, ErrorCode::no_memory) << report.obstacle->message;
    EXPECT_NE(report.obstacle->message.find("GiB of memory, but only"), std::string::npos) << report.obstacle->message;
    EXPECT_EQ(report.exit_code(), 1);

    auto gguf = GgufFile::open(file.path());
    ASSERT_TRUE(gguf.has_value());
    ThreadPool pool(1);
    auto loaded = Model::load(*gguf, read_spec(*gguf).value(), pool);
    ASSERT_FALSE(loaded.has_value());
    EXPECT_EQ(loaded.error().code, ErrorCode::no_memory);
}

TEST(safe_open, gives_all_that_loading_needs) {
    const TempFile file(tiny_model().bytes());
    auto opened = safe_open(file.path());
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    EXPECT_EQ(opened->spec.vocab, opened->vocabulary.tokens.size());
    EXPECT_EQ(opened->vocabulary.merges.size(), 4U);
    ASSERT_EQ(opened->templates.size(), 1U);
    EXPECT_EQ(opened->templates[0].name, "");
}

TEST(safe_open, gives_the_same_error_as_reading_here) {
    GgufWriter writer = tiny_model();
    writer.version = 9;
    const TempFile file(writer.bytes());
    auto here = GgufFile::open(file.path());
    auto there = safe_open(file.path());
    ASSERT_FALSE(there.has_value());
    EXPECT_EQ(there.error().code, here.error().code);
    EXPECT_EQ(there.error().message, here.error().message);
    EXPECT_EQ(there.error().where, here.error().where);
}

// Contract 14: the vocabulary is checked before the server sees it.
TEST(safe_open, refuses_a_special_token_that_does_not_exist) {
    GgufWriter writer = tiny_model();
    writer.replace_u32("tokenizer.ggml.eos_token_id", 48);
    const TempFile file(writer.bytes());
    auto opened = safe_open(file.path());
    ASSERT_FALSE(opened.has_value());
    EXPECT_NE(opened.error().message.find("token 48 does not exist"), std::string::npos) << opened.error().message;
}

}  // namespace
}  // namespace cadans::model
