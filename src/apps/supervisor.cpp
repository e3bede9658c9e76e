#include "apps/supervisor.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <optional>

#include "base/clock.h"

namespace cadans::apps {
namespace {

constexpr Nanos kPatience = 600 * kNanosPerSecond;
constexpr int kOurFault = 70;

pid_t start(const std::function<int(const Life&)>& serve, const Life& life, const sigset_t& before) {
    const pid_t parent = ::getpid();
    const pid_t child = ::fork();
    if (child != 0) return child;
    ::setpgid(0, 0);                     // Ctrl-C reaches the parent alone, which hands it on once
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // and if the parent is killed, we leave in order
    if (::getppid() != parent) ::_exit(kOurFault);
    for (const int signal : {SIGTERM, SIGINT}) ::signal(signal, SIG_DFL);
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    int code = kOurFault;
    try {
        code = serve(life);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "cadans: %s\n", e.what());
    }
    std::fflush(nullptr);
    ::_exit(code);
}

/// Waits for the child's end; hands signals on meanwhile, and then `asked` says so. Returns the wait status.
int wait_for(pid_t child, const sigset_t& watched, bool& asked) {
    for (;;) {
        int status = 0;
        if (::waitpid(child, &status, WNOHANG) == child) return status;
        const int signal = ::sigwaitinfo(&watched, nullptr);
        if (signal == SIGTERM || signal == SIGINT || signal == SIGHUP) {
            asked = true;
            ::kill(child, signal == SIGHUP ? SIGTERM : signal);
        }
    }
}

}  // namespace

int supervise(const std::function<int(const Life&)>& serve) {
    sigset_t watched, before;
    sigemptyset(&watched);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGCHLD}) sigaddset(&watched, signal);
    ::sigprocmask(SIG_BLOCK, &watched, &before);

    int port_pipe[2] = {-1, -1};
    if (::pipe2(port_pipe, O_CLOEXEC | O_NONBLOCK) != 0) {
        std::perror("cadans: pipe");
        return kOurFault;
    }
    Life life{.port_pipe = port_pipe[1]};
    std::optional<Nanos> last_death;
    for (;;) {
        std::fflush(nullptr);
        const pid_t child = start(serve, life, before);
        if (child < 0) {
            std::perror("cadans: fork");
            return kOurFault;
        }
        bool asked = false;
        const int status = wait_for(child, watched, asked);
        const int killer = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        if (asked && (killer == SIGTERM || killer == SIGINT)) return 0;  // it had not begun to listen for signals
        if (WIFEXITED(status) && WEXITSTATUS(status) != kOurFault) return WEXITSTATUS(status);
        if (WIFSIGNALED(status))
            std::fprintf(stderr, "cadans: the serving process was ended by signal %d\n", WTERMSIG(status));
        if (asked) return kOurFault;  // it did not leave in order, and nobody wants it back
        const Nanos now = steady_now();
        if (last_death && now - *last_death < kPatience) {
            std::fprintf(stderr, "cadans: it died twice within ten minutes; giving up\n");
            return kOurFault;
        }
        last_death = now;
        uint16_t port = 0;
        if (::read(port_pipe[0], &port, sizeof port) == sizeof port) life.port = port;
        life.restarts++;
        std::fprintf(stderr, "cadans: starting the serving process again\n");
    }
}

}  // namespace cadans::apps
