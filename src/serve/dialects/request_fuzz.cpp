// libFuzzer's entry to request_fuzz.h.
#include "serve/dialects/request_fuzz.h"
#include "serve/testing/test_house.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace cadans::serve;
    static const cadans::text::Tokenizer tokenizer = test_tokenizer();
    static const cadans::text::ChatTemplate chat_template = *cadans::text::ChatTemplate::parse(kTestTemplate);
    static const Catalog catalog = [] {
        ModelCard card;
        card.name = "toy";
        card.tokenizer = &tokenizer;
        card.chat_template = &chat_template;
        card.context_tokens = 4096;
        return Catalog({card});
    }();
    fuzz_request_body({reinterpret_cast<const char*>(data), size}, catalog);
    return 0;
}
