#include "cli/program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "base/check.h"

namespace firstseen {
namespace {

struct Pipe {
  int read_end = -1;
  int write_end = -1;
};

Pipe MakePipe() {
  int ends[2];
  FIRSTSEEN_CHECK(pipe2(ends, O_CLOEXEC) == 0);
  return {ends[0], ends[1]};
}

// `input`, `output` and `error` become the program's first three descriptors.
int Start(const std::vector<std::string>& arguments, int input, int output, int error) {
  std::vector<char*> argv = {const_cast<char*>(FIRSTSEEN_PROGRAM)};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t process = fork();
  FIRSTSEEN_CHECK(process >= 0);
  if (process == 0) {
    dup2(input, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(error, STDERR_FILENO);
    execv(FIRSTSEEN_PROGRAM, argv.data());
    _exit(127);
  }
  return process;
}

int ExitStatus(int process) {
  int status = 0;
  FIRSTSEEN_CHECK(waitpid(process, &status, 0) == process);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// Reads what is there; false at the end.
bool ReadSome(int descriptor, std::string* out) {
  char buffer[65536];
  const ssize_t got = read(descriptor, buffer, sizeof buffer);
  FIRSTSEEN_CHECK(got >= 0);
  out->append(buffer, static_cast<size_t>(got));
  return got > 0;
}

}  // namespace

Ran RunProgram(const std::vector<std::string>& arguments, std::string_view input) {
  std::signal(SIGPIPE, SIG_IGN);
  const Pipe in = MakePipe();
  const Pipe out = MakePipe();
  const Pipe err = MakePipe();
  const int process = Start(arguments, in.read_end, out.write_end, err.write_end);
  close(in.read_end);
  close(out.write_end);
  close(err.write_end);
  FIRSTSEEN_CHECK(fcntl(in.write_end, F_SETFL, O_NONBLOCK) == 0);
  Ran ran;
  pollfd polled[3] = {
      {in.write_end, POLLOUT, 0}, {out.read_end, POLLIN, 0}, {err.read_end, POLLIN, 0}};
  while (polled[1].fd >= 0 || polled[2].fd >= 0) {
    if (polled[0].fd >= 0 && input.empty()) {
      close(polled[0].fd);
      polled[0].fd = -1;
    }
    FIRSTSEEN_CHECK(poll(polled, 3, -1) > 0);
    if (polled[0].fd >= 0 && polled[0].revents != 0) {
      const ssize_t written = write(polled[0].fd, input.data(), input.size());
      input.remove_prefix(written > 0 ? static_cast<size_t>(written) : input.size());
    }
    if (polled[1].fd >= 0 && polled[1].revents != 0 && !ReadSome(polled[1].fd, &ran.out)) {
      polled[1].fd = -1;
    }
    if (polled[2].fd >= 0 && polled[2].revents != 0 && !ReadSome(polled[2].fd, &ran.err)) {
      polled[2].fd = -1;
    }
  }
  if (polled[0].fd >= 0) close(polled[0].fd);
  close(out.read_end);
  close(err.read_end);
  ran.exit_status = ExitStatus(process);
  return ran;
}

Child::Child(const std::vector<std::string>& arguments) {
  std::signal(SIGPIPE, SIG_IGN);
  const Pipe in = MakePipe();
  const Pipe out = MakePipe();
  process_ = Start(arguments, in.read_end, out.write_end, STDERR_FILENO);
  close(in.read_end);
  close(out.write_end);
  input_ = in.write_end;
  output_ = out.read_end;
}

Child::~Child() {
  if (process_ >= 0) {
    Signal(SIGKILL);
    Wait();
  }
  CloseInput();
  close(output_);
}

bool Child::Write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(input_, text.data(), text.size());
    if (written <= 0) return false;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

void Child::CloseInput() {
  if (input_ >= 0) close(input_);
  input_ = -1;
}

std::string Child::ReadLine() {
  size_t end = buffer_.find('\n');
  while (end == std::string::npos) {
    if (!ReadSome(output_, &buffer_)) return "";
    end = buffer_.find('\n');
  }
  std::string line = buffer_.substr(0, end);
  buffer_.erase(0, end + 1);
  return line;
}

std::string Child::ReadAll() {
  while (ReadSome(output_, &buffer_)) {
  }
  return std::move(buffer_);
}

void Child::Signal(int signal) { kill(process_, signal); }

int Child::Wait() {
  const int status = ExitStatus(process_);
  process_ = -1;
  return status;
}

}  // namespace firstseen
