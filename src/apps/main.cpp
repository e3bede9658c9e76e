// The one program: reads the command line and hands over to a command.
#include <fmt/format.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "apps/commands.h"

int main(int argc, char** argv) {
    std::setlocale(LC_ALL, "C");
    std::signal(SIGPIPE, SIG_IGN);  // a reader that left is an error of that write, not of the process
    // A command that holds nothing ends at once; serve, and run while it answers, have ways of their own.
    for (const int number : {SIGINT, SIGTERM}) std::signal(number, [](int) { std::_Exit(cadans::apps::kInterrupted); });
    spdlog::set_default_logger(spdlog::stderr_color_mt("cadans"));
    spdlog::set_pattern("%Y-%m-%d %H:%M:%S.%e %^%l%$ %v");

    CLI::App app{
        "Cadans: a local LLM server that shows where the time goes.\n\n"
        "  cadans serve --model FILE      serve a model to OpenAI and Ollama clients\n"
        "  cadans run FILE \"question\"     ask in the terminal\n"
        "  cadans bench --model FILE      measure prompt reading and writing apart\n"
        "  cadans simulate --trace FILE   play a workload on the scheduler, without a model\n"
        "  cadans inspect FILE            what is in a model file, and would it run\n"};
    app.name("cadans");
    app.set_version_flag("--version", "cadans " CADANS_VERSION);
    app.require_subcommand(1);
    app.get_formatter()->column_width(40);
    int exit_code = 0;
    cadans::apps::add_serve(app, exit_code);
    cadans::apps::add_run(app, exit_code);
    cadans::apps::add_bench(app, exit_code);
    cadans::apps::add_simulate(app, exit_code);
    cadans::apps::add_inspect(app, exit_code);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
        const bool asked = e.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success);  // --help, --version
        app.exit(e);
        return asked ? 0 : 2;
    } catch (const std::exception& e) {
        fmt::print(stderr, "cadans: {}\n", e.what());
        return 70;
    }
    std::cout.flush();
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0 || !std::cout) {
        fmt::print(stderr, "cadans: what was to be printed could not be written\n");
        return exit_code == 0 ? 1 : exit_code;
    }
    return exit_code;
}
