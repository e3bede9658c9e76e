#include "model/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <exception>
#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>

namespace cadans::model {
namespace {

using std::chrono::steady_clock;

constexpr size_t kReportBytesMax = size_t{256} << 10;
constexpr char kOk = 'O';
constexpr char kFailed = 'E';

/// "O", or "E", the code as a letter, the message, NUL, where, NUL. A report cut short has no last NUL.
std::string encode(const Status& status) {
    if (status) return {kOk};
    const auto clean = [](std::string text) {
        std::erase(text, '\0');
        return text.substr(0, kReportBytesMax / 4);
    };
    std::string report = {kFailed, static_cast<char>('a' + static_cast<int>(status.error().code))};
    report += clean(status.error().message) + '\0' + clean(status.error().where) + '\0';
    return report;
}

std::optional<Status> decode(std::string_view report) {
    if (report == std::string_view(&kOk, 1)) return Status(Ok{});
    if (report.size() < 4 || report[0] != kFailed || report.back() != '\0') return std::nullopt;
    const int code = report[1] - 'a';
    if (code < 0 || code > static_cast<int>(ErrorCode::internal)) return std::nullopt;
    report.remove_prefix(2);
    const size_t end = report.find('\0');
    std::string where(report.substr(std::min(end + 1, report.size())));
    if (!where.empty()) where.pop_back();
    return Status(Error{static_cast<ErrorCode>(code), std::string(report.substr(0, end)), std::move(where)});
}

/// Pages of address space that this process has now.
uint64_t address_space_bytes() {
    std::ifstream in("/proc/self/statm");
    uint64_t pages = 0;
    in >> pages;
    return pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

void limit(int resource, uint64_t value) {
    const rlimit both = {value, value};
    (void)::setrlimit(static_cast<__rlimit_resource>(resource), &both);
}

/// System calls that a reader of files never makes fail with EPERM. Best effort: an old kernel has none.
void forbid_network_and_programs() {
    constexpr auto kForbidden = std::to_array<uint32_t>(
        {SYS_socket, SYS_socketpair, SYS_connect, SYS_bind, SYS_execve, SYS_execveat, SYS_ptrace, SYS_kill, SYS_tkill});
    std::array<sock_filter, kForbidden.size() + 3> program;
    program[0] = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
    for (size_t i = 0; i < kForbidden.size(); ++i) {
        const auto to_refusal = static_cast<uint8_t>(kForbidden.size() - i);
        program[i + 1] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kForbidden[i], to_refusal, 0);
    }
    program[kForbidden.size() + 1] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    program[kForbidden.size() + 2] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    const sock_fprog filter = {static_cast<unsigned short>(program.size()), program.data()};
    (void)::unshare(CLONE_NEWNET);
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0) (void)::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

[[noreturn]] void be_the_child(const std::function<Status()>& job, int report_fd, uint64_t address_space,
                               const ChildLimits& limits, pid_t parent) {
    (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGTERM, SIGINT}) ::signal(signal, SIG_DFL);
    // Sockets of the server must not stay open here when it closes them.
    if (report_fd > 3) (void)::close_range(3, static_cast<unsigned>(report_fd) - 1, 0);
    (void)::close_range(static_cast<unsigned>(report_fd) + 1, ~0U, 0);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_FSIZE, 0);
    limit(RLIMIT_CPU, limits.cpu_seconds);
    limit(RLIMIT_AS, address_space + limits.memory_bytes);
    forbid_network_and_programs();
    std::string report;
    try {
        report = encode(job());
    } catch (const std::bad_alloc&) {
        report = encode(Error{ErrorCode::no_memory, "reading the file takes more memory than it may", {}});
    } catch (const std::exception& trouble) {
        report = encode(Error{ErrorCode::internal, trouble.what(), {}});
    }
    for (std::string_view left = report; !left.empty();) {
        const ssize_t n = ::write(report_fd, left.data(), left.size());
        if (n < 0 && errno != EINTR) ::_exit(1);
        if (n > 0) left.remove_prefix(static_cast<size_t>(n));
    }
    ::_exit(0);
}

/// All that the child writes until it ends, or nullopt where it took too long.
std::optional<std::string> read_report(int fd, std::chrono::milliseconds wall) {
    std::string report;
    const auto deadline = steady_clock::now() + wall;
    while (report.size() < kReportBytesMax) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - steady_clock::now());
        if (left.count() <= 0) return std::nullopt;
        pollfd waiting = {fd, POLLIN, 0};
        const int ready = ::poll(&waiting, 1, static_cast<int>(std::min<int64_t>(left.count(), 60'000)));
        if (ready <= 0) continue;
        std::array<char, 4096> part;
        const ssize_t n = ::read(fd, part.data(), part.size());
        if (n == 0) return report;
        if (n < 0 && errno != EINTR) return report;
        if (n > 0) report.append(part.data(), static_cast<size_t>(n));
    }
    return report;
}

std::string ending_of(int wait_status) {
    if (WIFSIGNALED(wait_status)) return fmt::format("signal {}", WTERMSIG(wait_status));
    return fmt::format("exit {}", WEXITSTATUS(wait_status));
}

}  // namespace

Status run_in_child(const std::function<Status()>& job, const std::string& what, const ChildLimits& limits) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
        return Error{ErrorCode::io, fmt::format("cannot start {}: {}", what, std::strerror(errno)), {}};
    const uint64_t address_space = address_space_bytes();
    const pid_t parent = ::getpid();
    const pid_t child = ::fork();
    if (child == 0) be_the_child(job, ends[1], address_space, limits, parent);
    const int fork_error = errno;
    ::close(ends[1]);
    if (child < 0) {
        ::close(ends[0]);
        return Error{ErrorCode::io, fmt::format("cannot start {}: {}", what, std::strerror(fork_error)), {}};
    }
    const auto report = read_report(ends[0], limits.wall);
    ::close(ends[0]);
    if (!report) (void)::kill(child, SIGKILL);
    int ending = 0;
    while (::waitpid(child, &ending, 0) < 0 && errno == EINTR) {
    }
    if (!report)
        return Error{ErrorCode::internal,
                     fmt::format("{} took more than {} s; the file is refused", what, limits.wall.count() / 1000),
                     {}};
    if (auto status = decode(*report)) return *std::move(status);
    return Error{ErrorCode::internal, fmt::format("{} died ({}); the file is refused", what, ending_of(ending)), {}};
}

}  // namespace cadans::model
