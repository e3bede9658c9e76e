// The one program: reads the command line and hands over to a command.
#include <fmt/format.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "apps/command_line.h"
#include "apps/commands.h"
#include "apps/stderr_text.h"

int main(int argc, char** argv) {
    std::setlocale(LC_ALL, "C");
    std::signal(SIGPIPE, SIG_IGN);  // a reader that left is an error of that write, not of the process
    // A command that holds nothing ends at once; serve, and run while it answers, have ways of their own.
    for (const int number : {SIGINT, SIGTERM}) std::signal(number, [](int) { std::_Exit(cadans::apps::kInterrupted); });
    spdlog::set_default_logger(spdlog::stderr_color_mt("cadans"));
    spdlog::set_pattern("%Y-%m-%d %H:%M:%S.%e %^%l%$ %v");

    int exit_code = cadans::apps::run_command_line(argc, argv);
    std::cout.flush();
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0 || !std::cout) {
        cadans::apps::to_stderr("cadans: what was to be printed could not be written\n");
        return exit_code == 0 ? 1 : exit_code;
    }
    return exit_code;
}
