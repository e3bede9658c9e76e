#include "model/gguf.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <limits>

#include "model/testing/gguf_writer.h"

namespace cadans::model {
namespace {

using testing::Bytes;
using testing::ByteWriter;
using testing::GgufWriter;

GgufWriter small_file() {
    GgufWriter file;
    file.text("general.architecture", "llama").u32("llama.block_count", 2).f32("llama.eps", 1e-5F);
    file.flag("yes", true).texts("words", {"a", "", "ccc"}).array<float>("scores", GgufType::f32, {1.0F, -2.5F});
    file.array<int32_t>("types", GgufType::i32, {3, -1});
    file.tensor("a.weight", {4, 3}, TensorType::f32, Bytes(48));
    file.tensor("b.weight", {32}, TensorType::q8_0, Bytes(34));
    return file;
}

/// The error that parsing gives; fails the test when it succeeds.
Error refusal(const Bytes& bytes) {
    auto file = GgufFile::parse(bytes, "t.gguf");
    EXPECT_FALSE(file.has_value());
    return file ? Error{} : file.error();
}

void expect_refused(const Bytes& bytes, std::string_view message_part, std::string_view where_part,
                    ErrorCode code = ErrorCode::bad_input) {
    const Error error = refusal(bytes);
    EXPECT_EQ(error.code, code) << error.message;
    EXPECT_NE(error.message.find(message_part), std::string::npos) << error.message;
    EXPECT_NE(error.where.find(where_part), std::string::npos) << error.where;
    EXPECT_NE(error.where.find("at byte "), std::string::npos) << error.where;
    EXPECT_TRUE(error.message.starts_with("t.gguf: ")) << error.message;
}

void expect_refused(const GgufWriter& file, std::string_view message_part, std::string_view where_part,
                    ErrorCode code = ErrorCode::bad_input) {
    expect_refused(file.bytes(), message_part, where_part, code);
}

TEST(gguf, reads_what_was_written) {
    const Bytes bytes = small_file().bytes();
    auto file = GgufFile::parse(bytes, "t.gguf");
    ASSERT_TRUE(file.has_value()) << file.error().message;
    EXPECT_EQ(file->version(), 3U);
    EXPECT_EQ(**file->text("general.architecture"), "llama");
    EXPECT_EQ(**file->count("llama.block_count"), 2U);
    EXPECT_FLOAT_EQ(static_cast<float>(**file->number("llama.eps")), 1e-5F);
    EXPECT_TRUE(**file->flag("yes"));
    EXPECT_EQ(**file->texts("words"), (std::vector<std::string_view>{"a", "", "ccc"}));
    EXPECT_EQ(**file->numbers("scores"), (std::vector<float>{1.0F, -2.5F}));
    EXPECT_EQ(**file->integers("types"), (std::vector<int64_t>{3, -1}));
    ASSERT_EQ(file->tensors().size(), 2U);
    const GgufTensor* const a = file->tensor("a.weight");
    ASSERT_NE(a, nullptr);
    EXPECT_EQ(a->rows(), 3U);
    EXPECT_EQ(a->row_bytes(), 16U);
    EXPECT_EQ(format_dims(*a), "4 x 3");
    EXPECT_EQ(a->offset % 32, 0U);
    EXPECT_EQ(file->tensor("b.weight")->payload.size(), 34U);
    EXPECT_EQ(file->tensor("c.weight"), nullptr);
}

TEST(gguf, reads_version_2_too) {
    GgufWriter file = small_file();
    file.version = 2;
    const Bytes bytes = file.bytes();
    EXPECT_TRUE(GgufFile::parse(bytes, "t.gguf").has_value());
}

TEST(gguf, an_absent_key_is_no_error) {
    const Bytes bytes = small_file().bytes();
    auto file = GgufFile::parse(bytes, "t.gguf");
    EXPECT_FALSE(file->count("nothing")->has_value());
    EXPECT_FALSE(file->text("nothing")->has_value());
    EXPECT_FALSE(file->texts("nothing")->has_value());
    EXPECT_FALSE(file->layer_counts("nothing", 3)->has_value());
}

TEST(gguf, a_key_of_another_type_is_an_error_with_both_types) {
    const Bytes bytes = small_file().bytes();
    auto file = GgufFile::parse(bytes, "t.gguf");
    for (const Error& error :
         {file->count("general.architecture").error(), file->number("llama.block_count").error(),
          file->text("yes").error(), file->flag("words").error(), file->texts("scores").error(),
          file->numbers("types").error(), file->integers("words").error(), file->layer_counts("words", 3).error()}) {
        EXPECT_NE(error.message.find("expected "), std::string::npos) << error.message;
        EXPECT_NE(error.message.find(", found "), std::string::npos) << error.message;
        EXPECT_NE(error.where.find("at byte"), std::string::npos);
    }
}

TEST(gguf, counts_may_be_any_integer_but_not_negative) {
    GgufWriter file;
    file.scalar<uint64_t>("u64", GgufType::u64, 7).scalar<int32_t>("i32", GgufType::i32, 8);
    file.scalar<uint16_t>("u16", GgufType::u16, 9).scalar<int64_t>("neg", GgufType::i64, -1);
    file.scalar<uint64_t>("huge", GgufType::u64, UINT64_MAX);
    const Bytes bytes = file.bytes();
    auto parsed = GgufFile::parse(bytes, "t.gguf");
    EXPECT_EQ(**parsed->count("u64"), 7U);
    EXPECT_EQ(**parsed->count("i32"), 8U);
    EXPECT_EQ(**parsed->count("u16"), 9U);
    EXPECT_FALSE(parsed->count("neg").has_value());
    EXPECT_FALSE(parsed->count("huge").has_value());
}

TEST(gguf, a_count_for_each_layer_is_one_number_or_as_many_as_layers) {
    GgufWriter file;
    file.u32("one", 5)
        .array<uint32_t>("three", GgufType::u32, {1, 2, 3})
        .array<int32_t>("neg", GgufType::i32, {1, -2, 3});
    const Bytes bytes = file.bytes();
    auto parsed = GgufFile::parse(bytes, "t.gguf");
    EXPECT_EQ(**parsed->layer_counts("one", 2), (std::vector<uint64_t>{5, 5}));
    EXPECT_EQ(**parsed->layer_counts("three", 3), (std::vector<uint64_t>{1, 2, 3}));
    EXPECT_FALSE(parsed->layer_counts("three", 2).has_value());
    EXPECT_FALSE(parsed->layer_counts("neg", 3).has_value());
}

TEST(gguf, refuses_numbers_that_are_not_finite) {
    GgufWriter file;
    file.f32("nan", std::numeric_limits<float>::quiet_NaN());
    file.array<float>("inf", GgufType::f32, {1.0F, std::numeric_limits<float>::infinity()});
    const Bytes bytes = file.bytes();
    auto parsed = GgufFile::parse(bytes, "t.gguf");
    EXPECT_FALSE(parsed->number("nan").has_value());
    EXPECT_FALSE(parsed->numbers("inf").has_value());
}

// Contract 1: exact magic, version and byte order.
TEST(gguf, refuses_other_kinds_of_files_by_name) {
    const auto of = [](std::string_view text) {
        const auto bytes = std::as_bytes(std::span(text));
        return Bytes(bytes.begin(), bytes.end());
    };
    expect_refused(of("hello, this is a text file"), "no GGUF file", "magic");
    expect_refused(of("G"), "no GGUF file", "magic");
    expect_refused(of(""), "no GGUF file", "magic");
    expect_refused(of("lmgg............"), "old GGML", "magic");
    expect_refused(of("PK\x03\x04........"), "zip archive", "magic");
    expect_refused(of("12345678{\"x\""), "safetensors", "magic");
    expect_refused(of("version https://git-lfs"), "Git LFS", "magic");
    expect_refused(of("<!DOCTYPE html>"), "web page", "magic");
}

TEST(gguf, refuses_other_versions_and_byte_orders) {
    GgufWriter file = small_file();
    file.version = 1;
    expect_refused(file, "versions 2 and 3", "version", ErrorCode::unsupported);
    file.version = 4;
    expect_refused(file, "versions 2 and 3", "version", ErrorCode::unsupported);
    file.version = 0;
    expect_refused(file, "versions 2 and 3", "version", ErrorCode::unsupported);
    file.version = 0x03000000;
    expect_refused(file, "big-endian", "version", ErrorCode::unsupported);
}

// Contract 2: every read is checked, so every truncation is refused.
TEST(gguf, refuses_a_file_cut_at_any_byte) {
    const Bytes whole = small_file().bytes();
    for (size_t n = 0; n < whole.size(); ++n) {
        const Bytes part(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(n));
        const Error error = refusal(part);
        EXPECT_FALSE(error.message.empty()) << n;
        EXPECT_NE(error.where.find("at byte "), std::string::npos) << n;
    }
}

// Contract 4: counts.
TEST(gguf, refuses_counts_that_the_file_has_no_room_for) {
    for (const uint64_t n : {uint64_t{1000}, uint64_t{0xFFFFFFFF}, UINT64_MAX, uint64_t{1} << 63}) {
        GgufWriter file = small_file();
        file.entry_count = n;
        expect_refused(file, "metadata keys; this file has room", "metadata_kv_count");
        file.entry_count.reset();
        file.tensor_count = n;
        expect_refused(file, "tensors; this file has room", "tensor_count");
    }
}

// Contract 5: keys.
TEST(gguf, refuses_bad_keys) {
    for (const auto& [key, part] :
         std::vector<std::pair<std::string, std::string>>{{"", "empty"},
                                                          {std::string(1025, 'k'), "1025 bytes"},
                                                          {std::string("a\0b", 3), "UTF-8"},
                                                          {"\xC0\xAF", "UTF-8"},
                                                          {"\xED\xA0\x80", "UTF-8"},
                                                          {"\xF5\x80\x80\x80", "UTF-8"},
                                                          {"\xE2\x82", "UTF-8"}}) {
        GgufWriter file = small_file();
        file.u32(key, 1);
        expect_refused(file, part, "metadata key 7");
    }
    GgufWriter file = small_file();
    file.u32(std::string(1024, 'k'), 1).u32("sch\xC3\xB6n \xF0\x9F\x98\x80", 1);
    const Bytes bytes = file.bytes();
    EXPECT_TRUE(GgufFile::parse(bytes, "t.gguf").has_value());
}

TEST(gguf, refuses_a_key_that_is_there_twice) {
    GgufWriter file = small_file();
    file.u32("llama.block_count", 3);
    expect_refused(file, "twice", "llama.block_count");
}

// Contract 6: strings.
TEST(gguf, refuses_texts_longer_than_allowed_or_than_the_file) {
    for (const uint64_t n : {uint64_t{1} << 40, UINT64_MAX, UINT64_MAX - 7, (uint64_t{1} << 20) + 1}) {
        GgufWriter file = small_file();
        file.entry("long").type = static_cast<uint32_t>(GgufType::string);
        file.entry("long").value = ByteWriter().put(n).bytes;
        expect_refused(file, "at most", "long");
    }
    GgufWriter file = small_file();
    file.text("general.description", std::string((1 << 20) + 1, 'x'));
    expect_refused(file, "at most 1048576", "general.description");
    file.remove("general.description");
    file.text("tokenizer.chat_template", std::string((1 << 20) + 1, 'x'));
    const Bytes bytes = file.bytes();
    EXPECT_TRUE(GgufFile::parse(bytes, "t.gguf").has_value()) << "templates may be longer";
}

// Contract 7: arrays.
TEST(gguf, refuses_arrays_that_the_file_has_no_room_for) {
    for (const auto element : {GgufType::u8, GgufType::f64, GgufType::string, GgufType::array})
        for (const uint64_t n : {uint64_t{1} << 30, UINT64_MAX, UINT64_MAX / 8 + 1}) {
            GgufWriter file = small_file();
            file.entry("many").type = static_cast<uint32_t>(GgufType::array);
            file.entry("many").value = ByteWriter().put(static_cast<uint32_t>(element)).put(n).bytes;
            expect_refused(file, "room for at most", "many");
        }
}

TEST(gguf, refuses_unknown_value_types) {
    GgufWriter file = small_file();
    file.entry("odd").type = 13;
    expect_refused(file, "value type 13", "odd");
    file.entry("odd").type = static_cast<uint32_t>(GgufType::array);
    file.entry("odd").value = ByteWriter().put(uint32_t{0xFFFFFFFF}).put(uint64_t{0}).bytes;
    expect_refused(file, "value type 4294967295", "odd");
}

TEST(gguf, refuses_deeply_nested_arrays_but_reads_shallow_ones) {
    const auto nested = [](int depth) {
        ByteWriter value;
        for (int i = 1; i < depth; ++i) value.put(static_cast<uint32_t>(GgufType::array)).put(uint64_t{1});
        return value.put(static_cast<uint32_t>(GgufType::u8)).put(uint64_t{1}).put(uint8_t{5}).bytes;
    };
    GgufWriter file = small_file();
    file.entry("deep").type = static_cast<uint32_t>(GgufType::array);
    file.entry("deep").value = nested(4);
    const Bytes bytes = file.bytes();
    EXPECT_TRUE(GgufFile::parse(bytes, "t.gguf").has_value());
    for (const int depth : {5, 6, 1000}) {
        file.entry("deep").value = nested(depth);
        expect_refused(file, "nested more than 4", "deep");
    }
}

TEST(gguf, refuses_a_bool_that_is_neither_0_nor_1) {
    GgufWriter file = small_file();
    file.scalar<uint8_t>("perhaps", GgufType::boolean, 2);
    expect_refused(file, "not 2", "perhaps");
}

// Contract 9: alignment.
TEST(gguf, refuses_a_bad_alignment) {
    for (const uint32_t n : {0U, 1U, 4U, 24U, 48U, 65'537U, 131'072U, 0xFFFFFFFFU}) {
        GgufWriter file = small_file();
        file.u32("general.alignment", n);
        expect_refused(file, "power of two from 8 to 65536", "general.alignment");
    }
    GgufWriter file = small_file();
    file.scalar<uint64_t>("general.alignment", GgufType::u64, 32);
    expect_refused(file, "expected u32, found u64", "general.alignment");
}

TEST(gguf, honours_other_alignments) {
    for (const uint32_t n : {8U, 64U, 4096U}) {
        GgufWriter file = small_file();
        file.u32("general.alignment", n);
        file.alignment = n;
        const Bytes bytes = file.bytes();
        auto parsed = GgufFile::parse(bytes, "t.gguf");
        ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
        EXPECT_EQ(parsed->data_offset() % n, 0U);
    }
}

// Contract 10: tensor names and dimensions.
TEST(gguf, refuses_bad_tensor_names) {
    for (const std::string& name :
         {std::string(), std::string(257, 'n'), std::string("a\0b", 3), std::string("\xFF")}) {
        GgufWriter file = small_file();
        file.tensor(name, {4}, TensorType::f32, Bytes(16));
        expect_refused(file, "name", "tensor 2");
    }
    GgufWriter file = small_file();
    file.tensor("a.weight", {4}, TensorType::f32, Bytes(16));
    expect_refused(file, "twice", "a.weight");
}

TEST(gguf, refuses_bad_dimensions) {
    const auto with = [](std::vector<uint64_t> dims) {
        GgufWriter file = small_file();
        file.tensor("c", std::move(dims), TensorType::f32, Bytes(16));
        return file;
    };
    expect_refused(with({}), "0 dimensions", "c");
    expect_refused(with({1, 1, 1, 1, 1}), "5 dimensions", "c");
    expect_refused(with({0}), "dimension 0 is 0", "c");
    expect_refused(with({4, 0}), "dimension 1 is 0", "c");
    expect_refused(with({uint64_t{1} << 48}), "2^48", "c");
    expect_refused(with({uint64_t{1} << 32, uint64_t{1} << 32}), "2^48", "c");
    expect_refused(with({UINT64_MAX, UINT64_MAX}), "2^48", "c");
    expect_refused(with({3, uint64_t{1} << 63, 2, 2}), "2^48", "c");
}

// Contract 11: tensor types.
TEST(gguf, refuses_unknown_tensor_types_naming_the_supported_ones) {
    for (const uint32_t type : {4U, 5U, 31U, 36U, 137U, 0xFFFFFFFFU}) {
        GgufWriter file = small_file();
        file.tensors[0].type = type;
        expect_refused(file, "supported are F32, F16", "a.weight", ErrorCode::unsupported);
    }
    GgufWriter file = small_file();
    file.tensors[0].type = 4;
    expect_refused(file, "Q4_2 (removed", "a.weight", ErrorCode::unsupported);
}

TEST(gguf, takes_types_it_cannot_run_into_the_table) {
    GgufWriter file = small_file();
    file.tensor("odd", {256}, TensorType::iq2_xxs, Bytes(66));
    const Bytes bytes = file.bytes();
    auto parsed = GgufFile::parse(bytes, "t.gguf");
    ASSERT_TRUE(parsed.has_value());
    EXPECT_EQ(parsed->tensor("odd")->payload.size(), 66U);
}

TEST(gguf, refuses_rows_that_are_no_whole_number_of_blocks) {
    GgufWriter file = small_file();
    file.tensor("c", {33}, TensorType::q8_0, Bytes(68));
    expect_refused(file, "do not divide into Q8_0 blocks of 32", "c");
}

// Contract 12: offsets.
TEST(gguf, refuses_offsets_outside_the_data_or_off_the_alignment) {
    GgufWriter file = small_file();
    file.tensors[1].offset = 65;
    expect_refused(file, "no multiple of the alignment 32", "b.weight");
    for (const uint64_t offset : {uint64_t{96}, uint64_t{1} << 40, UINT64_MAX - 31}) {
        file.tensors[1].offset = offset;
        expect_refused(file, "end beyond", "b.weight");
    }
}

TEST(gguf, refuses_tensors_that_overlap) {
    GgufWriter file = small_file();
    file.tensors[1].offset = 32;
    expect_refused(file, "overlap those of a.weight", "b.weight");
    file.tensors[1].offset = 0;
    expect_refused(file, "overlap", "weight");
}

// Contract 13: split files.
TEST(gguf, refuses_one_file_of_a_split_model_by_name) {
    GgufWriter file = small_file();
    file.scalar<uint16_t>("split.count", GgufType::u16, 3);
    expect_refused(file, "one of 3 files of a split model", "split.count", ErrorCode::unsupported);
    file.remove("split.count");
    file.text("split.count", "three");
    expect_refused(file, "expected a whole number", "split.count");
    file.remove("split.count");
    file.scalar<uint16_t>("split.count", GgufType::u16, 1);
    const Bytes bytes = file.bytes();
    EXPECT_TRUE(GgufFile::parse(bytes, "t.gguf").has_value());
}

TEST(gguf, reads_a_file_without_tensors) {
    GgufWriter file = small_file();
    file.tensors.clear();
    const Bytes bytes = file.bytes();
    EXPECT_TRUE(GgufFile::parse(bytes, "t.gguf").has_value());
}

TEST(gguf, opens_files_and_says_what_is_wrong_with_paths) {
    EXPECT_EQ(GgufFile::open("/nowhere/at/all.gguf").error().code, ErrorCode::not_found);
    EXPECT_NE(GgufFile::open("/tmp").error().message.find("directory"), std::string::npos);
    const std::string name = "cadans_gguf_test_" + std::to_string(::getpid()) + ".gguf";
    const std::string path = ::testing::TempDir() + "/" + name;
    const Bytes bytes = small_file().bytes();
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    auto file = GgufFile::open(path);
    ASSERT_TRUE(file.has_value()) << file.error().message;
    GgufFile moved = *std::move(file);
    EXPECT_EQ(**moved.text("general.architecture"), "llama");
    moved.release(moved.tensors()[0].payload);
    EXPECT_EQ(moved.name(), name);
    std::remove(path.c_str());
}

}  // namespace
}  // namespace cadans::model
