#include "metrics/explain.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <regex>
#include <set>

namespace cadans::metrics {
namespace {

constexpr Nanos kMs = kNanosPerMilli;
constexpr Language kAll[] = {Language::en, Language::nl, Language::de};

std::string text_of(const Explained& request, Language language, std::string_view about) {
    std::string out;
    for (const Sentence& sentence : explain(request, language))
        if (sentence.about == about) out += (out.empty() ? "" : " ") + sentence.text;
    return out;
}

/// A document of 5,812 tokens that waited a little for others, as a machine with 60 ms a step reads it.
Explained document() {
    Explained r;
    Figures& f = r.figures;
    f.prompt_tokens = f.computed_tokens = 5812;
    f.output_tokens = 200;
    f.ttft_ns = 7300 * kMs;
    f.prompt_ns = 6878 * kMs;
    f.prompt_tokens_per_second = 845.0;
    f.output_tokens_per_second = 14.0;
    f.total_ns = 21500 * kMs;
    f.gap_ns = {71 * kMs, 110 * kMs, 240 * kMs};
    Receipt first;
    first[Cause::queue] = 200 * kMs;
    first[Cause::own_prefill] = 6808 * kMs;
    first[Cause::own_decode] = 70 * kMs;
    first[Cause::others_prefill] = 212 * kMs;
    first[Cause::scheduler] = 10 * kMs;
    f.first_word = first;
    f.receipt = first;
    f.receipt[Cause::own_decode] += 14200 * kMs;
    r.remembered_tokens = 5792;
    r.stalls = 1;
    cadans::StepCost cost;
    cost.weights_ps = 60'000'000'000;
    cost.row_ps = 1'180'000'000;
    cost.prompt_key_ps = 10'000;
    r.cost = cost;
    return r;
}

TEST(explain, the_first_word_of_a_document_in_three_languages) {
    EXPECT_EQ(
        text_of(document(), Language::en, "first_word"),
        "First word after 7.3 s: 0.2 s in the queue, 6.9 s reading 5,812 new tokens (845/s), 0.2 s because another "
        "document was being read.");
    EXPECT_EQ(
        text_of(document(), Language::nl, "first_word"),
        "Eerste woord na 7,3 s: 0,2 s in de wachtrij, 6,9 s lezen van 5.812 nieuwe tokens (845/s), 0,2 s omdat er "
        "een ander document werd gelezen.");
    EXPECT_EQ(text_of(document(), Language::de, "first_word"),
              "Erstes Wort nach 7,3 s: 0,2 s in der Warteschlange, 6,9 s Lesen von 5.812 neuen Tokens (845/s), 0,2 s, "
              "weil ein anderes Dokument gelesen wurde.");
}

TEST(explain, what_is_remembered_and_what_asking_again_would_take) {
    // 20 rows are left, which the weights outlast: one step of 60 ms and a little for the keys.
    EXPECT_EQ(text_of(document(), Language::en, "remembered"),
              "The first 5,792 tokens are now remembered: asking again would take about 61 ms.");
    Explained without = document();
    without.cost.reset();
    EXPECT_EQ(text_of(without, Language::nl, "remembered"), "De eerste 5.792 tokens zijn nu onthouden.");
    without.remembered_tokens.reset();
    EXPECT_EQ(text_of(without, Language::nl, "remembered"), "");
}

TEST(explain, what_became_of_guesses_and_why_there_were_no_more) {
    Explained r = document();
    EXPECT_EQ(text_of(r, Language::en, "guesses"), "");
    r.figures.drafted = 120;
    r.figures.accepted = 90;
    r.figures.receipt[Cause::speculation_waste] = 250 * kMs;
    EXPECT_EQ(text_of(r, Language::en, "guesses"), "Of 120 guessed tokens 90 were right; the others took 250 ms.");
    r.figures.drafting_ns = 1500 * kMs;
    EXPECT_EQ(text_of(r, Language::en, "guesses"),
              "Of 120 guessed tokens 90 were right; the others took 250 ms, the draft model took 1.5 s in all.");
    EXPECT_EQ(text_of(r, Language::nl, "guesses"),
              "Van 120 geraden tokens waren er 90 goed; de andere kostten 250 ms, het radende model in totaal 1,5 s.");
    r.figures.drafted = r.figures.accepted = 0;
    r.figures.draft_holds[static_cast<size_t>(DraftHold::slow)] = 100;
    r.figures.draft_holds[static_cast<size_t>(DraftHold::no_guess)] = 20;
    EXPECT_EQ(text_of(r, Language::en, "guesses"),
              "The draft model was hardly asked: its guesses take longer than they can save.");
    r.figures.draft_holds[static_cast<size_t>(DraftHold::unlikely)] = 200;
    EXPECT_EQ(text_of(r, Language::en, "guesses"),
              "Most steps checked no guesses, or few: more were not likely enough to save time.");
}

TEST(explain, why_two_rates_do_not_contradict_is_said_with_this_machines_figures) {
    const std::string text = text_of(document(), Language::en, "rates");
    for (const char* figure : {"845 prompt tokens/s", "14.0 output tokens/s", "60 ms", "some 50 of a prompt"})
        EXPECT_NE(text.find(figure), std::string::npos) << text;
    Explained unknown = document();
    unknown.cost.reset();
    EXPECT_NE(text_of(unknown, Language::de, "rates").find("widersprechen sich nicht"), std::string::npos);
    unknown.figures.output_tokens_per_second.reset();
    EXPECT_EQ(text_of(unknown, Language::de, "rates"), "");
}

TEST(explain, the_longest_wait_is_the_cause_that_took_most) {
    for (uint32_t i = 0; i < kCauses; i++) {
        Explained r = document();
        r.figures.receipt[static_cast<Cause>(i)] += 100'000 * kMs;
        r.figures.total_ns = r.figures.receipt.total();
        for (const Language language : kAll) {
            const std::string text = text_of(r, language, "longest_wait");
            EXPECT_NE(text.find(phrases(language).cause[i]), std::string::npos) << text;
        }
    }
}

TEST(explain, who_left_or_failed_is_said_first) {
    Explained r = document();
    r.outcome = Outcome::cancelled;
    EXPECT_EQ(explain(r, Language::en).front().text, "The client left after 21.5 s, before the answer was complete.");
    r.figures.ttft_ns.reset();
    r.figures.first_word.reset();
    EXPECT_EQ(explain(r, Language::en).front().text, "The client left after 21.5 s, before the answer was complete.")
        << "what does not stream has no first word, and yet something was written";
    r.figures.output_tokens = 0;
    EXPECT_EQ(explain(r, Language::nl).front().text, "De vrager ging na 21,5 s weg, nog voor het eerste woord.");
    EXPECT_EQ(text_of(r, Language::nl, "first_word"), "");
    r.outcome = Outcome::error;
    EXPECT_EQ(explain(r, Language::de).front().text, "Die Antwort scheiterte nach 21,5 s.");
}

TEST(explain, an_answer_that_does_not_stream_is_explained_as_a_whole) {
    Explained r = document();
    r.figures.ttft_ns.reset();
    r.figures.first_word.reset();
    EXPECT_EQ(
        text_of(r, Language::en, "first_word"),
        "Answer after 21.5 s: 0.2 s in the queue, 6.8 s reading 5,812 new tokens (854/s), 14.3 s writing 200 tokens, "
        "0.2 s because another document was being read.");
}

TEST(explain, the_cache_says_what_it_saved_and_why_not_more) {
    Explained r = document();
    r.figures.cached_tokens = 5000;
    r.figures.computed_tokens = 812;
    r.miss = ReuseEnd::differs;
    r.miss_position = 5000;
    EXPECT_EQ(text_of(r, Language::en, "cache"),
              "5,000 of the prompt's 5,812 tokens were remembered from before, which saved about 6.0 s. What was "
              "remembered goes on differently from token 5,000 on.");
    r.miss = ReuseEnd::evicted;
    EXPECT_NE(text_of(r, Language::de, "cache").find("andere brauchten diesen Speicher"), std::string::npos);
    r.miss = ReuseEnd::first_use;
    r.figures.cached_tokens = 0;
    EXPECT_EQ(text_of(r, Language::en, "cache"), "");
}

TEST(explain, one_token_is_not_several) {
    Explained r = document();
    r.figures.computed_tokens = 1;
    r.figures.prompt_tokens_per_second.reset();
    EXPECT_NE(text_of(r, Language::en, "first_word").find("reading 1 new token,"), std::string::npos);
    EXPECT_NE(text_of(r, Language::nl, "first_word").find("lezen van 1 nieuw token,"), std::string::npos);
}

TEST(explain, what_was_written_before_the_first_word_is_no_reading) {
    Explained r = document();  // held back by a stop string, or a call of a tool
    Receipt& first = *r.figures.first_word;
    first[Cause::own_decode] = first[Cause::own_prefill];
    r.figures.ttft_ns = first.total();
    EXPECT_NE(
        text_of(r, Language::en, "first_word").find("6.8 s reading 5,812 new tokens (854/s), 6.8 s writing the answer"),
        std::string::npos)
        << text_of(r, Language::en, "first_word");
}

TEST(explain, nothing_is_explained_where_nothing_contradicts) {
    Explained r = document();
    EXPECT_NE(text_of(r, Language::en, "rates"), "");
    r.figures.computed_tokens = 1;
    EXPECT_EQ(text_of(r, Language::en, "rates"), "") << "one token has no rate";
    r = document();
    r.figures.prompt_tokens_per_second = *r.figures.output_tokens_per_second / 2;
    EXPECT_EQ(text_of(r, Language::en, "rates"), "") << "it was read slower than written";
}

/// Sum of the numbers of a first sentence after its total, and the total, both in its finest digit.
std::pair<long, long> sums_of(const std::string& sentence) {
    const std::regex time(R"(([0-9,.]+) (s|ms)\b)");
    long total = -1, sum = 0;
    const auto first_unit = [&] {
        std::smatch found;
        std::regex_search(sentence, found, time);
        return found[2].str() + (found[1].str().find('.') == std::string::npos ? "" : ".");
    }();
    for (std::sregex_iterator at(sentence.begin(), sentence.end(), time), end; at != end; ++at) {
        std::string digits = (*at)[1].str();
        EXPECT_EQ((*at)[2].str() + (digits.find('.') == std::string::npos ? "" : "."), first_unit) << sentence;
        std::erase_if(digits, [](char c) { return c == ',' || c == '.'; });
        (total < 0 ? total : sum) += std::stol(digits) + (total < 0 ? 1 : 0);
    }
    return {sum, total};
}

// Method: random receipts from microseconds to hours; English, whose thousands and decimals the parser knows.
TEST(explain, the_times_told_sum_to_the_total_told) {
    std::mt19937_64 random(11);
    for (int round = 0; round < 20'000; round++) {
        Explained r = document();
        Receipt receipt;
        const int largest = static_cast<int>(random() % 44);
        for (uint32_t cause = 0; cause < kCauses; cause++)
            if (random() % 3 == 0) receipt.ns[cause] = static_cast<Nanos>(random() & ((uint64_t{1} << largest) - 1));
        r.figures.first_word = receipt;
        r.figures.ttft_ns = receipt.total();
        if (receipt.total() < kMs) continue;
        const std::string text = text_of(r, Language::en, "first_word");
        const auto [sum, total] = sums_of(text);
        ASSERT_EQ(sum, total) << text;
    }
}

TEST(explain, any_record_has_sentences_without_holes_in_every_language) {
    std::mt19937_64 random(5);
    for (int round = 0; round < 3000; round++) {
        Explained r = random() % 4 == 0 ? Explained{} : document();
        r.outcome = static_cast<Outcome>(random() % kOutcomes);
        r.figures.cached_tokens = static_cast<uint32_t>(random() % 3 * 1000);
        r.miss = static_cast<ReuseEnd>(random() % kReuseEnds);
        if (random() % 2 == 0) r.figures.ttft_ns.reset();
        if (random() % 2 == 0) r.cost.reset();
        if (random() % 2 == 0) r.figures.total_ns = static_cast<Nanos>(random() % (uint64_t{1} << 50));
        size_t count = 0;
        for (const Language language : kAll) {
            const auto sentences = explain(r, language);
            EXPECT_TRUE(count == 0 || sentences.size() == count);
            count = sentences.size();
            for (const Sentence& sentence : sentences) {
                EXPECT_TRUE(sentence.text.ends_with('.'));
                EXPECT_EQ(sentence.text.find_first_of("{}"), std::string::npos) << sentence.text;
                EXPECT_EQ(sentence.text.find("nan"), std::string::npos);
            }
        }
        EXPECT_GE(count, r.figures.total_ns > 0 || r.outcome != Outcome::stop ? 1U : 0U);
    }
}

std::multiset<std::string> gaps_of(std::string_view text) {
    std::multiset<std::string> out;
    const std::string whole(text);
    const std::regex gap(R"(\{(\w+)\})");
    for (std::sregex_iterator at(whole.begin(), whole.end(), gap), end; at != end; ++at) out.insert((*at)[1]);
    return out;
}

TEST(phrases, every_language_has_every_phrase_with_the_same_gaps) {
    const Phrases& english = phrases(Language::en);
    using Field = std::string_view Phrases::*;
    constexpr Field kFields[] = {&Phrases::first_word,
                                 &Phrases::whole_answer,
                                 &Phrases::part_reading,
                                 &Phrases::part_reading_plain,
                                 &Phrases::part_writing,
                                 &Phrases::part_rest,
                                 &Phrases::remembered,
                                 &Phrases::remembered_again,
                                 &Phrases::cached,
                                 &Phrases::cached_saved,
                                 &Phrases::miss_differs,
                                 &Phrases::miss_extends,
                                 &Phrases::miss_evicted,
                                 &Phrases::miss_off,
                                 &Phrases::rates,
                                 &Phrases::rates_machine,
                                 &Phrases::gaps,
                                 &Phrases::gaps_stalled,
                                 &Phrases::longest,
                                 &Phrases::longest_part,
                                 &Phrases::was,
                                 &Phrases::were,
                                 &Phrases::felt_one,
                                 &Phrases::felt,
                                 &Phrases::cancelled_before,
                                 &Phrases::cancelled_after,
                                 &Phrases::failed,
                                 &Phrases::refused,
                                 &Phrases::token,
                                 &Phrases::tokens,
                                 &Phrases::new_token,
                                 &Phrases::new_tokens};
    for (const Language language : kAll) {
        const Phrases& other = phrases(language);
        for (const Field field : kFields) {
            EXPECT_FALSE((other.*field).empty());
            EXPECT_EQ(gaps_of(other.*field), gaps_of(english.*field)) << other.*field;
        }
        for (uint32_t cause = 0; cause < kCauses; cause++) {
            EXPECT_EQ(gaps_of(other.part[cause]), std::multiset<std::string>{"time"});
            EXPECT_FALSE(other.cause[cause].empty());
        }
    }
}

TEST(phrases, a_language_is_found_by_its_tag) {
    EXPECT_EQ(language_of("nl-BE"), Language::nl);
    EXPECT_EQ(language_of("DE"), Language::de);
    EXPECT_EQ(language_of("ende"), std::nullopt);
    EXPECT_EQ(language_of(""), std::nullopt);
    EXPECT_EQ(accepted_language("fr-FR, de;q=0.8, nl;q=0.5"), Language::de);
    EXPECT_EQ(accepted_language("fr, es;q=0.9,*"), std::nullopt);
}

TEST(phrases, numbers_are_written_as_the_language_does) {
    EXPECT_EQ(count_text(5812, Language::en), "5,812");
    EXPECT_EQ(count_text(1234567, Language::de), "1.234.567");
    EXPECT_EQ(count_text(999, Language::nl), "999");
    EXPECT_EQ(rate_text(14.04, Language::nl), "14,0");
    EXPECT_EQ(rate_text(1845.4, Language::en), "1,845");
    EXPECT_EQ(time_text(61 * kMs, Language::en), "61 ms");
    EXPECT_EQ(time_text(7321 * kMs, Language::de), "7,3 s");
    EXPECT_EQ(time_text(400'000, Language::nl), "0,4 ms");
    EXPECT_EQ(time_text(1'234'000 * kMs, Language::en), "1,234 s");
}

}  // namespace
}  // namespace cadans::metrics
