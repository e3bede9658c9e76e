#include "page/page.h"

// The assembler takes the files in as they are: no copy of them in source form, no tool to make one.
asm(R"(
    .section .rodata
    .balign 16
cadans_page_html:      .incbin "index.html"
cadans_page_html_end:
cadans_page_gzip:      .incbin "index.html.gz"
cadans_page_gzip_end:
cadans_page_policy:    .incbin "policy.txt"
cadans_page_policy_end:
    .previous
)");

extern "C" {
extern const char cadans_page_html[], cadans_page_html_end[];
extern const char cadans_page_gzip[], cadans_page_gzip_end[];
extern const char cadans_page_policy[], cadans_page_policy_end[];
}

namespace cadans::page {

std::string_view html() noexcept { return {cadans_page_html, cadans_page_html_end}; }
std::string_view html_gzip() noexcept { return {cadans_page_gzip, cadans_page_gzip_end}; }
std::string_view policy() noexcept { return {cadans_page_policy, cadans_page_policy_end}; }

}  // namespace cadans::page
