#include "metrics/phrases.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace cadans::metrics {
namespace {

constexpr Phrases kEnglish = {
    .first_word = "First word after {total}: {parts}.",
    .whole_answer = "Answer after {total}: {parts}.",
    .part = {"{time} taking in the request", "{time} turning its text into tokens", "{time} in the queue",
             "{time} loading the model", "{time} reading saved pages back", "{time} fetching pages from another worker",
             "{time} set aside because others needed the memory", "{time} reading the prompt",
             "{time} because another document was being read", "{time} writing the answer",
             "{time} because other answers were being written", "{time} on guesses that were not used",
             "{time} computing again what being set aside had lost", "{time} turning tokens into text",
             "{time} working out what the grammar allows", "{time} because the client was not reading",
             "{time} between steps"},
    .part_reading = "{time} reading {tokens} ({rate}/s)",
    .part_reading_plain = "{time} reading {tokens}",
    .part_writing = "{time} writing {tokens}",
    .part_rest = "{time} for the rest",
    .remembered = "The first {n} {tokens} are now remembered.",
    .remembered_again = "The first {n} {tokens} are now remembered: asking again would take about {time}.",
    .cached = "{n} of the prompt's {all} {tokens} {were} remembered from before.",
    .cached_saved = "{n} of the prompt's {all} {tokens} {were} remembered from before, which saved about {time}.",
    .miss_differs = "What was remembered goes on differently from token {position} on.",
    .miss_extends = "What was remembered ends at token {position}.",
    .miss_evicted = "What follows token {position} had been remembered, but its memory was needed for others.",
    .miss_off = "Nothing could be remembered from before: the cache is off.",
    .rates =
        "{read} prompt tokens/s and {write} output tokens/s do not contradict each other: a prompt is read many "
        "tokens at a time, an answer is written one by one, and each time the whole model is needed once.",
    .rates_machine =
        "{read} prompt tokens/s and {write} output tokens/s do not contradict each other: fetching the "
        "model from memory takes this machine {weights}, for one token of an answer as for some {rows} of "
        "a prompt at once.",
    .guessed = "Of {n} guessed {tokens} {right} {were} right; the others took {time}.",
    .guessed_model =
        "Of {n} guessed {tokens} {right} {were} right; the others took {time}, the draft model took {drafting} in all.",
    .model_slow = "The draft model was hardly asked: its guesses take longer than they can save.",
    .unlikely = "Most steps checked no guesses, or few: more were not likely enough to save time.",
    .gaps = "Half of the gaps between words were at most {p50}, the longest was {max}.",
    .gaps_stalled =
        "Half of the gaps between words were at most {p50}, the longest was {max}; {n} {felt} like a stall.",
    .longest = "Most of the time ({share} %) went to {cause}.",
    .longest_part = "The largest share of the time ({share} %) went to {cause}.",
    .cause = {"taking in the request", "turning its text into tokens", "waiting in the queue", "loading the model",
              "reading saved pages back", "fetching pages from another worker", "being set aside for others",
              "reading its own prompt", "waiting while others' prompts were read", "writing its own answer",
              "waiting while others' answers were written", "guesses that were not used",
              "computing again what being set aside had lost", "turning tokens into text",
              "working out what the grammar allows", "waiting for the client to read", "what happens between steps"},
    .cancelled_before = "The client left after {total}, before the first word.",
    .cancelled_after = "The client left after {total}, before the answer was complete.",
    .failed = "The answer failed after {total}.",
    .refused = "The request was refused after {total}.",
    .token = "token",
    .tokens = "tokens",
    .new_token = "new token",
    .new_tokens = "new tokens",
    .was = "was",
    .were = "were",
    .felt_one = "felt",
    .felt = "felt",
    .thousands = ',',
    .decimal = '.',
};

constexpr Phrases kDutch = {
    .first_word = "Eerste woord na {total}: {parts}.",
    .whole_answer = "Antwoord na {total}: {parts}.",
    .part = {"{time} aannemen van de vraag", "{time} omzetten van de tekst in tokens", "{time} in de wachtrij",
             "{time} laden van het model", "{time} terughalen van bewaarde pagina's",
             "{time} ophalen van pagina's bij een andere werker",
             "{time} opzij gezet omdat anderen het geheugen nodig hadden", "{time} lezen van de prompt",
             "{time} omdat er een ander document werd gelezen", "{time} schrijven van het antwoord",
             "{time} omdat er andere antwoorden werden geschreven", "{time} aan gissingen die niet zijn gebruikt",
             "{time} opnieuw berekenen wat door het opzij zetten verloren ging", "{time} omzetten van tokens in tekst",
             "{time} uitrekenen wat de grammatica toestaat", "{time} omdat de ontvanger niet las",
             "{time} tussen de stappen"},
    .part_reading = "{time} lezen van {tokens} ({rate}/s)",
    .part_reading_plain = "{time} lezen van {tokens}",
    .part_writing = "{time} schrijven van {tokens}",
    .part_rest = "{time} voor de rest",
    .remembered = "De eerste {n} {tokens} zijn nu onthouden.",
    .remembered_again = "De eerste {n} {tokens} zijn nu onthouden: nog eens vragen zou ongeveer {time} duren.",
    .cached = "{n} van de {all} {tokens} van de prompt {were} nog onthouden.",
    .cached_saved = "{n} van de {all} {tokens} van de prompt {were} nog onthouden; dat scheelde ongeveer {time}.",
    .miss_differs = "Wat onthouden was, gaat vanaf token {position} anders verder.",
    .miss_extends = "Wat onthouden was, houdt op bij token {position}.",
    .miss_evicted = "Wat na token {position} komt was onthouden, maar anderen hadden dat geheugen nodig.",
    .miss_off = "Er kon niets van eerder onthouden zijn: de cache staat uit.",
    .rates =
        "{read} prompttokens/s en {write} antwoordtokens/s spreken elkaar niet tegen: een prompt wordt met vele "
        "tokens tegelijk gelezen, een antwoord een voor een geschreven, en elke keer is het hele model een keer nodig.",
    .rates_machine =
        "{read} prompttokens/s en {write} antwoordtokens/s spreken elkaar niet tegen: het model uit het "
        "geheugen halen kost deze machine {weights}, voor een token van een antwoord evenveel als voor zo'n "
        "{rows} van een prompt tegelijk.",
    .guessed = "Van {n} geraden {tokens} {were} er {right} goed; de andere kostten {time}.",
    .guessed_model =
        "Van {n} geraden {tokens} {were} er {right} goed; de andere kostten {time}, het radende model in totaal "
        "{drafting}.",
    .model_slow = "Het radende model is nauwelijks gebruikt: raden duurt er langer dan het kan besparen.",
    .unlikely = "De meeste stappen namen geen of weinig gissingen mee: meer waren te onzeker om tijd te sparen.",
    .gaps = "De helft van de pauzes tussen woorden duurde hooguit {p50}, de langste {max}.",
    .gaps_stalled =
        "De helft van de pauzes tussen woorden duurde hooguit {p50}, de langste {max}; {n} ervan {felt} als "
        "een hapering.",
    .longest = "De meeste tijd ({share} %) ging naar {cause}.",
    .longest_part = "Het grootste aandeel van de tijd ({share} %) ging naar {cause}.",
    .cause = {"het aannemen van de vraag", "het omzetten van de tekst in tokens", "wachten in de wachtrij",
              "het laden van het model", "het terughalen van bewaarde pagina's",
              "het ophalen van pagina's bij een andere werker", "plaatsmaken voor anderen",
              "het lezen van de eigen prompt", "wachten terwijl prompts van anderen werden gelezen",
              "het schrijven van het eigen antwoord", "wachten terwijl antwoorden van anderen werden geschreven",
              "gissingen die niet zijn gebruikt", "het opnieuw berekenen van wat door het opzij zetten verloren ging",
              "het omzetten van tokens in tekst", "het uitrekenen van wat de grammatica toestaat",
              "wachten tot de ontvanger las", "wat er tussen de stappen gebeurt"},
    .cancelled_before = "De vrager ging na {total} weg, nog voor het eerste woord.",
    .cancelled_after = "De vrager ging na {total} weg, voordat het antwoord af was.",
    .failed = "Het antwoord mislukte na {total}.",
    .refused = "De vraag werd na {total} geweigerd.",
    .token = "token",
    .tokens = "tokens",
    .new_token = "nieuw token",
    .new_tokens = "nieuwe tokens",
    .was = "was",
    .were = "waren",
    .felt_one = "voelde",
    .felt = "voelden",
    .thousands = '.',
    .decimal = ',',
};

constexpr Phrases kGerman = {
    .first_word = "Erstes Wort nach {total}: {parts}.",
    .whole_answer = "Antwort nach {total}: {parts}.",
    .part = {"{time} Annehmen der Anfrage", "{time} Zerlegen des Textes in Tokens", "{time} in der Warteschlange",
             "{time} Laden des Modells", "{time} Zurückholen gespeicherter Seiten",
             "{time} Holen von Seiten eines anderen Arbeiters",
             "{time} zurückgestellt, weil andere den Speicher brauchten", "{time} Lesen des Prompts",
             "{time}, weil ein anderes Dokument gelesen wurde", "{time} Schreiben der Antwort",
             "{time}, weil andere Antworten geschrieben wurden", "{time} für Vermutungen, die nicht gebraucht wurden",
             "{time} erneutes Berechnen dessen, was das Zurückstellen gekostet hat",
             "{time} Umwandeln der Tokens in Text", "{time} Ausrechnen, was die Grammatik erlaubt",
             "{time}, weil der Empfänger nicht las", "{time} zwischen den Schritten"},
    .part_reading = "{time} Lesen von {tokens} ({rate}/s)",
    .part_reading_plain = "{time} Lesen von {tokens}",
    .part_writing = "{time} Schreiben von {tokens}",
    .part_rest = "{time} für den Rest",
    .remembered = "Die ersten {n} {tokens} sind jetzt gemerkt.",
    .remembered_again = "Die ersten {n} {tokens} sind jetzt gemerkt: noch einmal zu fragen würde etwa {time} dauern.",
    .cached = "{n} der {all} {tokens} des Prompts {were} noch gemerkt.",
    .cached_saved = "{n} der {all} {tokens} des Prompts {were} noch gemerkt; das hat etwa {time} gespart.",
    .miss_differs = "Was gemerkt war, geht ab Token {position} anders weiter.",
    .miss_extends = "Was gemerkt war, endet bei Token {position}.",
    .miss_evicted = "Was auf Token {position} folgt, war gemerkt, doch andere brauchten diesen Speicher.",
    .miss_off = "Von früher konnte nichts gemerkt sein: der Cache ist aus.",
    .rates =
        "{read} Prompt-Tokens/s und {write} Antwort-Tokens/s widersprechen sich nicht: Ein Prompt wird mit vielen "
        "Tokens zugleich gelesen, eine Antwort einzeln geschrieben, und jedes Mal wird das ganze Modell einmal "
        "gebraucht.",
    .rates_machine =
        "{read} Prompt-Tokens/s und {write} Antwort-Tokens/s widersprechen sich nicht: Das Modell aus dem "
        "Speicher zu holen kostet diese Maschine {weights}, für ein Token einer Antwort genauso viel wie für "
        "etwa {rows} eines Prompts zugleich.",
    .guessed = "Von {n} geratenen {tokens} {were} {right} richtig; die anderen kosteten {time}.",
    .guessed_model =
        "Von {n} geratenen {tokens} {were} {right} richtig; die anderen kosteten {time}, das ratende Modell insgesamt "
        "{drafting}.",
    .model_slow = "Das ratende Modell wurde kaum gefragt: Raten dauert dort länger, als es sparen kann.",
    .unlikely =
        "Die meisten Schritte prüften keine oder wenige Vermutungen: mehr waren zu unsicher, um Zeit zu sparen.",
    .gaps = "Die Hälfte der Pausen zwischen Wörtern dauerte höchstens {p50}, die längste {max}.",
    .gaps_stalled =
        "Die Hälfte der Pausen zwischen Wörtern dauerte höchstens {p50}, die längste {max}; {n} davon {felt} "
        "sich wie ein Stocken an.",
    .longest = "Die meiste Zeit ({share} %) kostete {cause}.",
    .longest_part = "Den größten Anteil der Zeit ({share} %) kostete {cause}.",
    .cause = {"das Annehmen der Anfrage", "das Zerlegen des Textes in Tokens", "das Warten in der Warteschlange",
              "das Laden des Modells", "das Zurückholen gespeicherter Seiten",
              "das Holen von Seiten eines anderen Arbeiters", "das Zurückstehen für andere",
              "das Lesen des eigenen Prompts", "das Warten, während Prompts anderer gelesen wurden",
              "das Schreiben der eigenen Antwort", "das Warten, während Antworten anderer geschrieben wurden",
              "das Verwerfen von Vermutungen", "das erneute Berechnen dessen, was das Zurückstellen gekostet hat",
              "das Umwandeln der Tokens in Text", "das Ausrechnen, was die Grammatik erlaubt",
              "das Warten, bis der Empfänger las", "das, was zwischen den Schritten geschieht"},
    .cancelled_before = "Die Gegenseite ging nach {total}, noch vor dem ersten Wort.",
    .cancelled_after = "Die Gegenseite ging nach {total}, bevor die Antwort fertig war.",
    .failed = "Die Antwort scheiterte nach {total}.",
    .refused = "Die Anfrage wurde nach {total} abgelehnt.",
    .token = "Token",
    .tokens = "Tokens",
    .new_token = "neuen Token",
    .new_tokens = "neuen Tokens",
    .was = "war",
    .were = "waren",
    .felt_one = "fühlte",
    .felt = "fühlten",
    .thousands = '.',
    .decimal = ',',
};

/// `text` with its decimal point as the language has it.
std::string localised(std::string text, Language language) {
    std::replace(text.begin(), text.end(), '.', phrases(language).decimal);
    return text;
}

}  // namespace

const Phrases& phrases(Language language) noexcept {
    constexpr const Phrases* kAll[kLanguages] = {&kEnglish, &kDutch, &kGerman};
    return *kAll[static_cast<uint8_t>(language)];
}

std::optional<Language> language_of(std::string_view tag) noexcept {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
    if (tag.size() < 2 || (tag.size() > 2 && tag[2] != '-' && tag[2] != '_')) return std::nullopt;
    for (uint8_t i = 0; i < kLanguages; i++) {
        const auto language = static_cast<Language>(i);
        if (lower(tag[0]) == name(language)[0] && lower(tag[1]) == name(language)[1]) return language;
    }
    return std::nullopt;
}

std::optional<Language> accepted_language(std::string_view field) noexcept {
    while (!field.empty()) {
        const size_t comma = std::min(field.find(','), field.size());
        std::string_view tag = field.substr(0, comma);
        tag = tag.substr(0, tag.find(';'));
        while (tag.starts_with(' ')) tag.remove_prefix(1);
        while (tag.ends_with(' ')) tag.remove_suffix(1);
        if (const auto language = language_of(tag)) return language;
        field.remove_prefix(std::min(comma + 1, field.size()));
    }
    return std::nullopt;
}

std::string count_text(uint64_t n, Language language) {
    std::string text = std::to_string(n);
    for (size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, 1, phrases(language).thousands);
    return text;
}

std::string rate_text(double rate, Language language) {
    if (rate >= 100) return count_text(static_cast<uint64_t>(std::llround(rate)), language);
    return localised(rate >= 10 ? fmt::format("{:.1f}", rate) : fmt::format("{:.2f}", rate), language);
}

std::string tokens_text(uint64_t n, bool are_new, Language language) {
    const Phrases& p = phrases(language);
    return fmt::format("{} {}", count_text(n, language),
                       n == 1 ? (are_new ? p.new_token : p.token) : (are_new ? p.new_tokens : p.tokens));
}

std::string time_text(Nanos span, Language language) {
    const double seconds = static_cast<double>(span) / kNanosPerSecond;
    if (seconds >= 99.95) return count_text(static_cast<uint64_t>(std::llround(seconds)), language) + " s";
    if (seconds >= 0.9995) return localised(fmt::format("{:.1f} s", seconds), language);
    if (seconds >= 0.0095) return fmt::format("{:.0f} ms", seconds * 1e3);
    return localised(fmt::format("{:.1f} ms", seconds * 1e3), language);
}

}  // namespace cadans::metrics
